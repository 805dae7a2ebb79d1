"""Batches of a set hold edges of all graphs, and bad sets are refused."""

from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch_geometric.data import Data
from torch_geometric.datasets import FakeDataset, KarateClub

from lightning_dpg.datamodules import TUGraphDataModule
from lightning_dpg.datamodules.graph_set import GraphSetDataModule, split_graphs
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import ChungLu
from lightning_dpg.preflight import check_data
from tests.training import asked

TRIANGLE_AND_PATH = [nx.complete_graph(3), nx.path_graph(4)]


LINK = torch.tensor([[0, 1], [1, 0]])


def set_up(*args, **kwargs):
    datamodule = GraphSetDataModule(*args, **kwargs)
    datamodule.setup("fit")
    return datamodule


def pairs(edges):
    return set(map(tuple, edges.tolist()))


sets_of_graphs = st.lists(
    st.builds(
        lambda size, seed: nx.gnm_random_graph(size, 1 + seed % size, seed=seed),
        st.integers(3, 8),
        st.integers(0, 10**6),
    ),
    min_size=1,
    max_size=6,
)


@given(sets_of_graphs)
@settings(max_examples=40)
def test_nodes_are_numbered_in_one_sequence(graphs):
    datamodule = set_up(graphs)
    union = nx.disjoint_union_all(graphs)
    assert pairs(datamodule.edges) == {(min(edge), max(edge)) for edge in union.edges}
    assert datamodule.edges.tolist() == sorted(datamodule.edges.tolist())
    assert datamodule.sizes.tolist() == [len(graph) for graph in graphs]
    assert datamodule.graph_of.tolist() == [k for k, g in enumerate(graphs) for _ in g]
    assert datamodule.num_edges == union.number_of_edges()
    # Taking the union apart gives the graphs back.
    parts = split_graphs(make_graph(datamodule.edges, len(union)), datamodule.sizes.tolist())
    for part, graph in zip(parts, datamodule.graphs, strict=True):
        assert torch.equal(part.edge_index, graph.edge_index)
        assert (part.num_nodes, part.node_names) == (graph.num_nodes, graph.node_names)


def test_batches_hold_edges():
    data = asked(set_up(TRIANGLE_AND_PATH, steps_per_epoch=40), 0.5)
    edges = [batch.data for batch in data.train_dataloader()]
    assert len(edges) == 40
    assert set().union(*map(pairs, edges)) == pairs(data.edges)
    data.trainer = SimpleNamespace(global_rank=1, world_size=2, lightning_module=None)
    sampler = data.train_dataloader().sampler
    assert (sampler.rank, sampler.world_size, sampler.num_records) == (1, 2, 6)


def test_labels_and_features_come_along():
    first = from_networkx(nx.path_graph(3))
    first.x, first.y = torch.eye(3), torch.tensor(4)
    second = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=torch.tensor([[7]]))
    datamodule = set_up([first, second])
    assert datamodule.labels.tolist() == [4, 7]
    assert torch.equal(datamodule.graphs[0].x, torch.eye(3))
    assert set_up(TRIANGLE_AND_PATH).labels is None
    second.y = None
    with pytest.raises(ValueError, match="1 of 2 graphs have a label"):
        set_up([first, second])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "no set"}, "built in: graph_atlas, planted_sets"),
        ({"name": []}, "no graph"),
        ({"name": [nx.path_graph(3), nx.DiGraph([(0, 1)])]}, "graph 1 of the list: .*directed"),
        ({"name": nx.path_graph(3)}, "a Graph is one graph.*\n.*EdgeListDataModule"),
        ({"name": Data(edge_index=LINK)}, "a Data is one graph"),
        ({"name": None}, "NoneType is no set of graphs"),
        ({"name": ["karate"]}, "graph 0 of the list: a str is no graph"),
        ({"name": [np.ones((3, 3))]}, "a ndarray is no graph"),
        ({"name": KarateClub()}, "graph 0 has 34 labels y"),
        ({"steps_per_epoch": 0}, "steps_per_epoch must be positive"),
    ],
)
def test_says_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        set_up(**arguments)


def test_data_sets_of_many_graphs():
    graphs = FakeDataset(4, avg_num_nodes=10, edge_dim=0)
    for module in (GraphSetDataModule(graphs), TUGraphDataModule(graphs)):
        module.setup("fit")
        assert module.sizes.tolist() == [graph.num_nodes for graph in graphs]
        assert module.num_edges == sum(graph.num_edges for graph in graphs) // 2
        assert module.labels.tolist() == [int(graph.y) for graph in graphs]


def test_directions_of_a_list_are_dropped_on_request():
    directed = [nx.DiGraph([("a", "b"), ("b", "c")]), Data(edge_index=LINK[:, :1], num_nodes=2)]
    with pytest.raises(ValueError, match="set undirected=True"):
        set_up(directed)
    for module in (GraphSetDataModule, TUGraphDataModule):
        data = module(directed, undirected=True)
        data.setup("fit")
        assert data.edges.tolist() == [[0, 1], [1, 2], [3, 4]]


def test_a_folder_of_a_set_can_be_a_path(tmp_path):
    (tmp_path / "S_A.txt").write_text("1, 2\n2, 1\n")
    (tmp_path / "S_graph_indicator.txt").write_text("1\n1\n")
    data = TUGraphDataModule(tmp_path)
    data.setup("fit")
    assert data.edges.tolist() == [[0, 1]]


def test_methods_of_one_graph_are_sent_elsewhere():
    with pytest.raises(MisconfigurationException, match="use EdgeListDataModule"):
        check_data(ChungLu, set_up(TRIANGLE_AND_PATH))


def test_prediction_reads_no_graph():
    datamodule = GraphSetDataModule("no set", num_graphs=3)
    datamodule.setup("predict")
    assert [int(seed) for seed in datamodule.predict_dataloader()] == [0, 1, 2]
    with pytest.raises(ValueError, match="num_graphs must be positive"):
        GraphSetDataModule(num_graphs=0).predict_dataloader()


def test_graphs_without_edges_are_part_of_a_list():
    triangle, lonely = nx.complete_graph(3), nx.empty_graph(2)
    none = torch.empty(2, 0, dtype=torch.long)
    loops = [nx.Graph([(0, 0)]), Data(edge_index=LINK[:1].repeat(2, 1), num_nodes=2)]
    graphs = [lonely, triangle, Data(edge_index=none, num_nodes=1), *loops]
    data = GraphSetDataModule(graphs)
    data.setup("fit")
    assert data.sizes.tolist() == [2, 3, 1, 1, 2]
    assert data.edges.tolist() == [[2, 3], [2, 4], [3, 4]]
