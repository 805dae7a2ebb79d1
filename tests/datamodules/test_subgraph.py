"""An edge lies in no more subgraphs than the declared group size."""

import gzip
from collections import Counter

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.io import read_planetoid_data

from lightning_dpg.datamodules.subgraph import (
    RepeatedEdgeRecords,
    SubgraphDataModule,
    ego_nodes,
    occurrences,
)
from lightning_dpg.formats.io import from_networkx
from tests.training import asked


def set_up(*args, **kwargs):
    datamodule = SubgraphDataModule(*args, **kwargs)
    datamodule.setup("fit")
    return datamodule


def pairs(edges):
    return set(map(tuple, edges.tolist()))


@given(
    size=st.integers(3, 12),
    subgraphs=st.integers(1, 8),
    most=st.integers(1, 4),
    seed=st.integers(0),
)
@settings(max_examples=60)
def test_one_edge_changes_as_many_subgraphs_as_it_may(size, subgraphs, most, seed):
    rng = np.random.default_rng(seed)
    node_sets = [
        np.sort(rng.choice(size, rng.integers(2, size + 1), replace=False))
        for _ in range(subgraphs)
    ]
    graph = nx.gnm_random_graph(size, int(rng.integers(2, size * (size - 1) // 2 + 1)), seed=seed)
    edge = min(graph.edges)
    kept = [pairs(part) for part in occurrences(from_networkx(graph), node_sets, most, seed)]
    graph.remove_edge(*edge)
    without = [pairs(part) for part in occurrences(from_networkx(graph), node_sets, most, seed)]
    changes = Counter(
        pair for one, other in zip(kept, without, strict=True) for pair in one ^ other
    )
    holders = [set(edge) <= set(nodes.tolist()) for nodes in node_sets]
    assert changes == Counter({edge: min(most, sum(holders))})
    assert all(edge not in part for part, holds in zip(kept, holders, strict=True) if not holds)


def test_without_a_limit_subgraphs_are_induced():
    graph = nx.les_miserables_graph()
    datamodule = set_up(num_subgraphs=12, size=30, max_occurrences=12)
    for part in datamodule.graphs:
        induced = graph.subgraph(part.node_names)
        links = part.edge_index.T.tolist()
        assert {(part.node_names[i], part.node_names[j]) for i, j in links} == {
            *induced.edges,
            *((v, u) for u, v in induced.edges),
        }
        assert part.node_names == sorted(part.node_names)
    assert datamodule.sizes.tolist() == [30] * 12


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_ego_nodes_are_those_of_networkx(hops):
    graph = nx.gnp_random_graph(40, 0.07, seed=2)
    centers = np.array([3, 0, 17])
    for center, nodes in zip(centers, ego_nodes(from_networkx(graph), centers, hops), strict=True):
        assert nodes.tolist() == sorted(nx.ego_graph(graph, center, hops))


def test_coin_shares_edges_among_equal_subgraphs():
    everybody = np.arange(60)
    kept = occurrences(from_networkx(nx.complete_graph(60)), [everybody] * 3, 1, seed=1)
    sizes = np.array([len(part) for part in kept])
    assert sizes.sum() == 1770 and abs(sizes - 590).max() < 100  # standard deviation 20


def test_batches_hold_all_occurrences_of_an_edge_or_none():
    datamodule = asked(set_up(num_subgraphs=8, size=60, max_occurrences=3), 0.5)

    def occurring(edges):
        return Counter(tuple(sorted(pair)) for pair in datamodule._nodes[edges].tolist())

    total = occurring(datamodule.edges)
    assert max(total.values()) == 3
    for batch in datamodule.train_dataloader():
        drawn = occurring(batch.data)
        assert 0.3 < len(drawn) / len(total) < 0.7 and batch.sample_rate == 0.5
        assert all(total[pair] == count for pair, count in drawn.items())


def test_records_of_several_edges():
    edges = torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7]])
    records = RepeatedEdgeRecords(edges, torch.tensor([1, 0, 1, 2]), 0.1)
    assert len(records) == 3
    assert records[torch.tensor([1, 2])].data.tolist() == [[0, 1], [4, 5], [6, 7]]
    assert records[torch.tensor([0])].data.tolist() == [[2, 3]]
    assert records[torch.empty(0, dtype=torch.long)].data.shape == (0, 2)


