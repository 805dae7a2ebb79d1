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
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods import DK2
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.papers.wang2013 import dk2
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity.degrees import weighted_joint_degree_sensitivity
from tests.scoring import scored
from tests.training import release_edges


def fitted(graph, epsilon, seed=0, observer=None):
    method = DK2(graph.num_nodes)
    method._noise = NoiseSource(unsafe_seed=seed)
    method.accept_budget(Budget(epsilon, 0.0))
    method.ledger.observer = observer
    release_edges(method, undirected_edges(graph))
    return method


def joint(edges):
    """Edges by the degrees of their ends, counted one by one."""
    degree = Counter(itertools.chain.from_iterable(edges))
    return Counter(tuple(sorted((degree[i], degree[j]))) for i, j in edges)


def distance(edges, more):
    """How far an edge moves the joint degrees, divided by the larger degree."""
    before, after = joint(edges), joint([*edges, more])
    return sum(abs(before[cell] - after[cell]) / cell[1] for cell in before | after)


def test_one_edge_of_all_small_graphs_moves_joint_degrees_by_their_sensitivity():
    pairs = list(itertools.combinations(range(5), 2))
    for bits in itertools.product([False, True], repeat=len(pairs)):
        edges = list(itertools.compress(pairs, bits))
        for more in itertools.compress(pairs, (not bit for bit in bits)):
            assert distance(edges, more) < weighted_joint_degree_sensitivity()


@settings(max_examples=50)
@given(st.integers(4, 12), st.integers(0, 60), st.integers(0, 999))
def test_one_edge_of_larger_graphs_does_so(num_nodes, num_edges, seed):
    graph = nx.gnm_random_graph(num_nodes, num_edges, seed=seed)
    others = list(nx.complement(graph).edges)
    for more in others[:3]:
        assert distance(list(graph.edges), more) < weighted_joint_degree_sensitivity()


def test_more_cells_than_are_counted_are_refused_and_say_nothing_of_t(monkeypatch):
    graph, noisy = from_networkx(nx.star_graph(59)), {}
    monkeypatch.setattr(dk2, "_MOST_CELLS", 700)
    # The graph decides: what was read is lost, and T is neither shown nor free.
    with pytest.raises(MisconfigurationException) as error:
        fitted(graph, 100.0, observer=noisy.__setitem__)
    assert "what was read so far is spent" in str(error.value)
    assert set(re.findall("[0-9]+", str(error.value))) <= {"700"}
    assert list(noisy)[-1] == "degrees"


def test_two_stars_nearly_reach_the_sensitivity():
    edges = [(side, 100 * side + k) for side in (1, 2) for k in range(10, 60)]
    assert distance(edges, (1, 2)) == pytest.approx(4 - 1 / 51)


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


def test_without_noise_joint_degrees_come_back():
    real = nx.barabasi_albert_graph(150, 3, seed=1)
    graph = from_networkx(real)
    method = fitted(graph, math.inf)
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
