"""The decoder of graphs reads the release of the pooled statistics, and nothing else."""

import math

import networkx as nx
import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.methods import ErdosRenyiSet, PooledGMMN, PooledSet
from lightning_dpg.methods.graph_set.pooled_set.pooled_statistics import PooledStatistics
from lightning_dpg.nn.graph_moments import (
    binned_degrees,
    draw_adjacency,
    latin_normal,
    maximum_mean_discrepancy,
    num_triangles,
)
from lightning_dpg.privacy.budget import Budget
from tests.training import quiet_trainer

POOLED = (
    "size_cuts",
    "density_cuts",
    "shape",
    "closed_share",
    "largest_share",
)


def fit(method, graphs, epsilon, *callbacks):
    torch.manual_seed(0)
    accountant = PrivacyAccountant(epsilon, 0.0)
    quiet_trainer(accountant, *callbacks).fit(method, GraphSetDataModule(graphs))
    return method


def random_graphs(seed):
    return [nx.gnm_random_graph(8 + k % 3, 12, seed=seed + k) for k in range(12)]


def same_state(first, second):
    states = first.state_dict(), second.state_dict()
    return states[0].keys() == states[1].keys() and all(
        torch.equal(states[0][name], states[1][name]) for name in states[0]
    )


def test_recorded_releases_give_the_same_model_on_other_graphs(monkeypatch):
    first = fit(PooledGMMN(num_steps=5), random_graphs(0), 1.0)
    recorded = {name: getattr(first.pooled, name).clone() for name in POOLED}

    def replay(pooled, method, edges, epsilon):
        method.num_edges = first.num_edges.clone()
        for name, value in recorded.items():
            setattr(pooled, name, value.clone())
        for entry in first.ledger.entries:
            method.ledger.spend(entry)

    monkeypatch.setattr(PooledStatistics, "release", replay)
    torch.manual_seed(1)
    second = PooledGMMN(num_steps=5)
    torch.manual_seed(1)
    third = PooledGMMN(num_steps=5)
    fit(second, random_graphs(0), 1.0)
    fit(third, random_graphs(100), 1.0)
    assert same_state(second, third)


class Unreadable(torch.Tensor):
    """A tensor that no operation reads."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("a private record is read after the release")


class HideRecords(pl.Callback):
    def on_train_start(self, trainer, pl_module):
        data = trainer.datamodule
        data.edges = data.edges.as_subclass(Unreadable)
        for graph in data.graphs:
            graph.edge_index = graph.edge_index.as_subclass(Unreadable)
        self.released = len(pl_module.ledger.entries)


def test_training_reads_no_record_after_the_release():
    method, hidden = PooledGMMN(num_steps=4), HideRecords()
    untrained = [p.clone() for p in method.decoder.parameters()]
    fit(method, random_graphs(0), 1.0, hidden)
    assert hidden.released == len(method.ledger.entries) == 4
    trained = method.decoder.parameters()
    assert any(not torch.equal(*both) for both in zip(untrained, trained, strict=True))
    data = GraphSetDataModule(random_graphs(0))
    with pytest.raises(AssertionError, match="a private record"):
        data.setup("fit")
        len(data.edges.as_subclass(Unreadable))


def test_costs_are_those_of_the_pooled_set():
    plans = [kind().plan(Budget(3.0, 0.0), 7) for kind in (PooledGMMN, PooledSet)]
    assert plans[0] == plans[1]


def test_trained_decoder_draws_centers_that_uniform_graphs_lack():
    originals = [nx.windmill_graph(4, 5) for _ in range(16)]
    drawn = {}
    for method in (PooledGMMN(num_steps=60, graphs_per_step=16), ErdosRenyiSet()):
        fit(method, originals, math.inf)
        graphs = method.sample_set(torch.Generator().manual_seed(0))
        assert [g.num_edges // 2 for g in graphs] == [40] * 16
        degrees = [torch.bincount(g.edge_index[0], minlength=17).max() for g in graphs]
        drawn[type(method)] = float(np.mean(degrees))
    assert drawn[ErdosRenyiSet] < 9.5
    assert 11 < drawn[PooledGMMN] <= 16


def test_moments_of_drawn_graphs_agree_with_networkx():
    logits = torch.randn(3, 9, 9)
    mask = torch.arange(9) < torch.tensor([9, 7, 1])[:, None]
    pairs = (mask[:, :, None] & mask[:, None, :]).triu(1)
    counts = torch.tensor([20, 9, 0])
    drawn = draw_adjacency(logits + logits.mT, pairs, counts)
    graphs = [nx.from_numpy_array(matrix.numpy()) for matrix in drawn]
    assert [g.number_of_edges() for g in graphs] == counts.tolist()
    assert not drawn[1, 7:].any()
    expected = [sum(nx.triangles(g).values()) / 3 for g in graphs]
    assert num_triangles(drawn).tolist() == expected
    weights = torch.zeros(3, 9, 2)
    weights[:, 0, 0], weights[:, :, 1] = 1, 1 / 9
    found = binned_degrees(drawn.sum(-1), weights)
    assert found[:, 0].tolist() == [max(d for _, d in g.degree) for g in graphs]
    torch.testing.assert_close(found[:, 1], 2 * counts / 9)


def test_straight_through_gradient_keeps_the_expected_number_of_edges():
    logits = torch.randn(1, 6, 6, requires_grad=True)
    pairs = torch.ones(1, 6, 6, dtype=torch.bool).triu(1)
    draw_adjacency(logits, pairs, torch.tensor([5])).sum().backward()
    assert logits.grad.abs().max() < 1e-6
    draw_adjacency(logits, pairs, torch.tensor([5]))[0, 0, 1].backward()
    assert logits.grad[0, 0, 1] > 0 > logits.grad[0, 2, 3]


@pytest.mark.parametrize("size", [1, 5, 12])
def test_one_node_of_each_stratum(size):
    mask = torch.arange(12) < torch.tensor([[size], [12]])
    vectors = latin_normal(mask, 3, torch.Generator().manual_seed(0))[0, :size]
    strata = torch.special.ndtr(vectors.double()).mul(size).long().sort(0).values
    assert (strata == torch.arange(size)[:, None]).all()


def test_discrepancy_is_the_sum_over_pairs_of_vectors():
    first, second = torch.randn(4, 2), torch.randn(3, 2) + 1
    scale = np.mean([float((x - y).square().sum()) for x in first for y in second])

    def kernel(left, right):
        squares = [float((x - y).square().sum()) / scale for x in left for y in right]
        return sum(np.mean(np.exp(np.array(squares) / (-2 * h))) for h in (0.01, 0.1, 1.0))

    expected = kernel(first, first) + kernel(second, second) - 2 * kernel(first, second)
    assert float(maximum_mean_discrepancy(first, second)) == pytest.approx(expected, rel=1e-4)
    assert float(maximum_mean_discrepancy(first, first)) == pytest.approx(0, abs=1e-6)


def test_settings_out_of_range_are_refused():
    with pytest.raises(ValueError, match="graphs_per_step must be 2 or more, got 1"):
        PooledGMMN(graphs_per_step=1)
