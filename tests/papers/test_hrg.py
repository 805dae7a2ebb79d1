"""HRG sensitivities and laws hold by enumeration, and short chains are refused."""

import copy
import itertools
import math

import networkx as nx
import numpy as np
import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from scipy import stats

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.formats.io import from_networkx, read_graph
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods import HRG
from lightning_dpg.metrics.communities import louvain, normalized_mutual_information
from lightning_dpg.papers.xiao2014 import hrg
from lightning_dpg.papers.xiao2014.dendrogram import (
    Dendrogram,
    branch_edges,
    branch_pairs,
    dividing_branch,
    log_likelihoods,
    memory_of_start,
)
from lightning_dpg.papers.xiao2014.hrg import least_steps_per_node
from lightning_dpg.privacy.ledger import Budget, PrivacyBudgetExceeded, PrivacyLedger, Relation
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import pay
from lightning_dpg.privacy.selection import choose_by_chain
from lightning_dpg.privacy.sensitivity.degrees import branch_sensitivity
from lightning_dpg.privacy.sensitivity.fitting import log_likelihood_sensitivity
from lightning_dpg.release.statement import privacy_statement
from tests import entries
from tests.cards import card_of
from tests.training import quiet_trainer, release_edges


def fitted(graph, epsilon, seed=0, delta=0.0, make=HRG, **settings):
    method = make(graph.num_nodes, **settings)
    method._noise = NoiseSource(unsafe_seed=seed)
    method.ledger.budget = Budget(epsilon, delta)
    release_edges(method, undirected_edges(graph))
    return method


def all_dendrograms(num_nodes):
    """Each binary tree of different nodes, in the form that a chain releases, by joining subtrees."""

    def grown(branches):
        if len(branches) == 1:
            yield branches[0]
        first, *rest = branches
        for size in range(len(rest)):
            for others in itertools.combinations(rest, size):
                left = [first, *others]
                right = [node for node in rest if node not in others]
                yield from itertools.product(grown(left), grown(right))

    def leaves(tree):
        return [tree] if isinstance(tree, int) else leaves(tree[0]) + leaves(tree[1])

    def rows(tree, start=0):
        if isinstance(tree, int):
            return {}
        middle = start + len(leaves(tree[0]))
        here = {middle: (start, start + len(leaves(tree)))}
        return here | rows(tree[0], start) | rows(tree[1], middle)

    for tree in grown(list(range(num_nodes))):
        spans = rows(tree)
        yield np.array([(leaf, *spans.get(k, (0, 0))) for k, leaf in enumerate(leaves(tree))])


def tables(num_nodes):
    """All pairs; for each dendrogram its state, and the log-likelihood of each graph by its bits."""
    pairs = np.array(list(itertools.combinations(range(num_nodes), 2)))
    bits = np.arange(2 ** len(pairs))[:, None] >> np.arange(len(pairs)) & 1
    states, values, counts = [], [], []
    for state in all_dendrograms(num_nodes):
        member = np.eye(num_nodes, dtype=int)[dividing_branch(state, pairs)]
        counts.append(bits @ member)
        values.append(log_likelihoods(counts[-1], branch_pairs(state)).sum(axis=1))
        states.append(state)
    return pairs, states, np.array(values), np.array(counts)


def flips(values, num_pairs):
    """The values of graphs with an edge minus those without it, over all edges and other edges."""
    graphs = np.arange(2**num_pairs)
    without = [graphs[graphs >> k & 1 == 0] for k in range(num_pairs)]
    return [values[:, w | 1 << k] - values[:, w] for k, w in enumerate(without)]


