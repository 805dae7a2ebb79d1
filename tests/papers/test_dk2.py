"""dK-2 sensitivities hold on all small graphs, and noise has the declared scale."""

import itertools
import math
import re
from collections import Counter

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.edge_statistics import degree_cells
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.methods import DK2, UniformDK2
from lightning_dpg.methods.single_graph import degree_mixing
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.mechanisms import laplace_tail_bound
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity.degrees import (
    joint_degree_sensitivity,
    largest_degrees_sensitivity,
    weighted_joint_degree_sensitivity,
)
from tests.scoring import scored
from tests.training import release_edges


def fitted(graph, epsilon, seed=0, delta=0.0, observer=None, make=DK2, **settings):
    method = make(graph.num_nodes, **settings)
    method._noise = NoiseSource(unsafe_seed=seed)
    method.accept_budget(Budget(epsilon, delta))
    method.ledger.observer = observer
    release_edges(method, undirected_edges(graph))
    return method


def joint(edges):
    """Edges by the degrees of their ends, counted one by one."""
    degree = Counter(itertools.chain.from_iterable(edges))
    return Counter(tuple(sorted((degree[i], degree[j]))) for i, j in edges)


def distances(edges, more):
    """How far an edge moves the joint degrees, divided by the larger degree, and undivided."""
    before, after = joint(edges), joint([*edges, more])
    moved = {cell: abs(before[cell] - after[cell]) for cell in before | after}
    return sum(count / cell[1] for cell, count in moved.items()), sum(moved.values())


def largest_two(edges):
    degree = Counter(itertools.chain.from_iterable(edges))
    return sum(sorted(degree.values())[-2:])


def test_one_edge_of_all_small_graphs_moves_joint_degrees_by_their_sensitivities():
    pairs = list(itertools.combinations(range(5), 2))
    tight, steps = set(), set()
    for bits in itertools.product([False, True], repeat=len(pairs)):
        edges = list(itertools.compress(pairs, bits))
        for more in itertools.compress(pairs, (not bit for bit in bits)):
            weighted, plain = distances(edges, more)
            assert weighted < weighted_joint_degree_sensitivity()
            # The smaller of both graphs bounds the change, so that either of them may be released.
            assert plain <= joint_degree_sensitivity(largest_two(edges))
            tight.add(joint_degree_sensitivity(largest_two(edges)) - plain)
            steps.add(abs(largest_two([*edges, more]) - largest_two(edges)))
    assert 0 in tight
    assert steps == {0, 1, largest_degrees_sensitivity()}


@settings(max_examples=50)
@given(st.integers(4, 12), st.integers(0, 60), st.integers(0, 999))
def test_one_edge_of_larger_graphs_does_neither(num_nodes, num_edges, seed):
    graph = nx.gnm_random_graph(num_nodes, num_edges, seed=seed)
    others = list(nx.complement(graph).edges)
    for more in others[:3]:
        weighted, plain = distances(list(graph.edges), more)
        assert weighted < weighted_joint_degree_sensitivity()
        assert plain <= joint_degree_sensitivity(largest_two(list(graph.edges)))


