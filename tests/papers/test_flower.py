"""Federated averaging with client processes equals training in one process."""

import math
import multiprocessing
import sys

import networkx as nx
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch.nn.utils import parameters_to_vector

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import TUGraphDataModule
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.methods import CentralGromovWasserstein, GromovWassersteinFeatures
from lightning_dpg.nn.node_encoders import GCN
from lightning_dpg.papers.jin2022.clients import (
    Client,
    LocalTraining,
    weighted_update,
)
from lightning_dpg.papers.jin2022.flower import FlowerClients
from lightning_dpg.privacy.ledger import Budget
from tests.training import quiet_trainer

TRAINING = LocalTraining(2, 0.01, 0.1, 0.5)


def clients(count):
    """Clients that hold a path and a star each."""
    held = []
    for number in range(count):
        union = nx.disjoint_union(nx.path_graph(5 + number), nx.star_graph(4))
        edges = torch.tensor(list(union.edges)).T
        graph_of = torch.tensor([0] * (5 + number) + [1] * 5)
        features = torch.randn(len(graph_of), 3)
        both = torch.cat([edges, edges.flip(0)], 1)
        held.append(Client(features, both, graph_of, torch.tensor([0, 1]), 1 / count))
    return held


class Stops(pl.Callback):
    """Interrupt a run as a signal does."""

    def on_train_batch_end(self, *_):
        raise KeyError("stopped")


def fit(*callbacks, **options):
    graphs = []
    for size in range(10):
        for label, kind in enumerate((nx.path_graph, lambda n: nx.star_graph(n - 1))):
            graphs.append(from_networkx(kind(5 + size % 5)))
            graphs[-1].y = torch.tensor([label])
    pl.seed_everything(0, verbose=False)
    method = GromovWassersteinFeatures(
        num_clients=5, concentration=5.0, rounds=3, width=4, **options
    )
    quiet_trainer(PrivacyAccountant(math.inf, 1e-5), *callbacks, max_epochs=1).fit(
        method, TUGraphDataModule(graphs)
    )
    return method


@pytest.mark.slow
def test_processes_over_flower_give_the_weights_of_one_process():
    pytest.importorskip("flwr")
    alone = fit(weights="trained")
    apart = fit(weights="trained", flower_processes=2)
    assert int(apart.rounds_made) == 3
    start = fit(weights="random").network
    first, second, untrained = (
        parameters_to_vector(net.parameters()) for net in (alone.network, apart.network, start)
    )
    assert (first - untrained).abs().max() > 0.01
    torch.testing.assert_close(second, first, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(apart.embedding["features"], alone.embedding["features"])
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_run_that_is_stopped_leaves_no_process():
    pytest.importorskip("flwr")
    with pytest.raises(KeyError, match="stopped"):
        fit(Stops(), weights="trained", flower_processes=2)
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_process_that_dies_is_told():
    pytest.importorskip("flwr")
    torch.manual_seed(0)
    network, held = GCN(3, 4, 2), clients(3)
    flower = FlowerClients([held[0::2], held[1::2]], network, TRAINING)
    expected = weighted_update(network, held, TRAINING)
    torch.testing.assert_close(flower.weighted_update(network), expected)
    flower._processes[1].terminate()
    flower._processes[1].join()
    with pytest.raises(MisconfigurationException, match="1 of 2 client processes answered"):
        flower.weighted_update(network)
    assert not multiprocessing.active_children()


def test_without_flower_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "flwr", None)
    method = GromovWassersteinFeatures(weights="trained", flower_processes=2)
    with pytest.raises(MisconfigurationException, match=r"pip install .*lightning_dpg\[flower\]"):
        method.check_budget(Budget(math.inf, 1e-5))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"flower_processes": 2}, "weights: random does not"),
        ({"flower_processes": -1, "weights": "trained"}, "must be 0 or more, got -1"),
    ],
)
def test_settings_that_cannot_be(options, message):
    with pytest.raises((MisconfigurationException, ValueError), match=message):
        CentralGromovWasserstein(**options)