@pytest.mark.parametrize(("num_nodes", "number"), [(2, 1), (3, 3), (4, 15), (5, 105)])
def test_no_edge_moves_a_likelihood_by_more_than_the_sensitivity_and_one_does(num_nodes, number):
    pairs, states, values, counts = tables(num_nodes)
    assert len(states) == number
    largest = max(np.abs(change).max() for change in flips(values, len(pairs)))
    assert largest == pytest.approx(log_likelihood_sensitivity(num_nodes))
    moved = flips(counts, len(pairs))
    assert {int(np.abs(change).sum(axis=2).max()) for change in moved} == {branch_sensitivity()}
    assert {int(np.abs(change).sum(axis=2).min()) for change in moved} == {branch_sensitivity()}


@pytest.mark.parametrize("num_nodes", [4, 5])
def test_laws_of_dendrograms_are_within_epsilon_of_neighbours(num_nodes):
    epsilon = 1.7
    pairs, _, values, _ = tables(num_nodes)
    exponent = epsilon / (2 * log_likelihood_sensitivity(num_nodes)) * values
    logs = exponent - np.log(np.exp(exponent).sum(axis=0))
    largest = max(np.abs(change).max() for change in flips(logs, len(pairs)))
    assert 0.4 * epsilon < largest <= epsilon


# Two linked pairs; a triangle and a node; a path; a star.
SMALL = [
    [(0, 1), (2, 3)],
    [(0, 1), (0, 2), (1, 2)],
    [(0, 1), (1, 2), (2, 3)],
    [(0, 1), (0, 2), (0, 3)],
]


def choose(candidate, steps, epsilon, noise, ledger=None):
    sensitivity = log_likelihood_sensitivity(4)
    read = entries.entry("pure", name="dendrogram", epsilon=epsilon, sensitivity=sensitivity)
    ledger = ledger if ledger is not None else PrivacyLedger(Relation.EDGE)
    return pay(read, candidate, ledger, noise, choose_by_chain(read, steps))


@pytest.mark.parametrize("edges", SMALL)
def test_chain_has_the_law_of_the_exponential_mechanism(edges):
    epsilon, total, noise = 6.0, 1500, NoiseSource(unsafe_seed=1)
    edges = np.array(edges)
    states = {state.tobytes(): k for k, state in enumerate(all_dendrograms(4))}
    values = [
        log_likelihoods(branch_edges(state, edges), branch_pairs(state)).sum()
        for state in all_dendrograms(4)
    ]
    weights = np.exp(epsilon / (2 * log_likelihood_sensitivity(4)) * np.array(values))
    start = np.random.default_rng(0)
    seen = np.zeros(15)
    for _ in range(total):
        state = choose(Dendrogram(edges, 4, start), 40, epsilon, noise)
        seen[states[state.numpy().tobytes()]] += 1
    assert stats.chisquare(seen, total * weights / weights.sum()).pvalue > 1e-3
    assert stats.chisquare(seen).pvalue < 1e-6  # the graph does matter


def test_without_a_limit_the_chain_climbs_and_with_next_to_none_it_wanders():
    edges = np.array(SMALL[0])
    best = choose(Dendrogram(edges, 4, np.random.default_rng(2)), 200, math.inf, NoiseSource())
    assert log_likelihoods(branch_edges(best.numpy(), edges), branch_pairs(best.numpy())).sum() == 0
    noise, start = NoiseSource(unsafe_seed=1), np.random.default_rng(0)
    states = [choose(Dendrogram(edges, 4, start), 20, 1e-9, noise) for _ in range(1500)]
    _, counts = np.unique([state.numpy().tobytes() for state in states], return_counts=True)
    assert len(counts) == 15
    assert stats.chisquare(counts).pvalue > 1e-3


def test_chain_is_paid_before_it_moves():
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(0.5, 0.0)
    candidate = Dendrogram(np.array(SMALL[0]), 4, np.random.default_rng(0))
    before = candidate.state()
    with pytest.raises(PrivacyBudgetExceeded):
        choose(candidate, 10, 0.6, NoiseSource(), ledger)
    assert torch.equal(candidate.state(), before)
    choose(candidate, 10, 0.5, NoiseSource(), ledger)
    (entry,) = ledger.entries
    assert (entry.event.mechanism, entry.event.pure_epsilon) == ("pure", 0.5)
    assert entry.sensitivity == pytest.approx(4 * math.log(4) - 3 * math.log(3))
    (read,) = [read for read in HRG(9).plan(Budget(1.0, 0.0), 1) if read.key == entry.key]
    assert read.public == {"steps of the chain": HRG(9).chain_steps}
    with pytest.raises(ValueError, match="positive"):
        choose(candidate, 10, 0.0, NoiseSource())