def bound_law(epsilon, delta, largest, num_nodes):
    """Exact law of T for a graph of this sum of the two largest degrees, as a dictionary."""
    q = math.exp(-epsilon / largest_degrees_sensitivity())
    tail = laplace_tail_bound(epsilon, largest_degrees_sensitivity(), delta)
    law = Counter()
    for noise in range(-400, 401):
        bound = min(max(largest + noise + tail, 2), 2 * (num_nodes - 1))
        law[bound] += (1 - q) / (1 + q) * q ** abs(noise)
    assert sum(law.values()) == pytest.approx(1)
    return law


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.2), (1.0, 0.02), (2.0, 0.4)])
def test_the_bound_alone_spends_delta_and_the_joint_degrees_are_pure_given_it(epsilon, delta):
    """Exact laws on all graphs of five nodes: where T is too small has delta at most under both."""
    pairs = list(itertools.combinations(range(5), 2))
    laws = [bound_law(epsilon, delta, largest, 5) for largest in range(9)]
    of_joint, worst, unlikely = 1.0, 0.0, 0.0
    for bits in itertools.product([False, True], repeat=len(pairs)):
        edges = list(itertools.compress(pairs, bits))
        least = largest_two(edges)
        for more in itertools.compress(pairs, (not bit for bit in bits)):
            one, other = laws[least], laws[largest_two([*edges, more])]
            moved = distances(edges, more)[1]
            for bound in set(one) | set(other):
                # Noise of a far draw attains the L1 distance of the counts over its scale.
                loss = of_joint * moved / joint_degree_sensitivity(bound)
                if bound >= least:
                    worst = max(worst, abs(math.log(one[bound] / other[bound])) + loss)
            for law in (one, other):
                unlikely = max(unlikely, sum(p for bound, p in law.items() if bound < least))
    assert 0.5 * (epsilon + of_joint) < worst <= (epsilon + of_joint) * (1 + 1e-9)
    assert 0.1 * delta < unlikely <= delta


def test_more_cells_than_are_counted_are_refused_early_and_say_nothing_of_t(monkeypatch):
    graph, noisy = from_networkx(nx.star_graph(59)), {}
    monkeypatch.setattr(degree_mixing, "_MOST_CELLS", 700)
    # The noise of T asks for more, whatever the graph is: nothing is read.
    with pytest.raises(MisconfigurationException, match="the noise alone asks for more than"):
        fitted(graph, 4.0, delta=1e-6, observer=noisy.__setitem__, make=UniformDK2)
    assert not noisy
    with pytest.raises(MisconfigurationException, match="the noise alone"):
        UniformDK2(60).accept_budget(Budget(4.0, 1e-6))
    UniformDK2(60).accept_budget(Budget(100.0, 1e-6))
    # Here the graph decides: what was read is lost, and T is neither shown nor free.
    for make, delta, last in ((UniformDK2, 1e-6, "largest_degrees"), (DK2, 0.0, "degrees")):
        with pytest.raises(MisconfigurationException) as error:
            fitted(graph, 100.0, delta=delta, observer=noisy.__setitem__, make=make)
        assert "what was read so far is spent" in str(error.value)
        assert set(re.findall("[0-9,]+", str(error.value))) <= {"67,108,864", ","}
        assert list(noisy)[-1] == last
        noisy.clear()


def test_two_stars_nearly_reach_both_sensitivities():
    edges = [(side, 100 * side + k) for side in (1, 2) for k in range(10, 60)]
    weighted, plain = distances(edges, (1, 2))
    assert weighted == pytest.approx(4 - 1 / 51)
    assert plain == joint_degree_sensitivity(100) == 201


def test_uniform_noise_has_the_scale_and_the_delta_that_are_declared():
    graph = make_graph(torch.empty(0, 2, dtype=torch.long), 60)  # what is released is the noise
    noisy = {}
    method = fitted(graph, 4.0, delta=1e-6, observer=noisy.__setitem__, make=UniformDK2)
    assert method.largest_two == 118  # noise of scale 10, and 139 more, are cut there
    bound, entry = method.ledger.entries[-2:]
    assert (bound.key, bound.event.mechanism, bound.event.total_delta) == (
        "largest_degrees",
        "approximate",
        1e-6,
    )
    assert (entry.event.mechanism, entry.event.total_delta, entry.sensitivity) == ("pure", 0.0, 237)
    assert entry.event.pure_epsilon == pytest.approx(0.7 * 4)
    assert [one.event for one in method.ledger.entries[:-1]] == [
        one.event for one in method.plan(Budget(4.0, 1e-6), 1)[:-1]
    ]
    drawn = noisy["joint_degrees"].double().abs()
    assert len(drawn) == 59 * 60 / 2
    assert float(drawn.mean()) == pytest.approx(237 / 2.8, rel=0.1)
    assert method.ledger.delta(4.0) == pytest.approx(1e-6)
    assert method.ledger.headline(1e-6) == (pytest.approx(4.0), "sum of epsilons and of deltas")


