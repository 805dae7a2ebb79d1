"""Hidden links equal matrix powers, coins break ties, and communities reveal links."""

import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lightning_dpg.apps.audit.graph_set_attacks import (
    HiddenLinks,
    hide_links,
    identified_by_degrees,
    predict_hidden_links,
    walk_scores,
)
from lightning_dpg.apps.audit.link_stealing import roc, share_right
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph, undirected_edges


@given(
    st.integers(1, 3).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(0, 2), min_size=n, max_size=n)] * 2)
    )
)
def test_ties_are_broken_by_fair_coins(scores):
    links, others = scores
    pairs = [(score, True) for score in links] + [(score, False) for score in others]
    # All orders in which coins can put the pairs
    counts = [
        sum(is_link for _, is_link in sorted(order, key=lambda pair: -pair[0])[: len(links)])
        for order in itertools.permutations(pairs)
    ]
    expected = sum(counts) / len(counts) / len(links)
    found = share_right(*roc(*(torch.tensor(part, dtype=torch.double) for part in scores)))
    assert found == pytest.approx(expected)


def test_a_fifth_of_the_links_is_hidden_and_asked_for_beside_as_many_others():
    graphs = [nx.gnm_random_graph(12, 30, seed=0), nx.complete_graph(6), nx.empty_graph(3)]
    real = [from_networkx(graph) for graph in graphs[:2]]
    real.append(make_graph(torch.empty(0, 2, dtype=torch.long), 3))
    real[0].y = torch.tensor([1])
    hidden = hide_links(real)
    assert [graph.num_edges // 2 for graph in hidden.graphs] == [24, 12, 0]
    assert (
        [len(part) for part in hidden.links] == [len(part) for part in hidden.others] == [6, 0, 0]
    )
    kept, links, others = (
        {tuple(e) for e in part.tolist()}
        for part in (undirected_edges(hidden.graphs[0]), hidden.links[0], hidden.others[0])
    )
    assert kept | links == set(graphs[0].edges)
    assert len(kept) + len(links) == 30
    assert not others & set(graphs[0].edges)
    assert hidden.graphs[0].y == 1


def test_communities_give_links_away_and_random_graphs_do_not():
    blocks = [nx.planted_partition_graph(2, 12, 0.9, 0.02, seed=k) for k in range(8)]
    uniform = [nx.gnm_random_graph(24, len(graph.edges), seed=k) for k, graph in enumerate(blocks)]
    hidden = hide_links([from_networkx(graph) for graph in blocks])
    unrelated = [from_networkx(graph) for graph in uniform]
    assert predict_hidden_links([hidden.graphs], hidden).low > 0.8
    assert predict_hidden_links([unrelated], hidden).value < 0.6
    empty = [make_graph(torch.empty(0, 2, dtype=torch.long), 24)] * 8
    assert predict_hidden_links([empty], hidden).value == 0.5


def test_walk_scores_are_powers_of_a_matrix():
    graph = nx.gnm_random_graph(9, 14, seed=2)
    graph.add_node(9)
    dense = nx.to_numpy_array(graph, nodelist=range(10))
    scale = np.sqrt(dense.sum(0) + dense.sum() / 10)
    expected = np.linalg.matrix_power((np.eye(10) + dense / np.outer(scale, scale)) / 2, 4)
    pairs = torch.combinations(torch.arange(10))
    union = make_graph(torch.tensor(list(graph.edges)), 10)
    np.testing.assert_allclose(walk_scores(union, pairs), expected[tuple(pairs.T)], atol=1e-12)


def test_degrees_that_differ_identify_the_nodes():
    star = from_networkx(nx.star_graph(6))
    links = [torch.tensor([[0, 1], [0, 2]])]
    others = [torch.tensor([[3, 4], [5, 6]])]
    moved = make_graph(torch.tensor([[6, k] for k in range(6)]), 7)
    hidden = HiddenLinks([star], links, others)
    assert predict_hidden_links([identified_by_degrees([moved], [star])], hidden).value == 1
    assert predict_hidden_links([[moved]], hidden).value < 1


def test_refuses_sets_without_anything_to_tell_apart():
    hidden = hide_links([from_networkx(nx.complete_graph(6))])
    with pytest.raises(ValueError, match="no graph has both"):
        predict_hidden_links([hidden.graphs], hidden)
