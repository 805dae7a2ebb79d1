"""A plain Lightning loop keeps a budget, or is refused before anything is read."""

import math

import networkx as nx
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, GraphSetDataModule, Nodes
from lightning_dpg.datamodules.batches import AllRecords
from lightning_dpg.interfaces import PrivateColumns
from lightning_dpg.methods import BTER, ChungLu, DPNetGAN, ErdosRenyiSet
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from tests.attributed import AttributedDataModule
from tests.small_methods import METHODS, SHORT, made
from tests.training import quiet_trainer

GRAPH = nx.karate_club_graph()
N = len(GRAPH)


class Unread(pl.LightningDataModule):
    """Must not be touched."""

    def prepare_data(self):
        raise AssertionError("the data were read")

    setup = train_dataloader = val_dataloader = test_dataloader = prepare_data


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("run", ["fit", "validate", "test", "fast_dev_run"])
def test_no_method_reads_data_without_an_accountant(name, run, tmp_path):
    method = made(name, SHORT | {"num_nodes": N})
    trainer = quiet_trainer(fast_dev_run=run == "fast_dev_run", default_root_dir=tmp_path)
    with pytest.raises(MisconfigurationException, match="PrivacyAccountant") as error:
        getattr(trainer, run.replace("fast_dev_run", "fit"))(method, Unread())
    said = str(error.value)
    assert name in said and "lightning_dpg.fit(" in said and len(said.splitlines()) <= 5
    assert ('PrivacyAccountant("inf")' in said) and (
        "epsilon=1" in said
    ) == method.capabilities.adds_noise
    assert not method.ledger.entries and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["DPNetGAN", "CELL"])
def test_a_derived_class_with_callbacks_of_its_own_is_held_to_a_budget(name, monkeypatch):
    method = made(name, SHORT | {"num_nodes": N})
    monkeypatch.setattr(method, "configure_callbacks", list)
    with pytest.raises(MisconfigurationException, match="PrivacyAccountant"):
        quiet_trainer().fit(method, EdgeListDataModule(GRAPH))
    assert not method.ledger.entries


@pytest.mark.parametrize(
    "name", [name for name in METHODS if METHODS[name].capabilities.is_inductive]
)
def test_graphs_to_classify_are_not_read_without_an_accountant(name):
    with pytest.raises(MisconfigurationException, match="PrivacyAccountant"):
        quiet_trainer().predict(made(name, SHORT), Unread())


def accounted(epsilon=4.0, **options):
    return quiet_trainer(PrivacyAccountant(epsilon, 0.0), **options)


HELD_OUT = {"val_fraction": 0.3, "test_fraction": 0.3}


@pytest.mark.parametrize(
    ("run", "method", "data"),
    [
        ("validate", lambda: BTER(N), lambda: EdgeListDataModule(GRAPH, **HELD_OUT)),
        ("test", lambda: BTER(N), lambda: EdgeListDataModule(GRAPH, **HELD_OUT)),
        ("test", ErdosRenyiSet, lambda: GraphSetDataModule([GRAPH])),
    ],
)
def test_a_method_that_has_released_nothing_is_not_evaluated(run, method, data):
    with pytest.raises(MisconfigurationException, match=r"has released nothing.*\nfit it first"):
        getattr(accounted(), run)(method(), data())


def test_a_second_fit_of_one_object_is_no_silent_success():
    method = BTER(N)
    accounted().fit(method, EdgeListDataModule(GRAPH))
    with pytest.raises(MisconfigurationException, match="fitted already"):
        accounted(5.0).fit(method, EdgeListDataModule(GRAPH))
    assert method.ledger.epsilon(0.0) <= 4 and len(method.ledger.entries) == 5


ONE_SHOT = [name for name, method in METHODS.items() if issubclass(method, OneShotSynthesizer)]
NEED_THEIR_SIZE = {"PrivCom", "KatzPrivCom", "PrivComAsPublished"}
"""Their parameters are made with the object."""


@pytest.mark.parametrize("name", ONE_SHOT)
def test_a_method_of_one_release_takes_the_number_of_nodes_from_the_data(name):
    settings = SHORT | {"max_degree": 17}  # that of the graph
    try:
        method = made(name, settings)
    except MisconfigurationException as error:
        assert "num_nodes is needed" in str(error)
        return
    assert name not in NEED_THEIR_SIZE
    known = made(name, settings | {"num_nodes": N})
    for fitted in (method, known):
        epsilon = 20.0 if fitted.capabilities.adds_noise else math.inf
        needs_delta = not fitted.capabilities.is_pure
        rows = epsilon if fitted.reads_private_columns else None
        accountant = PrivacyAccountant(epsilon, 1e-4 if needs_delta else 0.0, row_epsilon=rows)
        data = AttributedDataModule(GRAPH, torch.eye(N))  # most methods do not read attributes
        if fitted.capabilities.learns_private_columns:
            values = torch.arange(N)[:, None] % 2
            data.private_columns = PrivateColumns({"region": ["north", "other"]}, values)
        quiet_trainer(accountant).fit(fitted, data)
    assert dict(method.hparams) == dict(known.hparams)
    assert [entry.name for entry in method.ledger.entries] == [
        entry.name for entry in known.ledger.entries
    ]
    assert method.assumptions == known.assumptions
    assert method.sample(torch.Generator().manual_seed(0)).num_nodes == N


