"""Attacks reach known separations, equal brute force, and succeed on exact copies."""

import math

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from lightning_dpg.apps.audit import link_stealing as attacks
from lightning_dpg.apps.audit import reidentification
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph, undirected_edges

KARATE = from_networkx(nx.karate_club_graph())
PAIRS = torch.combinations(torch.arange(34))

SCORES = st.lists(st.integers(0, 5), min_size=2, max_size=8)


def shuffled(graph, seed=0):
    """The same graph with other node numbers, and the new number of each node."""
    numbers = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(seed))
    return make_graph(numbers[undirected_edges(graph)], graph.num_nodes), numbers


@settings(max_examples=50)
@given(SCORES, SCORES)
def test_separation_is_that_of_all_thresholds_with_coins_for_ties(edges, others):
    measured = attacks.separation(torch.tensor(edges), torch.tensor(others))
    labels = [1] * len(edges) + [0] * len(others)
    assert measured.auc.value == pytest.approx(roc_auc_score(labels, edges + others))
    # A coin of each bias at each threshold; half of the balanced pairs, or 1 % of the others.
    found, accuracy = 0.0, None
    for level in range(6):
        above = [np.mean(np.array(each) > level) for each in (edges, others)]
        tied = [np.mean(np.array(each) == level) for each in (edges, others)]
        if above[1] <= 0.01:
            coin = min(1.0, (0.01 - above[1]) / tied[1]) if tied[1] else 1.0
            found = max(found, above[0] + coin * tied[0])
        if sum(above) <= 1 <= sum(above) + sum(tied) and sum(tied):
            accuracy = above[0] + (1 - sum(above)) / sum(tied) * tied[0]
    assert measured.found.value == pytest.approx(found)
    assert measured.accuracy.value == pytest.approx(accuracy)
    for estimate in measured:
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


@pytest.mark.parametrize(("successes", "trials"), [(0, 7), (7, 7), (3, 10), (412, 1000)])
def test_interval_of_a_share_is_the_exact_one(successes, trials):
    exact = binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert attacks.proportion(successes, trials) == pytest.approx(
        (successes / trials, exact.low, exact.high)
    )


def test_interval_of_the_auc_holds_what_it_says():
    """Normal scores one standard deviation apart have the AUC Phi(1 / sqrt(2))."""
    true, runs = 0.5 * (1 + math.erf(0.5)), 200
    generator = torch.Generator().manual_seed(0)
    covered = 0
    for _ in range(runs):
        edges = torch.randn(80, generator=generator) + 1
        area = attacks.separation(edges, torch.randn(120, generator=generator)).auc
        covered += area.low <= true <= area.high
    assert binomtest(covered, runs, 0.95).pvalue > 1e-3


def test_scores_of_graphs_are_those_of_networkx():
    other = from_networkx(nx.gnm_random_graph(34, 78, seed=0))
    graphs = [KARATE, other]
    linked = [nx.Graph(undirected_edges(graph).tolist()) for graph in graphs]
    for each in linked:
        each.add_nodes_from(range(34))
    shares = [np.mean([each.has_edge(*pair) for each in linked]) for pair in PAIRS.tolist()]
    assert attacks.edge_shares(graphs, PAIRS).tolist() == shares
    expected = np.zeros(len(PAIRS))
    for each in linked:
        expected += [score for *_, score in nx.adamic_adar_index(each, PAIRS.tolist())]
    scores = attacks.adamic_adar(graphs, PAIRS)
    np.testing.assert_allclose(scores, expected / 2)
    # Lexicographic: neighbors never outweigh an edge in one graph more.
    both = attacks.edges_then_neighbors(graphs, PAIRS).numpy()
    order = np.lexsort((scores, shares))
    assert (np.diff(both[order]) >= 0).all()


def test_graphs_without_edges_tell_nothing():
    empty = make_graph(torch.empty(0, 2, dtype=torch.long), 34)
    for score in (attacks.edge_shares, attacks.adamic_adar, attacks.edges_then_neighbors):
        assert score([empty], PAIRS).abs().sum() == 0
    assert attacks.spectral_scores(empty, PAIRS).abs().sum() == 0
    assert reidentification.reidentify(KARATE, [empty])["degree"].value == pytest.approx(1 / 34)


def test_a_copy_gives_all_links_away_and_a_graph_of_its_degrees_does_not():
    edges = undirected_edges(KARATE)
    pairs = attacks.candidates(KARATE, edges[::4])
    copy = attacks.Published([KARATE], lambda p: attacks.edge_shares([KARATE], p))
    stolen = attacks.steal_links(copy, pairs)
    assert len(stolen) == 8
    for others in ("any", "equal degrees"):
        for name in ("edges", "edges, then common neighbors", "scores of the generator"):
            assert [e.value for e in stolen[name, others]] == [1, 1, 1]
    null = attacks.with_degrees_alone(attacks.Published([KARATE] * 10))
    assert null.score is None
    blind = attacks.steal_links(null, pairs)
    assert len(blind) == 6
    matched = blind["edges", "equal degrees"].auc
    assert matched.low < 0.5 < matched.high


def test_candidates_are_disjoint_from_the_edges():
    edges = {tuple(edge) for edge in undirected_edges(KARATE).tolist()}
    pairs = attacks.candidates(KARATE, undirected_edges(KARATE)[:5])
    for others in pairs.others.values():
        assert len(others) == 50
        assert not edges & {tuple(pair) for pair in others.tolist()}


def test_nodes_are_aligned_by_the_order_of_their_degrees():
    # All degrees from 1 to 6 once, so that only the pair of degree 3 is in doubt.
    graph = from_networkx(nx.havel_hakimi_graph([6, 5, 4, 3, 3, 2, 1]))
    other, _ = shuffled(graph, seed=1)
    aligned = attacks.aligned_by_degree(other, graph, torch.Generator().manual_seed(0))
    degree = [torch.bincount(each.edge_index[0], minlength=7) for each in (aligned, graph)]
    assert torch.equal(*degree)
    assert torch.equal(aligned.edge_index, graph.edge_index)


def test_spectral_predictor_finds_links_within_blocks():
    blocks = nx.planted_partition_graph(3, 20, 0.6, 0.02, seed=0)
    graph = from_networkx(blocks)
    hidden = undirected_edges(graph)[::10]
    kept = {tuple(e) for e in undirected_edges(graph).tolist()} - set(map(tuple, hidden.tolist()))
    rest = make_graph(torch.tensor(sorted(kept)), 60)
    accuracy = attacks.predict_links([rest], attacks.candidates(graph, hidden))
    assert accuracy.low > 0.6
    blind = from_networkx(nx.gnm_random_graph(60, len(kept), seed=1))
    by_chance = attacks.predict_links([blind], attacks.candidates(graph, hidden))
    assert by_chance.low < 0.5 < by_chance.high