def test_says_what_is_public():
    random, ego = (set_up(kind=kind, max_occurrences=2).assumptions for kind in ("nodes", "ego"))
    assert "at most 2 of the 20 subgraphs" in random[0]
    assert ego[1:] == random and "looking at the private edges" in ego[0]
    assert "all links of the centers" in ego[0]
    (far, *_) = set_up(kind="ego", hops=2).assumptions
    assert "all links" not in far and "at most 2 links away" in far


def test_sizes_of_ego_graphs_are_the_degrees_that_are_said_to_be_public():
    whole = nx.gnm_random_graph(30, 60, seed=1)
    datamodule = set_up(whole, kind="ego", num_subgraphs=30)
    assert sorted(datamodule.sizes.tolist()) == sorted(d + 1 for _, d in whole.degree)


def test_planetoid_keeps_its_features(data_root):
    folder = data_root / "planetoid" / "Cora"
    before = sorted(folder.rglob("*"))
    datamodule = set_up("Cora", kind="ego", num_subgraphs=5)
    assert sorted(folder.rglob("*")) == before
    assert all(graph.x.shape == (graph.num_nodes, 1433) for graph in datamodule.graphs)
    node = int(datamodule._nodes[-1])
    again = set_up("Cora", kind="nodes", num_subgraphs=1, size=2708).graphs[0]
    assert torch.equal(datamodule.graphs[-1].x[-1], again.x[node])
    assert again.num_edges // 2 == 5278


def test_ego_graphs_have_the_class_of_their_center():
    graph = nx.convert_node_labels_to_integers(nx.random_labeled_tree(40, seed=3))
    whole = from_networkx(graph)
    whole.y = torch.arange(40) + 100
    datamodule = set_up(whole, kind="ego", num_subgraphs=15, max_occurrences=15)
    centers = datamodule.labels - 100
    assert len(centers.unique()) == 15
    for center, part in zip(centers.tolist(), datamodule.graphs, strict=True):
        assert {int(name) for name in part.node_names} == {center, *graph.neighbors(center)}
    assert set_up(whole, kind="nodes").labels is None
    whole.y = torch.tensor([1])  # the label of a graph of a set
    assert set_up(whole, kind="ego").labels is None


def test_classes_are_read_beside_the_edges(tmp_path, monkeypatch):
    (tmp_path / "graphs").mkdir()
    with gzip.open(tmp_path / "graphs" / "ring.edges.gz", "wt") as file:
        file.writelines(f"{i} {(i + 1) % 9}\n" for i in range(9))
    with gzip.open(tmp_path / "graphs" / "ring.labels.txt.gz", "wt") as file:
        file.writelines(f"{i % 4}\n" for i in range(9))
    monkeypatch.setenv("LIGHTNING_DPG_DATA", str(tmp_path))
    datamodule = set_up("ring", kind="ego", num_subgraphs=9, max_occurrences=9)
    for label, graph in zip(datamodule.labels.tolist(), datamodule.graphs, strict=True):
        (center,) = (i for i in range(3) if (graph.edge_index[0] == i).sum() == 2)
        assert label == int(graph.node_names[center]) % 4


def test_largest_component_keeps_features_and_classes(data_root):
    """The numbers of Jin and Chen, 2022, Table 2, and the classes of another file."""
    cut = {"largest_component": True, "kind": "ego", "num_subgraphs": 2120}
    datamodule = set_up("CiteSeer", **cut, max_occurrences=2120)
    assert "2120 of 3327 nodes" in datamodule.assumptions[0]
    other = set_up("CITESEER-2120", kind="ego", num_subgraphs=2120, max_occurrences=2120)
    assert torch.equal(datamodule.labels, other.labels)
    assert torch.equal(datamodule.edges, other.edges)
    whole = read_planetoid_data(str(data_root / "planetoid" / "CiteSeer" / "raw"), "CiteSeer")
    for graph in datamodule.graphs[::300]:
        assert torch.equal(graph.x, whole.x[list(map(int, graph.node_names))])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "star"}, "kind must be"),
        ({"size": 78}, "size 78 exceeds the 77 nodes"),
        ({"kind": "ego", "num_subgraphs": 78}, "num_subgraphs 78 exceeds"),
        ({"max_occurrences": 0}, "max_occurrences must be positive"),
    ],
)
def test_says_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        set_up(**arguments)
