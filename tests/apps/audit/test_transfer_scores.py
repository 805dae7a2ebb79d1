"""Edges with transfers as canaries of counts of amounts and times."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch

import lightning_dpg as dpg
from lightning_dpg.apps.audit.canaries import transfers_of_canaries
from lightning_dpg.apps.audit.scores.columns import COUNTS, transfer_score
from lightning_dpg.apps.audit.scores.observation import Observation
from lightning_dpg.datamodules.transfers import joined
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.interfaces import TransferBounds
from lightning_dpg.methods import Attributed
from lightning_dpg.methods.single_graph.protected_unit import counts_of
from lightning_dpg.preflight import check_data
from lightning_dpg.privacy.budget import Budget
from tests.planting import plant
from tests.transfers import BOUNDS, TransferDataModule, transfers_of

K = 3
SETTINGS = {"structure": "erdos_renyi", "max_transfers": K}
PAIR = torch.tensor([[0, 9]])


def audit(graph, **settings):
    given = {"epsilon": 1.0, "canaries": 2, "runs": 4, "view": "white_box"}
    data = TransferDataModule(graph, bounds=settings.pop("bounds", BOUNDS))
    return dpg.audit(data, "attributed", **SETTINGS | given | settings)


def fitted():
    """A method that has released everything, with its data."""
    data = TransferDataModule(nx.path_graph(12))
    data.setup("fit")
    check_data(Attributed, data)
    method = Attributed(12, **SETTINGS)
    method.accept_data(data)
    classes = torch.arange(12) % 2
    method.transfers.amounts.count_classes = method.transfers.amounts.sum_classes = classes
    return method, data


@pytest.mark.parametrize("key", COUNTS)
def test_the_score_of_one_canary_is_its_likelihood_ratio(key):
    method, data = fitted()
    known = undirected_edges(from_networkx(nx.path_graph(12)))
    without = transfers_of(known)
    with_edge = joined(without, transfers_of_canaries(PAIR, BOUNDS, K))
    counts = [
        COUNTS[key](method, counts_of(each, method.facts, method.space)).ravel()
        for each in (without, with_edge)
    ]
    scale = 3.0
    noisy = counts[0] + np.random.default_rng(0).integers(-9, 9, len(counts[0]))
    gaps = [np.abs(noisy - each).sum() / scale for each in counts]
    observation = Observation(
        earlier={},
        method=method,
        entry=SimpleNamespace(key=key, event=SimpleNamespace(pure_epsilon=1.0), sensitivity=scale),
        data=data,
        noisy=torch.from_numpy(noisy),
        pairs=PAIR,
        known_graph=data.train_graph,
    )
    assert transfer_score(observation).tolist() == pytest.approx([gaps[0] - gaps[1]])


@pytest.mark.parametrize("key", COUNTS)
def test_a_canary_moves_each_read_by_its_sensitivity(key):
    """Of the strengths by half or more: both nodes leave one cell, and enter another one."""
    method, _ = fitted()
    (read,) = (read for read in method.plan(Budget(1.0, 0.0), 1) if read.key == key)
    without = transfers_of(undirected_edges(from_networkx(nx.path_graph(12))))
    one, other = (
        COUNTS[key](method, counts_of(each, method.facts, method.space))
        for each in (without, joined(without, transfers_of_canaries(PAIR, BOUNDS, K)))
    )
    moved = np.abs(one - other).sum()
    assert read.sensitivity / 2 <= moved <= read.sensitivity


@pytest.mark.parametrize("unit", ["relation", "transfer"])
@pytest.mark.parametrize(
    ("bounds", "reads"),
    [(BOUNDS, 9), (TransferBounds(1000.0, None), 5), (TransferBounds(None, BOUNDS.window), 6)],
)
def test_an_audit_scores_all_reads_of_transfers(unit, bounds, reads):
    report = audit(nx.path_graph(20), unit=unit, bounds=bounds)
    # A pair whose total counts has no number, and one transfer alone has no gap.
    has_one = (unit == "relation") == (bounds.window is None)
    assert len(report.scored) + len(report.unscored) == reads - (has_one and unit == "relation")
    assert not report.refuting and len(report.unscored) == (has_one and unit == "transfer")


@pytest.mark.parametrize("key", ["hours", "strengths"])
def test_noise_of_transfers_that_is_off_is_caught(monkeypatch, key):
    """Few canaries, which hardly share a cell of these counts."""
    plant(monkeypatch, 0, [key])
    report = audit(nx.path_graph(20), epsilon=0.2, runs=12)
    assert len(report.refuting) == 1