def test_noise_is_in_proportion_to_the_larger_degree():
    graph = from_networkx(nx.star_graph(120))
    noisy = {}
    method = fitted(graph, 4.0, observer=noisy.__setitem__)
    cells = degree_cells(method.largest_two, 120)
    drawn = noisy["joint_degrees"].double().numpy()
    counts = (cells == [1, 120]).all(axis=1) * 120
    scaled = np.abs(drawn - counts) / (4 * cells[:, 1] / 3.0)
    for low, high in ((1, 30), (30, 70), (70, 120)):
        group = scaled[(low <= cells[:, 1]) & (cells[:, 1] <= high)]
        assert group.mean() == pytest.approx(1, abs=5 / math.sqrt(len(group)) + 0.02)
    assert method.ledger.epsilon(0.0) == pytest.approx(4.0)


@pytest.mark.parametrize("make", [DK2, UniformDK2])
def test_without_noise_joint_degrees_come_back(make):
    real = nx.barabasi_albert_graph(150, 3, seed=1)
    graph = from_networkx(real)
    method = fitted(graph, math.inf, make=make)
    assert method.degrees.tolist() == degrees(graph).tolist()
    sample = method.sample(torch.Generator().manual_seed(0))
    assert degrees(sample).tolist() == degrees(graph).tolist()
    wanted, drawn = joint(real.edges), joint(list(map(tuple, undirected_edges(sample).tolist())))
    # Loops and repeated edges of hubs, of whose degree there is but one, find another place.
    assert sum(abs(wanted[cell] - drawn[cell]) for cell in wanted | drawn) < 0.2 * 2 * len(wanted)
    everything = torch.cartesian_prod(torch.arange(150), torch.arange(150))
    expected = method.score(everything).view(150, 150)
    assert expected.sum(dim=1).numpy() == pytest.approx(degrees(graph), rel=1e-2, abs=0.05)


def test_assortativity_is_kept_at_a_large_budget_and_lost_at_a_small_one():
    hubs, leaves = nx.gnp_random_graph(80, 0.4, seed=0), nx.gnm_random_graph(600, 900, seed=0)
    graph = from_networkx(nx.disjoint_union(hubs, leaves))
    mixed = {}
    for epsilon in (0.5, 60.0):
        sample = fitted(graph, epsilon).sample(torch.Generator().manual_seed(0))
        linked = nx.Graph(undirected_edges(sample).tolist())
        mixed[epsilon] = nx.degree_assortativity_coefficient(linked)
    assert mixed[0.5] < 0.3
    assert mixed[60.0] > 0.5  # that of the graph is 0.9


def test_score_is_the_log_ratio_of_the_noise():
    path = from_networkx(nx.path_graph(4))
    method = fitted(path, 3.0)
    cells = degree_cells(method.largest_two, 3).tolist()
    pair = torch.tensor([[0, 3]])  # closes the path: edges of degrees 1, 2 become such of 2, 2
    rate = 2.25 / 4
    for noisy in ({(1, 2): 2, (2, 2): 1}, {(2, 2): 4}, {}):
        values = torch.tensor([noisy.get(tuple(cell), 0) for cell in cells])
        expected = 0.0
        for cell in ((1, 2), (2, 2)):
            if list(cell) not in cells:
                continue
            open_count, closed_count = {(1, 2): (2, 0), (2, 2): (1, 4)}[cell]
            seen = noisy.get(cell, 0)
            expected += rate / cell[1] * (abs(seen - open_count) - abs(seen - closed_count))
        found = scored(method, "joint_degrees", values, pair, path)
        assert found.tolist() == pytest.approx([expected])
