"""Public attributes follow their nodes from a table or a graph to the records of a method."""

import warnings
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch_geometric.data import Data

import lightning_dpg as dpg
from lightning_dpg.apps.audit.canaries import find_sites
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.datamodules.node_attributes import LEFT_OUT, NAMED_BY_ATTRIBUTES
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.attributes import PUBLIC_ATTRIBUTES
from lightning_dpg.graph.node_names import GraphFormatError
from lightning_dpg.interfaces import AttributedGraphRecords
from lightning_dpg.methods import ChungLu
from lightning_dpg.preflight import check_data

EDGES = [("a", "b"), ("b", "c"), ("c", "d")]
AGES = {"a": 30.0, "b": 12.0, "c": 40.0, "d": 51.0, "e": 20.0}
"""``e`` has no edge."""


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("id,age,y\n" + "".join(f"{k},{v},{int(v) % 2}\n" for k, v in AGES.items()))
    return str(path)


def records_of(source=EDGES, **options):
    data = EdgeListDataModule(source, **options)
    data.setup("fit")
    return data.records


def test_a_table_gives_the_nodes_and_their_attributes(people):
    data = EdgeListDataModule(EDGES, nodes=Nodes(attributes=people))
    data.setup("fit")
    records = data.records
    assert isinstance(records, AttributedGraphRecords)
    assert dict(zip(records.node_names, records.attributes[:, 0].tolist(), strict=True)) == AGES
    assert records.attribute_names == ["age"]
    assert records.graph.y.tolist() == [0, 0, 0, 1, 0]
    assert records.attributes is data.graph.x  # in memory once
    assert PUBLIC_ATTRIBUTES in records.assumptions
    assert "given as a list" in records.assumptions[0]
    assert data.summary.endswith("; public attributes: age, y, as 1 numbers")


@pytest.mark.usefixtures("ids_in_order")
def test_nodes_can_come_from_elsewhere(people):
    records = records_of(nodes=Nodes("from_edges", attributes=people))
    assert records.node_names == ["a", "b", "c", "d"]
    records = records_of([*EDGES, ("d", "z")], nodes=Nodes("from_edges", attributes=people))
    assert records.attributes[:, 0].tolist() == [30, 12, 40, 51, 0]
    assert records.graph.y.tolist() == [0, 0, 0, 1, -1]
    with pytest.raises(GraphFormatError, match="not among the 5 ids of nodes: 1"):
        records_of([*EDGES, ("d", "z")], nodes=Nodes(attributes=people))


def test_attributes_follow_secret_numbers_and_components(people):
    data = EdgeListDataModule(
        EDGES, nodes=Nodes(attributes=people, names="numbers"), largest_component=True
    )
    data.setup("fit")
    names = data.graph.node_names
    assert sorted(names) == ["a", "b", "c", "d"]
    assert data.records.attributes[:, 0].tolist() == [AGES[name] for name in names]
    assert data.records.graph.y.tolist() == [AGES[name] % 2 for name in names]
    assert NAMED_BY_ATTRIBUTES in data.assumptions


def test_attributes_of_the_graph_itself_are_used_when_the_owner_says_so():
    graph = nx.Graph(EDGES)
    nx.set_node_attributes(graph, dict(graph.degree), "Degree")  # computed from private edges
    nx.set_node_attributes(graph, AGES, "age")
    data = EdgeListDataModule(graph)
    data.setup("fit")
    unasked = data.records
    assert data.notes == [LEFT_OUT]
    assert not isinstance(unasked, AttributedGraphRecords)
    assert "x" not in unasked.graph and PUBLIC_ATTRIBUTES not in unasked.assumptions
    asked = records_of(graph, nodes=Nodes(attributes="from_graph", policy={"Degree": "drop"}))
    assert asked.attribute_names == ["age"]
    assert asked.attributes[:, 0].tolist() == [30, 12, 40, 51]
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = Data(x=torch.eye(3), edge_index=edge_index)
    assert not isinstance(records_of(data), AttributedGraphRecords)
    of_pyg = records_of(data, nodes=Nodes(["0", "1", "2", "3"], attributes="from_graph"))
    assert of_pyg.attributes.tolist() == torch.eye(4)[:, :3].tolist()
    with pytest.raises(GraphFormatError, match="the graph holds no attributes of nodes"):
        records_of(EDGES, nodes=Nodes(attributes="from_graph"))