def test_noise_of_branches_has_the_scale_of_the_ledger(monkeypatch):
    monkeypatch.setattr(hrg, "least_steps_per_node", lambda num_nodes: 1)
    graph = from_networkx(nx.gnm_random_graph(1500, 3000, seed=0))
    method = HRG(graph.num_nodes, steps_per_node=1)
    method._noise = NoiseSource(unsafe_seed=1)
    method.ledger.budget = Budget(2.0, 0.0)
    noisy = {}
    method.ledger.observer = lambda key, value: noisy.update({key: value})
    edges = undirected_edges(graph)
    release_edges(method, edges)
    entry = method.ledger.entries[-1]
    exact = branch_edges(method.dendrogram.numpy(), edges.numpy())
    drawn = noisy[entry.key].numpy() - exact
    assert entry.event.pure_epsilon == pytest.approx(0.9)
    expected = math.sqrt(2 * math.exp(-0.9)) / (1 - math.exp(-0.9))
    assert method.ledger.epsilon(0.0) == pytest.approx(2.0)
    assert drawn.std() == pytest.approx(expected, rel=0.1)


def test_with_little_noise_a_block_graph_comes_back():
    blocks = nx.disjoint_union_all([nx.complete_graph(8) for _ in range(4)])
    graph = from_networkx(blocks)
    method = fitted(graph, 60.0, steps_per_node=2000)
    sample = method.sample(torch.Generator().manual_seed(0))
    assert sample.num_edges == graph.num_edges
    block = np.repeat(np.arange(4), 8)
    assert normalized_mutual_information(louvain(sample), block) > 0.8
    inside, outside = torch.tensor([[0, 1], [9, 12]]), torch.tensor([[0, 9], [12, 30]])
    assert method.score(inside).min() > method.score(outside).max()
    # Scores are chances: over all pairs they add up to the edges.
    assert float(method.score(torch.combinations(torch.arange(32))).sum()) == pytest.approx(112)


def test_likelihood_on_the_way_is_private_and_rises():
    method = fitted(from_networkx(nx.karate_club_graph()), math.inf, steps_per_node=1000)
    steps, values = zip(*method.trace, strict=True)
    assert steps[-1] == 34 * 1000
    assert values[-1] >= values[0]
    assert not {"trace"} & set(method.released_state())


@pytest.mark.parametrize(
    ("num_nodes", "few"), [(3, 1), (77, 1), (77, 99), (1222, 1000), (5242, 1000)]
)
def test_refuses_fewer_steps_than_forget_the_start(num_nodes, few):
    budget = Budget(1.0, 0.0)
    with pytest.raises(MisconfigurationException, match="PrivGraph and BTER") as refusal:
        HRG(num_nodes, steps_per_node=few).accept_budget(budget)
    assert len(str(refusal.value).splitlines()) <= 5
    assert HRG(num_nodes).chain_steps >= num_nodes**2 * math.log(num_nodes) / 8
    assert HRG(num_nodes).chain_steps >= 1000 * num_nodes
    HRG(num_nodes, steps_per_node=least_steps_per_node(num_nodes)).accept_budget(budget)


