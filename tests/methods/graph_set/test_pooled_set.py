"""Pooled statistics of a set are released once, and the drawn graphs have them."""

import math
from random import Random

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.datamodules.subgraph import SubgraphDataModule
from lightning_dpg.graph.swaps import SwapGraph
from lightning_dpg.methods import PooledSet
from lightning_dpg.methods.graph_set import pooled_set
from lightning_dpg.methods.graph_set.pooled_set import draw_edges, num_wedges
from lightning_dpg.methods.graph_set.pooled_shapes import (
    GraphClasses,
    closed_shares,
    estimated_counts,
    expected_degrees,
    whole_degrees,
)
from lightning_dpg.privacy.noise import NoiseSource
from tests.training import quiet_trainer

MOST = np.array([300.0, 500, 800, 1000, 400])


def test_one_class_shrinks_as_bter_does():
    """By hand: 40 (1 - (2 * 10 / 40)^2) of 100."""
    assert closed_shares(np.array([40.0]), np.array([100.0]), 10) == pytest.approx([0.3])
    assert closed_shares(np.array([20.0]), np.array([100.0]), 10) == [0]
    assert closed_shares(np.array([-40.0]), np.array([100.0]), 10) == [0]


def test_without_noise_nothing_shrinks():
    closed = np.array([0.0, 50, 80, 900, 400])
    np.testing.assert_allclose(closed_shares(closed, MOST, 0), closed / MOST)
    assert not closed_shares(np.zeros(5), MOST, 0).any()
    assert not closed_shares(np.zeros(5), np.zeros(5), 3).any()


def test_sets_without_triangles_get_nearly_none():
    rng = np.random.default_rng(0)
    noise = rng.laplace(scale=30, size=(2000, 5))
    before = np.clip(noise / MOST, 0, 1) @ MOST
    after = np.array([closed_shares(row, MOST, 30) @ MOST for row in noise])
    assert after.mean() < before.mean() / 4
    assert (after == 0).mean() > 0.9


def test_classes_that_differ_by_noise_alone_share_one_mean():
    rng = np.random.default_rng(0)
    true = 0.3 * MOST
    errors = {"shrunk": 0.0, "clipped": 0.0}
    for row in true + rng.laplace(scale=60, size=(2000, 5)):
        errors["shrunk"] += abs(closed_shares(row, MOST, 60) * MOST - true).mean()
        errors["clipped"] += abs(np.clip(row / MOST, 0, 1) * MOST - true).mean()
    assert errors["shrunk"] < 0.8 * errors["clipped"]


def test_classes_that_differ_beyond_noise_keep_their_shares():
    closed = np.array([30.0, 250, 80, 900, 40])
    np.testing.assert_allclose(closed_shares(closed, MOST, 2), closed / MOST, atol=0.02)


SPARSE = [nx.gnm_random_graph(12, 30, seed=1), nx.path_graph(9), nx.complete_graph(5)]


def fit(folder, method, data, epsilon, max_epochs=1, **options):
    trainer = quiet_trainer(
        PrivacyAccountant(epsilon, 0.0),
        max_epochs=max_epochs,
        default_root_dir=folder,
        enable_checkpointing=True,
    )
    trainer.fit(method, data, **options)
    return trainer


def friendship_graphs(count):
    """A node that is linked to all others, which form cliques of 4: five cliques or six."""
    return [nx.windmill_graph(5 + number % 2, 5) for number in range(count)]


def networkx_of(graph):
    result = nx.empty_graph(graph.num_nodes)
    result.add_edges_from(graph.edge_index.T.tolist())
    return result


def test_without_noise_the_drawn_set_has_edges_triangles_and_centers(tmp_path):
    originals = friendship_graphs(8)
    method = PooledSet(graphs_per_class=4)
    fit(tmp_path, method, GraphSetDataModule(originals), math.inf)
    drawn = [networkx_of(g) for g in method.sample_set(torch.Generator().manual_seed(0))]
    assert [len(g) for g in drawn] == [len(g) for g in originals]
    assert [g.number_of_edges() for g in drawn] == [g.number_of_edges() for g in originals]
    assert all(max(d for _, d in g.degree) == len(g) - 1 for g in drawn)
    triangles = [sum(sum(nx.triangles(g).values()) / 3 for g in s) for s in (originals, drawn)]
    assert triangles[1] == pytest.approx(triangles[0], rel=0.1)
    uniform = 8 * math.comb(23, 3) * 0.2**3
    assert abs(triangles[1] - triangles[0]) < abs(uniform - triangles[0]) / 4


def test_a_resumed_run_releases_nothing_again(tmp_path):
    method = PooledSet()
    trainer = fit(tmp_path, method, GraphSetDataModule(SPARSE), 2.0)
    keys = [entry.key for entry in method.ledger.entries]
    assert keys == [
        "num_edges_per_graph",
        "pooled_degrees",
        "pooled_triangles",
        "pooled_components",
    ]
    assert sum(entry.event.epsilon for entry in method.ledger.entries) == pytest.approx(2.0)
    resumed = PooledSet()
    checkpoint = trainer.checkpoint_callback.best_model_path
    # A further epoch has a step, which finds all released and no budget left.
    fit(tmp_path, resumed, GraphSetDataModule(SPARSE), 2.0, 2, ckpt_path=checkpoint)
    assert resumed.ledger.entries == method.ledger.entries
    seeds = [torch.Generator().manual_seed(5) for _ in range(2)]
    first, second = (m.sample(seed) for m, seed in zip((method, resumed), seeds, strict=True))
    assert torch.equal(first.edge_index, second.edge_index)


