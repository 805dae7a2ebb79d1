"""Public attributes go from two tables to a release, and from there to a graph neural network."""

import io

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.nn import SGConv

import lightning_dpg as dpg
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.attributes import PUBLIC_ATTRIBUTES
from lightning_dpg.main import main
from lightning_dpg.methods import ChungLu
from lightning_dpg.release.writer import (
    ATTRIBUTES,
)
from lightning_dpg.run_folder import GENERATOR
from tests.training import quiet_trainer

NAMES = [f"p{i}" for i in range(20)]
BRANCHES = ["bank", "retail"] * 10
AGES = [20.5 + i for i in range(20)]


@pytest.fixture
def tables(tmp_path):
    """Paths of a table of edges and one of people, of whom one has no edge."""
    edges = [f"{NAMES[i]},{NAMES[(i + step) % 19]}\n" for i in range(19) for step in (1, 2)]
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(edges))
    rows = zip(NAMES, AGES, BRANCHES, range(20), strict=True)
    people = [f"{name},{age},{branch},{i % 3}\n" for name, age, branch, i in rows]
    (tmp_path / "people.csv").write_text("who,age,branch,y\n" + "".join(people))
    return str(tmp_path / "edges.csv"), str(tmp_path / "people.csv")


@pytest.fixture
def release(tmp_path, tables):
    edges, people = tables
    data = EdgeListDataModule(edges, nodes=Nodes(column="who", attributes=people))
    return dpg.fit(data, "chung_lu", epsilon=1.0, out=tmp_path / "out")


def expected(names):
    order = [NAMES.index(name) for name in names]
    x = [[AGES[i], BRANCHES[i] == "bank", BRANCHES[i] == "retail"] for i in order]
    return torch.tensor(x, dtype=torch.float), torch.tensor([i % 3 for i in order])


def check(graph):
    x, y = expected(graph.node_names)
    assert torch.equal(graph.x, x) and torch.equal(graph.y, y)
    assert graph.attribute_names == ["age", "branch=bank", "branch=retail"]


def test_from_two_tables_to_a_trained_network(tmp_path, release):
    opened = dpg.open_release(tmp_path / "out")
    graph = opened.sample(0)
    assert sorted(graph.node_names) == sorted(NAMES)
    check(graph)
    check(release.sample(3))
    assert SGConv(3, 3)(graph.x, graph.edge_index).shape == (20, 3)  # as it comes
    assert PUBLIC_ATTRIBUTES in opened.statement["assumptions"]
    drawn = opened.to_networkx(0)
    assert drawn.nodes["p3"] == {"age": 23.5, "branch=retail": 1.0, "y": 0}
    saved = opened.save(tmp_path / "copy")
    check(dpg.open_release(saved).sample(0))
    assert main(["verify", str(saved)]) == 0


def test_files_of_the_release_hold_the_attributes(tmp_path, release):
    folder = tmp_path / "out" / "release"
    for suffix in ("graphml", "npz"):
        data = EdgeListDataModule(
            str(folder / f"synthetic-0.{suffix}"), nodes=Nodes(attributes="from_graph")
        )
        check(data.graph)
    theirs = nx.read_graphml(folder / "synthetic-0.graphml").nodes["p4"]
    assert theirs == {"age": 24.5, "branch=bank": 1.0, "y": 1}
    with np.load(folder / ATTRIBUTES) as archive:  # by scipy alone
        parts = [archive[f"attr_{part}"] for part in ("data", "indices", "indptr")]
        matrix = scipy.sparse.csr_array(tuple(parts), shape=archive["attr_shape"])
        assert np.array_equal(matrix.toarray(), expected(archive["node_names"])[0])
    assert ATTRIBUTES in (folder / "SHA256SUMS").read_text()
    assert b"branch" not in (folder / GENERATOR).read_bytes()


def test_a_release_without_its_attributes_or_with_others_is_refused(tmp_path, release):
    path = tmp_path / "out" / "release" / ATTRIBUTES
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(CommandError, match=f"{ATTRIBUTES}: missing"):
        dpg.open_release(tmp_path / "out")
    path.write_bytes(content[:-1])
    with pytest.raises(CommandError, match="has the checksum"):
        dpg.open_release(tmp_path / "out")
    path.with_name("SHA256SUMS").unlink()
    with pytest.raises(CommandError, match="no attributes of nodes"):
        dpg.open_release(tmp_path / "out")
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    np.savez(path, **arrays | {"node_names": arrays["node_names"][::-1]})
    with pytest.raises(CommandError, match="not those of the nodes"):
        dpg.open_release(tmp_path / "out")


def test_a_release_without_attributes_has_no_file_of_them(tmp_path):
    release = dpg.fit("karate", "chung_lu", epsilon=1.0, out=tmp_path / "out")
    assert not (release.folder / ATTRIBUTES).exists()
    assert release.sample(0).x is None
    assert not release.to_networkx(0).nodes[0]


def test_classes_are_released_without_other_attributes(tmp_path, tables):
    edges, people = tables
    policy = {"age": "drop", "branch": "label", "y": "drop"}
    data = EdgeListDataModule(edges, nodes=Nodes(column="who", attributes=people, policy=policy))
    dpg.fit(data, "chung_lu", epsilon=1.0, out=tmp_path / "out")
    graph = dpg.open_release(tmp_path / "out").sample(0)
    assert graph.x.shape == (20, 0)
    classes = dict(zip(graph.node_names, graph.y.tolist(), strict=True))
    assert classes == dict(zip(NAMES, [0, 1] * 10, strict=True))
    again = EdgeListDataModule(
        str(tmp_path / "out" / "release" / "synthetic-0.graphml"),
        nodes=Nodes(attributes="from_graph"),
    )
    assert torch.equal(again.graph.y, graph.y)


def test_a_checkpoint_draws_graphs_with_attributes(tmp_path, tables):
    edges, people = tables
    data = EdgeListDataModule(edges, nodes=Nodes(column="who", attributes=people))
    trainer = quiet_trainer(PrivacyAccountant(1.0, 0.0))
    trainer.fit(ChungLu(20), data)
    trainer.save_checkpoint(tmp_path / "run.ckpt")
    empty = EdgeListDataModule("no/such/file.csv")
    (graph,) = quiet_trainer().predict(ChungLu(20), empty, ckpt_path=tmp_path / "run.ckpt")
    check(graph)
