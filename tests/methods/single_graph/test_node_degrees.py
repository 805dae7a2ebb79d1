import math

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.methods import NodeDegrees
from lightning_dpg.methods.single_graph.node_degrees import counts_at_least, degrees_by_counts
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.run.fit import fit_method
from tests.training import quiet_trainer


def fit(graph, epsilon=math.inf, **settings):
    method = NodeDegrees(graph.number_of_nodes(), **settings)
    fit_method(method, EdgeListDataModule(from_networkx(graph)), epsilon, 0.0)
    return method


def drawn_degrees(method, seed):
    graph = method.sample(torch.Generator().manual_seed(seed))
    return torch.bincount(graph.edge_index[0], minlength=graph.num_nodes)


def test_without_noise_drawn_graphs_have_the_degrees_at_other_nodes():
    graph = nx.barabasi_albert_graph(300, 3, seed=0)
    method = fit(graph)
    expected = sorted(dict(graph.degree).values())
    first, second = (drawn_degrees(method, seed) for seed in (0, 1))
    for degrees in (first, second):
        assert degrees.sort().values.tolist() == expected
    assert not torch.equal(first, second)
    assert int(method.num_edges) == graph.number_of_edges()


def test_a_hub_is_cut_and_not_refused():
    method = fit(nx.star_graph(50), max_degree=7)
    assert method.degrees.tolist() == [7] + 7 * [1] + 43 * [0]
    assert method.condition() is None


def test_counts_are_those_of_nodes_of_at_least_each_degree():
    edges = np.array(nx.path_graph(4).edges)
    assert counts_at_least(edges, 6, 3).tolist() == [4, 2, 0]


@pytest.mark.parametrize(
    ("noisy", "expected"),
    [
        ([4, 2, 0], [2, 2, 1, 1, 0, 0]),
        # An odd sum, more nodes than there are, fewer than none.
        ([3, 0, 0], [1, 1, 0, 0, 0, 0]),
        ([9, 9, -5], [2, 2, 2, 2, 2, 2]),
    ],
)
def test_degrees_follow_from_counts(noisy, expected):
    degrees = degrees_by_counts(np.array(noisy), 6, 0.0)
    assert degrees.tolist() == expected


def test_the_bound_follows_from_public_facts():
    (entry,) = NodeDegrees(10_000).plan(Budget(4.0, 0.0), 1)
    assert (entry.sensitivity, entry.relation) == (2 * 200, "node")
    assert NodeDegrees(10_000, max_degree=9).degree_bound(4.0) == 9
    assert NodeDegrees(5, max_degree=9).degree_bound(4.0) == 4
    with pytest.raises(ValueError, match="max_degree follows from num_nodes"):
        NodeDegrees().plan(Budget(4.0, 0.0), 1)


def test_noise_that_drowns_the_counts_is_announced():
    with pytest.warns(UserWarning, match="each count of nodes has noise of scale 18, beside 80"):
        # fit_method drops warnings, the trainer of a user does not.
        quiet_trainer(PrivacyAccountant(1.0, 0.0)).fit(
            NodeDegrees(80), EdgeListDataModule(from_networkx(nx.path_graph(80)))
        )