def test_edges_that_occur_often_cost_more_noise(tmp_path):
    method = PooledSet()
    fit(tmp_path, method, SubgraphDataModule(size=40, max_occurrences=4), 3.0)
    found = [entry.sensitivity for entry in method.ledger.entries]
    assert found == [4, 2 * 4 * 1024, 4 * 1024, 4 * 1024]


def test_estimated_numbers_of_edges_are_nearer_than_noisy_ones():
    sizes = np.full(600, 12)
    true = np.where(np.arange(600) % 3 == 0, 66, 40 + np.arange(600) % 7)
    noise = np.random.default_rng(0).laplace(scale=5, size=600).round().astype(int)
    noisy = np.clip(true + noise, 0, 66)
    found = estimated_counts(noisy, sizes, 0.2)
    assert ((found >= 0) & (found <= 66)).all()
    assert abs(found - true).mean() < abs(noisy - true).mean() / 1.5
    assert (estimated_counts(noisy, sizes, math.inf) == noisy).all()
    assert (estimated_counts(noisy, sizes, 50.0) == noisy).all()  # noise that is almost never there


def test_noise_has_the_scale_of_the_ledger(tmp_path, monkeypatch):
    """The components are the last of the statistics: 0.05 of epsilon for one number in 1024ths."""
    draws = []
    method = PooledSet()
    release = pooled_set._noisy
    monkeypatch.setattr(
        pooled_set, "_noisy", lambda m, v, e: draws.append((v, e)) or release(m, v, e)
    )
    fit(tmp_path, method, GraphSetDataModule(SPARSE), 1.0)
    (value, entry) = draws[-1]
    assert value.tolist() == [3 * 2 * 1024]  # all three are connected
    method.ledger.budget = None
    method._noise = NoiseSource(unsafe_seed=1)
    noisy = release(method, np.zeros(4000, dtype=np.int64), entry)
    assert abs(noisy).mean() == pytest.approx(1024 / 0.05, rel=0.1)  # its standard error is 1.6 %


def test_degrees_of_a_shape_have_the_asked_sum_and_keep_the_center():
    shape = np.array([1.0, 0.6, 0.3, 0.1])
    for num_edges in (14, 40, 90):
        degrees = expected_degrees(15, num_edges, shape)
        assert degrees.sum() == pytest.approx(2 * num_edges, rel=1e-6)
        assert degrees[0] == pytest.approx(14, abs=0.01)
        assert (np.diff(degrees) <= 1e-9).all()
        whole = whole_degrees(degrees, num_edges, 1)
        assert whole.sum() == 2 * num_edges and whole[0] == 14 and whole.min() >= 1


@pytest.mark.parametrize("num_edges", [0, 1, 5, 19, 60, 190])
@pytest.mark.parametrize("share", [0.1, 0.6, 1.0])
def test_any_number_of_edges_can_be_drawn(num_edges, share):
    shape = np.array([0.9, 0.5, 0.5, 0.1])
    edges = draw_edges(20, num_edges, shape, 0.5, share, Random(0))
    graph = nx.empty_graph(20)
    graph.add_edges_from(edges)
    assert graph.number_of_edges() == num_edges
    if share == 1.0 and num_edges >= 19:
        assert nx.is_connected(graph)
    if share == 0.6 and num_edges == 19:
        assert max(map(len, nx.connected_components(graph))) == 12


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_where_swaps_of_a_random_graph_fall_short_of_triangles_another_start_is_taken(seed):
    """A center and dense others: 70 % of all wedges closed are out of reach of a shuffled graph."""
    shape = np.array([1.0, *[1 / 3] * 9])
    degrees = whole_degrees(expected_degrees(31, 165, shape), 165, 1)
    shuffled = SwapGraph(degrees.tolist(), 165, Random(seed))
    shuffled.shuffle()
    target = 0.7 * num_wedges(degrees) / 3
    assert shuffled.reach_triangles(target, connected=True) > 20
    drawn = nx.Graph(draw_edges(31, 165, shape, 0.7, 1.0, Random(seed)))
    assert sorted(degree for _, degree in drawn.degree) == sorted(degrees.tolist())
    assert nx.is_connected(drawn)
    assert sum(nx.triangles(drawn).values()) / 3 == pytest.approx(target, abs=1)


def test_graphs_of_equal_size_and_density_are_one_class():
    sizes = np.repeat([5, 8, 11, 30], 50)
    counts = np.repeat([10, 28, 20, 100], 50) + np.arange(200) % 2 * (sizes > 8)
    classes = GraphClasses.fitted(sizes, counts, 25)
    found = classes.of(sizes, counts)
    assert found.min() >= 0 and found.max() < classes.number
    together = {(size, count): set() for size, count in zip(sizes, counts, strict=True)}
    for size, count, number in zip(sizes, counts, found, strict=True):
        together[size, count].add(number)
    assert all(len(numbers) == 1 for numbers in together.values())
    assert len({min(numbers) for numbers in together.values()}) > 2
