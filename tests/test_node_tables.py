"""Nodes, their order and their names stay the same from the file to the release."""

import csv
import json
import logging
import random
import re
import stat
import sys
import zipfile

import networkx as nx
import numpy as np
import pytest
import scipy
import torch
import yaml
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from safetensors import safe_open
from torch_geometric.datasets import FakeDataset

from lightning_dpg.datamodules import Columns, EdgeListDataModule, Nodes, SubgraphDataModule
from lightning_dpg.datamodules.loading import load_graph
from lightning_dpg.formats.io import GraphFormatError, read_graph
from lightning_dpg.graph.graph import adjacency, undirected_edges
from lightning_dpg.main import main
from tests.processes import ends, start_two_commands

CONFIG = {
    "model": {"class_path": "ChungLu"},
    "data": {"class_path": "EdgeListDataModule"},
    "trainer": {
        "max_epochs": 1,
        "accelerator": "cpu",
        "enable_progress_bar": False,
        "enable_model_summary": False,
    },
    "privacy": {"epsilon": 4.0, "delta": 0.0},
}
NAMES = [f"CUST-{i}" for i in range(1, 21)]
EDGES = [(NAMES[i], NAMES[(i + step) % 20]) for i in range(20) for step in (1, 3)]


@pytest.fixture
def fit(tmp_path, monkeypatch):
    """Fit in a fresh folder; give the run's folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(CONFIG))

    def fit(*options):
        before = set(tmp_path.glob("runs/*/*"))
        assert main(["fit", "--config", "run.yaml", *options]) == 0
        (made,) = set(tmp_path.glob("runs/*/*")) - before
        return made

    return fit


def write_table(path, edges):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("amount", "from", "to"), *((0.5, u, v) for u, v in edges)])


def released_names(run):
    with safe_open(run / "release" / "generator.safetensors", "pt") as file:
        generator = json.loads(file.metadata()["lightning_dpg"])["node_names"]
    with np.load(run / "release" / "synthetic-0.npz") as archive:
        assert archive["node_names"].tolist() == generator
    assert read_graph(run / "release" / "synthetic-0.graphml").node_names == generator
    return generator


@pytest.mark.parametrize("suffix", ["graphml", "gexf", "csv"])
def test_release_names_follow_no_edge(fit, tmp_path, suffix):
    tables = []
    for seed, edges in enumerate((EDGES, EDGES[1:])):
        random.Random(seed).shuffle(edges := list(edges))
        path = tmp_path / f"graph{seed}.{suffix}"
        if suffix == "csv":
            write_table(path, edges)
        else:
            getattr(nx, f"write_{suffix}")(nx.Graph(edges), path)
        tables.append(released_names(fit("--data.name", str(path), "--data.nodes.names", "ids")))
    assert tables[0] == tables[1] == NAMES


def test_one_line_says_what_was_read_to_the_owner_only(fit, tmp_path, caplog, monkeypatch):
    write_table(tmp_path / "transfers.csv", EDGES)
    with caplog.at_level(logging.INFO):
        fit("--data.name", "transfers.csv")
        assert "20 nodes" not in caplog.text and "CUST" not in caplog.text  # as under cron
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        run = fit("--data.name", "transfers.csv")
    line = (
        "read transfers.csv: 20 nodes, 40 edges (comma; columns 2 and 3 of 3; header 'from', 'to'; "
        "0 repeated, 0 loops); e.g. CUST-1, CUST-2, ...; "
        "dropped from the edges: amount"
    )
    assert line in caplog.messages
    for path in run.rglob("*"):
        assert path.is_dir() or b" repeated, " not in path.read_bytes()
    sentence = json.loads((run / "release" / "privacy.json").read_text())["assumptions"][0]
    assert "the number of nodes, 20 (although read off" in sentence
    assert "an id that occurs on one line only is counted because of that line" in sentence


@pytest.mark.parametrize(
    "options",
    [
        ["--data.nodes", "customers.csv", "--data.nodes.column", "id"],
        ["--data.init_args.nodes.column=id", "--data.init_args.nodes=customers.csv"],
        ["--data.nodes", "{ids: customers.csv}", "--data.nodes.column", "id"],
    ],
)
def test_node_list_keeps_ids_without_edges_and_refuses_others(fit, tmp_path, capfd, options):
    write_table(tmp_path / "transfers.csv", EDGES)
    (tmp_path / "customers.csv").write_text("\n".join(["age,id", *(f"9,{n}" for n in NAMES[::-1])]))
    for edges in (EDGES, EDGES[2:]):  # the first two lines are all that name some id
        write_table(tmp_path / "transfers.csv", edges)
        run = fit("--data.name", "transfers.csv", *options)
        assert released_names(run) == NAMES
    sentence = json.loads((run / "release" / "privacy.json").read_text())["assumptions"][0]
    assert sentence.endswith("(given as a list beside the edges)")
    write_table(tmp_path / "transfers.csv", [*EDGES, ("CUST-1", "CUST-SECRET")])
    before = sorted(tmp_path.rglob("*"))
    assert main(["fit", "--config", "run.yaml", "--data.name", "transfers.csv", *options]) == 2
    said = capfd.readouterr().err
    assert "not among the 20 ids of nodes: 1, the first in line 42" in said
    assert "SECRET" not in said
    assert sorted(tmp_path.rglob("*")) == before


def ids_in(release):
    """The ids that stand somewhere in the files of a release, also in compressed arrays."""
    found = set()
    for path in release.iterdir():
        parts = [path.read_bytes()]
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                parts = [archive.read(name) for name in archive.namelist()]
        text = b"".join(parts).replace(b"\0", b"")  # numpy writes four bytes for each sign
        assert b"node_names.csv" not in text
        found |= {*re.findall(r"CUST-\d+", text.decode("latin-1"))}
    return found


def test_numbers_for_names(fit, tmp_path):
    write_table(tmp_path / "transfers.csv", EDGES)
    orders = []
    for _ in range(2):
        run = fit("--data.name", "transfers.csv")
        assert released_names(run) == [str(i) for i in range(20)]
        key = run / "node_names.csv"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        header, *rows = csv.reader(key.read_text().splitlines())
        assert header == ["number", "name"] and [int(row[0]) for row in rows] == [*range(20)]
        orders.append([row[1] for row in rows])
        assert sorted(orders[-1]) == sorted(NAMES)
        assert not ids_in(run / "release")
        assert "the number of nodes, 20 (" in (run / "release" / "privacy.json").read_text()
    assert orders[0] != orders[1] != NAMES != orders[0]
    run = fit("--data.name", "transfers.csv", "--data.nodes.names", "ids")
    assert ids_in(run / "release") == {*NAMES} and not (run / "node_names.csv").exists()


def test_numbering_holds_the_same_edges_and_survives_a_resume(fit, tmp_path):
    write_table(tmp_path / "transfers.csv", EDGES)
    options = ["--data.name", "transfers.csv", "--data.nodes.names", "numbers"]
    run = fit(*options)
    names = [row[1] for row in csv.reader((run / "node_names.csv").read_text().splitlines())][1:]
    (checkpoint,) = run.glob("checkpoints/*.ckpt")
    state = torch.load(checkpoint, weights_only=True)["EdgeListDataModule"]
    resumed = fit(*options, "--ckpt_path", str(checkpoint))
    assert (resumed / "node_names.csv").read_bytes() == (run / "node_names.csv").read_bytes()
    data = EdgeListDataModule(
        "transfers.csv", nodes=Nodes(names="numbers"), val_fraction=0.3, seed=1
    )
    data.setup("fit")
    data.load_state_dict(data.state_dict() | {"numbering": state["numbering"]})
    assert len(data.edges) < len(EDGES) and len(data.assumptions) == 3
    pairs = torch.cat([data.edges, data.val_links.edges]).tolist()
    assert {frozenset((names[i], names[j])) for i, j in pairs} == {*map(frozenset, EDGES)}
    assert torch.equal(undirected_edges(data.train_graph), data.edges)
    keep = EdgeListDataModule("transfers.csv", nodes=Nodes(names="ids"))
    keep.setup("fit")
    with pytest.raises(MisconfigurationException, match=r"set nodes\.names to numbers"):
        keep.load_state_dict(state)


def test_a_run_with_names_is_not_resumed_with_numbers(fit, tmp_path):
    write_table(tmp_path / "transfers.csv", EDGES)
    ids = ("--data.nodes.names", "ids")
    (checkpoint,) = fit("--data.name", "transfers.csv", *ids).glob("checkpoints/*.ckpt")
    args = [
        "fit",
        "--config",
        "run.yaml",
        "--data.name",
        "transfers.csv",
        "--data.nodes.names",
        "numbers",
    ]
    assert main([*args, "--ckpt_path", str(checkpoint)]) == 2
    assert not list(tmp_path.glob("runs/*/version_1/release"))


PROBE = """
from pytorch_lightning import Callback