def leads(num_nodes, states):
    """State that each move leads to from each, shape ``(S, moves)``, and that of the start."""
    number = {state.tobytes(): k for k, state in enumerate(states)}
    none = np.empty((0, 2), dtype=np.int64)
    start = Dendrogram(none, num_nodes, np.random.default_rng(0))
    at_start = number[start.state().numpy().tobytes()]
    waiting, found = {at_start: start}, np.full((len(states), start.num_moves), -1)
    while waiting:
        here, chain = waiting.popitem()
        for move in range(start.num_moves):
            moved = copy.deepcopy(chain)
            moved.gain(move)
            moved.make()
            there = found[here, move] = number[moved.state().numpy().tobytes()]
            if found[there, 0] < 0:
                waiting[there] = moved
    return found, at_start


@pytest.mark.parametrize(
    ("num_nodes", "epsilon", "early"),
    [
        (3, 0.05, 0.0698),
        (4, 0.05, None),
        (4, 4.0, None),
        pytest.param(5, 0.05, 0.0583, marks=pytest.mark.slow),
    ],
)
def test_law_of_the_fewest_steps_is_within_epsilon_of_neighbours(num_nodes, epsilon, early):
    """The exact law of the chain from its public start, on all graphs; ``early`` is a known answer."""
    pairs, states, values, _ = tables(num_nodes)
    found, start = leads(num_nodes, states)
    exponent = epsilon / (2 * log_likelihood_sensitivity(num_nodes)) * values.T
    made = np.exp(np.minimum(exponent[:, found] - exponent[:, :, None], 0)) / found.shape[1]
    law = np.zeros(exponent.shape)
    law[:, start] = 1

    def loss():
        return max(np.abs(change).max() for change in flips(np.log(law.T), len(pairs)))

    for steps in range(num_nodes * least_steps_per_node(num_nodes)):
        if steps == num_nodes and early is not None:
            assert loss() == pytest.approx(early, abs=1e-4)  # one step for each node is too few
        flows = law[:, :, None] * made
        law -= flows.sum(axis=2)
        for move in range(found.shape[1]):
            law += flows[:, :, move] @ np.eye(len(states))[found[:, move]]
    assert loss() <= epsilon


def test_memory_of_the_start_falls_with_the_steps_as_public_numbers_do():
    early, _ = memory_of_start(100, 500, 0)
    late, usual = memory_of_start(100, 100 * 100, 0)
    assert early > 0.4
    assert late < 0.15
    assert 0 < usual < 0.1
    assert memory_of_start(100, 500, 0)[0] == early
    assert memory_of_start(2, 500, 0) == (0, 0)
    assert abs(memory_of_start(3, 300, 0)[0]) <= 1  # three dendrograms


def test_guarantee_is_conditional(tmp_path, capsys):
    method = HRG(77)
    trainer = quiet_trainer(PrivacyAccountant(1.0, 0.0), default_root_dir=tmp_path)
    trainer.fit(method, EdgeListDataModule("les_miserables"))
    statement = privacy_statement(method)
    assert statement["conditional"] is True
    assert "stationary law within its 77,000 steps" in statement["condition"]
    assert f"(1, 0)-DP if {statement['condition']} (add/remove" in statement["guarantee"]
    assert f"if {statement['condition']}" in capsys.readouterr().out
    assert "correlation of" in " ".join(statement["assumptions"])
    assert f"| only if | {statement['condition']} |" in card_of(statement)
    without = HRG(77)
    without.ledger.budget = Budget(math.inf, 0.0)
    assert privacy_statement(without)["conditional"] is False


def test_refuses_too_many_nodes():
    with pytest.raises(MisconfigurationException, match="at most 20000"):
        HRG(20_001)


@pytest.mark.slow
def test_large_budgets_find_the_sides_of_polblogs(data_root):
    graph = read_graph(data_root / "graphs" / "polblogs.edges.gz", keep_gaps=True)
    method = fitted(graph, 200.0)
    edges = undirected_edges(graph).numpy()
    state = method.dendrogram.numpy()
    found = log_likelihoods(branch_edges(state, edges), branch_pairs(state)).sum()
    start = Dendrogram(edges, graph.num_nodes, np.random.default_rng(0)).utility
    assert found > start + 5000
