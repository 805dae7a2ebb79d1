"""Every method runs with every data module, or refuses it before anything is booked."""

import math
import re
import tempfile

import networkx as nx
import pytest
import pytorch_lightning as pl
from jsonargparse import Namespace
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg import datamodules, methods
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import (
    EdgeListDataModule,
    EdgeTableDataModule,
    GraphSetDataModule,
    SubgraphDataModule,
    TUGraphDataModule,
)
from lightning_dpg.interfaces import GraphRecords, GraphSetRecords
from lightning_dpg.preflight import check_data
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.run.configurations import shipped_configs
from lightning_dpg.run.lightning_cli import PrivateCLI
from tests.graphs import labelled
from tests.small_methods import METHODS, RECOMMENDED, SHORT, made, marks_of
from tests.training import quiet_trainer

N = 12
GRAPH = nx.connected_watts_strogatz_graph(N, 4, 0.3, seed=0)


def labelled_graphs():
    return labelled([nx.cycle_graph(n) if n % 2 else nx.star_graph(n) for n in range(4, 12)])


def table():
    pytest.importorskip("ibis", reason="no ibis: install the extra 'tables'")
    with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
        file.writelines(["source,target\n", *(f"{i},{j}\n" for i, j in GRAPH.edges)])
    return EdgeTableDataModule(file.name, steps_per_epoch=2)


DATA = {
    "EdgeListDataModule": lambda: EdgeListDataModule(GRAPH, steps_per_epoch=2),
    "EdgeTableDataModule": table,
    "GraphSetDataModule": lambda: GraphSetDataModule(labelled_graphs(), steps_per_epoch=2),
    "TUGraphDataModule": lambda: TUGraphDataModule(labelled_graphs(), steps_per_epoch=2),
    "SubgraphDataModule": lambda: SubgraphDataModule(
        GRAPH, num_subgraphs=6, size=6, steps_per_epoch=2
    ),
    "edges that repeat": lambda: SubgraphDataModule(
        GRAPH, num_subgraphs=6, size=6, max_occurrences=2, steps_per_epoch=2
    ),
}
OF_ONE_GRAPH = {"EdgeListDataModule", "EdgeTableDataModule"}


def affordable(method):
    """A finite epsilon, unless the method protects nothing."""
    try:
        method.accept_budget(Budget(100.0, 1e-4))
    except MisconfigurationException:
        return math.inf
    return 100.0


def test_every_data_module_is_looked_at():
    exported = {name for name in datamodules.__all__ if name.endswith("DataModule")}
    # One is the base of the others, and one serves several of them.
    assert exported - {"GraphDataModule", "DatabaseDataModule"} == set(DATA) - {"edges that repeat"}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=marks_of(name)) for name in METHODS],
)
def test_a_method_trains_or_is_refused_before_anything_is_booked(name, data, tmp_path):
    method, served = made(name, SHORT | {"num_nodes": N}), DATA[data]()
    accountant = PrivacyAccountant(affordable(method), 1e-4)
    trainer = quiet_trainer(accountant, default_root_dir=tmp_path)
    # None of these graphs has attributes.
    fits = METHODS[name].capabilities.reads is (
        GraphRecords if data in OF_ONE_GRAPH else GraphSetRecords
    )
    if data == "edges that repeat":
        fits &= METHODS[name].capabilities.repeats_edges
    if fits:
        try:
            trainer.fit(method, served)
        except MisconfigurationException as error:  # of settings, such as labels that are missing
            assert re.search("label|max_occurrences|private columns", str(error)), error
            return
        assert method.ledger.entries
        return
    with pytest.raises(MisconfigurationException, match=r"use |set data") as refused:
        trainer.fit(method, served)
    assert name in str(refused.value) and len(str(refused.value).splitlines()) <= 5
    assert not method.ledger.entries
    assert not list(tmp_path.iterdir())


CONFIGS = [
    name
    for name, path in shipped_configs().items()
    if "model:" in path.read_text() and "paper" not in name
]
OVERLAYS = [name for name in shipped_configs() if name.startswith("data/")]


class ParserMade(Exception):
    """The parser is made; nothing is run."""


@pytest.fixture(scope="module")
def parse():
    """The parser of ``fit``, which one run takes half a second to make."""
    parsers = []

    class Parsed(PrivateCLI):
        def parse_arguments(self, parser, args):
            parsers.append(parser)
            raise ParserMade

    with pytest.raises(ParserMade):
        Parsed(["fit"])

    def parsed(*names):
        args = [arg for name in names for arg in ("--config", str(shipped_configs()[name]))]
        return parsers[0].parse_args(["fit", *args]).fit

    return parsed


@pytest.mark.parametrize(
    "config",
    [pytest.param(x, marks=[] if x in RECOMMENDED else [pytest.mark.slow]) for x in CONFIGS],
)
def test_an_overlay_of_data_changes_no_method(config, parse):
    """All overlays lie over the configuration; a graph of the package stands in for their files.

    Private columns are those of one graph, which stays.
    """
    before, after = parse(config), parse(config, *OVERLAYS)
    assert after.model == before.model
    method = METHODS[after.model.class_path.rpartition(".")[2]]
    name = before.data.init_args.name if method.capabilities.learns_private_columns else "karate"
    settings = after.data.init_args.as_dict() | {"name": name, "split": None}
    data = EdgeListDataModule(**settings)
    data.setup("fit")
    if method.capabilities.reads is GraphSetRecords:
        with pytest.raises(MisconfigurationException, match="learns a set of graphs"):
            check_data(method, data)
        return
    check_data(method, data)
    settings = after.model.get("init_args", Namespace()).as_dict()
    settings |= {"num_nodes": data.records.num_nodes}
    data.check_request(method(**settings).batch_request(), after.trainer.max_epochs)


def test_cell_keeps_its_full_batch(parse):
    after = parse("cell", *OVERLAYS)
    assert after.model.init_args.sample_rate == 1.0


@pytest.mark.parametrize(
    ("make", "key", "asked"),
    [
        (lambda: (methods.PrivCom(N, rank=2), EdgeListDataModule(GRAPH)), "products", 24),
        (
            lambda: (
                methods.LDPGromovWasserstein(
                    weights="private", width=2, rounds=50, local_epochs=1, num_clients=2
                ),
                GraphSetDataModule(labelled_graphs()),
            ),
            "client",
            50,
        ),
    ],
)
def test_asked_is_made(make, key, asked):
    """Ten batches, the default of a data module, cut them before."""
    pl.seed_everything(0, verbose=False)
    method, data = make()
    quiet_trainer(PrivacyAccountant(8.0, 1e-4)).fit(method, data)
    assert [entry.steps for entry in method.ledger.entries if key in entry.name] == [asked]