def test_attributes_of_a_data_set(data_root):
    records = records_of("cora_ml", undirected=True, nodes=Nodes(attributes="from_graph"))
    with np.load(data_root / "npz" / "cora_ml.npz") as archive:
        assert records.attributes.shape == tuple(archive["attr_shape"])
        assert records.attributes.sum() == pytest.approx(archive["attr_data"].sum(), rel=1e-4)
        names = [name.strip() for name in archive["node_names"].tolist()]
        order = [names.index(name) for name in records.node_names]
        assert records.graph.y.tolist() == archive["labels"][order].tolist()


def test_private_columns_are_refused_by_methods_that_cannot_protect_them(people):
    private = {"policy": {"age": "private"}, "domains": {"age": [18, 30, 60]}}
    data = EdgeListDataModule(EDGES, nodes=Nodes(attributes=people, **private))
    data.setup("fit")
    assert list(data.records.private_columns.domains) == ["age"]
    assert not isinstance(data.records, AttributedGraphRecords)  # none is left
    with pytest.raises(
        MisconfigurationException, match=r"'age' is private, and ChungLu(.|\n)*drop"
    ):
        check_data(ChungLu, data)


class Encoder(ChungLu):
    """Needs attributes."""

    capabilities = replace(ChungLu.capabilities, reads=AttributedGraphRecords)


def test_a_method_that_needs_attributes_says_how_to_give_them(people):
    data = EdgeListDataModule(EDGES)
    data.setup("fit")
    with pytest.raises(MisconfigurationException, match=r"--attributes people"):
        check_data(Encoder, data)
    given = EdgeListDataModule(EDGES, nodes=Nodes(attributes=people))
    given.setup("fit")
    check_data(Encoder, given)
    check_data(ChungLu, given)


def test_canaries_of_an_audit_leave_the_attributes(people):
    data = EdgeListDataModule(EDGES, nodes=Nodes(attributes=people))
    data.setup("fit")
    before = data.records
    find_sites(data).insert(torch.tensor([[0, 4]]))
    assert len(data.records.edges) == 4
    assert data.records.attributes is before.attributes
    assert data.records.graph.y is before.graph.y


def test_errors_of_python_name_its_arguments(people):
    for settings, message in (
        (
            {"policy": {"age": "private"}, "domains": {"age": [18, 30, 60]}},
            r'nodes=Nodes\(policy=\{"age": "drop"\}\)$',
        ),
        ({"policy": {"age": "number", "y y": "drop"}}, "has no column 'y y'"),
    ):
        data = EdgeListDataModule(EDGES, nodes=Nodes(attributes=people, **settings))
        with pytest.raises(CommandError, match=message):
            dpg.fit(data, "chung_lu", epsilon=1.0)


def test_a_policy_without_attributes_is_refused():
    with pytest.raises(MisconfigurationException, match="no attributes are used"):
        records_of(nodes=Nodes(policy={"age": "drop"}))


def test_a_fit_says_once_that_attributes_are_left_out():
    graph = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), x=torch.eye(3))
    said = (
        'attributes of the nodes are left out; .* set attributes="from_graph" of lightning_dpg.read'
    )
    with pytest.warns(UserWarning, match=said):
        release = dpg.fit(graph, "chung_lu", epsilon=1.0)
    assert release.sample().x is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "3 nodes")
        dpg.fit(
            EdgeListDataModule(graph, nodes=Nodes(attributes="from_graph")), "chung_lu", epsilon=1.0
        )