class Probe(Callback):
    def on_train_end(self, trainer, pl_module):
        data = trainer.datamodule
        with open(f"rank{trainer.global_rank}", "w") as file:
            print(data.state_dict(), data.edges.tolist(), data.assumptions, file=file)
"""


def test_two_processes_share_one_numbering(tmp_path):
    (tmp_path / "probe.py").write_text(PROBE)
    write_table(tmp_path / "t.csv", EDGES)
    sizes = {"embedding_dim": 8, "critic_dim": 8, "generator_dim": 8, "num_samples": 100}
    trainer = {"devices": 2, "strategy": "ddp_find_unused_parameters_true"}
    config = {
        "model": {"class_path": "DPNetGAN", "init_args": sizes},
        "data": {"class_path": "EdgeListDataModule", "init_args": {"nodes": {"names": "numbers"}}},
        "trainer": CONFIG["trainer"] | trainer | {"callbacks": [{"class_path": "probe.Probe"}]},
        "privacy": {"epsilon": 8.0, "delta": 1e-4},
    }
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
    args = ("fit", "--config", "run.yaml", "--data.name", "t.csv")
    codes, outs = ends(start_two_commands(tmp_path, *args))
    assert codes == [0, 0], outs
    one, other = ((tmp_path / f"rank{rank}").read_text() for rank in range(2))
    assert one == other and "numbering" in one
    key = next(tmp_path.glob("runs/*/*/node_names.csv")).read_text()
    names = [row.partition(",")[2] for row in key.split()[1:]]
    assert str([NAMES.index(name) for name in names]) in one


def test_where_the_nodes_come_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = nx.Graph(EDGES)
    nx.write_graphml(graph, "g.graphml")
    write_table(tmp_path / "g.csv", EDGES)
    (tmp_path / "data" / "graphs").mkdir(parents=True)
    (tmp_path / "data" / "graphs" / "known.edges.gz").write_text("0 1\n1 5\n2 3\n3 4\n")
    monkeypatch.setenv("LIGHTNING_DPG_DATA", str(tmp_path / "data"))
    for name, nodes, part in [
        ("karate", None, "built-in graph"),
        ("g.graphml", None, "the input's own node table"),
        (graph, None, "the input's own node table"),
        ("g.csv", None, "read off the private lines"),
        ("g.csv", "from_edges", "read off the private lines"),
        ("known", None, "the largest id plus one"),
        ("known", "from_edges", "read off the private lines"),
        ("known", range(9), "given as a list"),
        (graph, [*NAMES, "CUST-99"], "given as a list"),
        ("g.graphml", [*NAMES, "CUST-99"], "given as a list"),
    ]:
        data = EdgeListDataModule(name, nodes=nodes)
        data.setup("fit")
        assert part in data.assumptions[0], (name, nodes)
        if nodes is not None and nodes != "from_edges":
            assert data.num_nodes == len(nodes)
    for name in ("g.csv", "known"):
        data = SubgraphDataModule(name, size=6, num_subgraphs=2)
        data.setup("fit")
        assert "read off the private lines" in data.assumptions[0]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"name": "karate", "nodes": "from_edges"}, "has a node table"),
        ({"name": nx.Graph(EDGES), "nodes": NAMES[1:]}, "not among the 19 ids of nodes: 4"),
        ({"name": nx.Graph(EDGES), "columns": Columns("a", "b")}, "lists and tables"),
        ({"name": "karate", "nodes": "nowhere.csv"}, "nodes nowhere.csv: no such file"),
        ({"nodes": {"names": "random"}}, "names must be 'auto', 'ids' or 'numbers'"),
        (
            {"name": [("a", "b")], "columns": Columns("from")},
            "both columns.source and columns.target",
        ),
        ({"name": None}, "NoneType is no graph"),
        ({"name": 5}, "int is no graph"),
        ({"name": np.ones((3, 4))}, "shape (3, 4)"),
        ({"name": FakeDataset(2)}, "FakeDataset is no graph"),
    ],
)
def test_refusals_from_python(arguments, part):
    with pytest.raises((GraphFormatError, MisconfigurationException, ValueError)) as error:
        EdgeListDataModule(**arguments).setup("fit")
    assert part in str(error.value) and len(str(error.value).splitlines()) <= 5


def test_matrices_and_data_sets_of_one_graph():
    karate = load_graph("karate")
    matrix = adjacency(karate)
    formats = [matrix.asformat(kind) for kind in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")]
    for source in (*formats, scipy.sparse.csr_matrix(matrix), matrix.toarray(), matrix > 0):
        assert torch.equal(load_graph(source).edge_index, karate.edge_index)
    single = FakeDataset(1, avg_num_nodes=20, edge_dim=0)
    graph = load_graph(single, undirected=True)
    assert graph.num_nodes == single[0].num_nodes