def test_another_number_of_nodes_is_refused_before_anything_is_planned():
    with pytest.raises(MisconfigurationException, match=f"num_nodes is 5, but the graph has {N}"):
        accounted().fit(BTER(5), EdgeListDataModule(GRAPH))


@pytest.mark.parametrize("fraction", ["val_fraction", "test_fraction"])
@pytest.mark.parametrize("from_checkpoint", [False, True])
def test_training_edges_are_no_test_edges(fraction, from_checkpoint, tmp_path):
    method = ChungLu(N)
    trainer = accounted()
    trainer.fit(method, EdgeListDataModule(GRAPH))
    trainer.save_checkpoint(tmp_path / "run.ckpt")
    if from_checkpoint:
        method = ChungLu.load_from_checkpoint(tmp_path / "run.ckpt")
    with pytest.raises(MisconfigurationException, match=rf"trained with {fraction} 0\.0"):
        accounted().test(method, EdgeListDataModule(GRAPH, **{fraction: 0.2}))
    assert accounted().test(method, EdgeListDataModule(GRAPH), verbose=False) == []


def test_held_out_edges_of_the_same_split_are_tested_in_the_order_of_the_fit():
    """Numbers in a secret order belong to one run; another data module draws others."""
    settings = {"test_fraction": 0.3, "nodes": Nodes(names="numbers")}
    method, first = ChungLu(N), EdgeListDataModule(GRAPH, **settings)
    accounted(100.0).fit(method, first)
    (expected,) = accounted().test(method, first, verbose=False)
    other = EdgeListDataModule(GRAPH, **settings)
    assert accounted().test(method, other, verbose=False) == [expected]
    assert torch.equal(other.edges, first.edges)


class Own(pl.LightningDataModule):
    """Serves what the protocols ask for, in attributes and in methods."""

    num_pairs = N * (N - 1) // 2

    def setup(self, stage):
        made = EdgeListDataModule(GRAPH)
        made.setup("fit")
        self.records = made.records
        self.num_edges = len(made.edges)

    def check_request(self, request, max_epochs):
        assert request.kind == "all"

    def train_dataloader(self):
        return AllRecords(self.records, 1)

    def write_key(self, path):
        return False


class Bare(pl.LightningDataModule):
    """A data module of another project."""

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.zeros(9))


class Half(Bare):
    records = None
    num_edges = 3

    def check_request(self, request, max_epochs):
        pass


class Other(Own):
    """Serves records that lack something."""

    def setup(self, stage):
        super().setup(stage)
        del self.records.node_names


def test_a_data_module_of_the_user_that_serves_the_protocols():
    method = BTER()
    accounted().fit(method, Own())
    assert len(method.ledger.entries) == 5


@pytest.mark.parametrize(
    ("method", "data", "parts"),
    [
        (BTER, Bare(), ["Bare lacks records, num_edges, num_pairs, check_request, write_key"]),
        (BTER, Half(), ["Half lacks num_pairs, write_key"]),
        (lambda: DPNetGAN(N), Bare(), ["DPNetGAN", "EdgeListDataModule(graph)"]),
        (ErdosRenyiSet, Bare(), ["a set of graphs", "GraphSetDataModule(graphs)"]),
        (BTER, Bare().train_dataloader(), ["DataLoader", "EdgeListDataModule(graph)"]),
        (ErdosRenyiSet, Bare().train_dataloader(), ["DataLoader", "GraphSetDataModule(graphs)"]),
        (BTER, Other(), ["records of Other lack node_names"]),
        (BTER, GraphSetDataModule(), ["GraphSetDataModule holds a set of graphs"]),
    ],
)
def test_other_data_are_refused_with_the_way_out(method, data, parts):
    method = method()
    with pytest.raises(MisconfigurationException) as error:
        quiet_trainer(PrivacyAccountant(4.0, 1e-6)).fit(method, data)
    said = str(error.value)
    assert all(part in said for part in parts), said
    assert len(said.splitlines()) <= 5 and not method.ledger.entries
