"""TU folders are read like PyTorch Geometric reads them, and bad lines are named."""

import numpy as np
import pytest
import torch
from torch_geometric.io.tu import read_tu_data

from lightning_dpg.datamodules.tu import TUGraphDataModule, read_tu_folder

# A triangle with a self loop and a repeated link, a link, and a path whose last node is alone.
FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3,2\n1, 3\n3, 1\n3, 3\n1, 2\n2, 1\n5, 4\n4, 5\n7, 6\n6, 7\n",
    "graph_indicator": "1\n1\n1\n2\n2\n3\n3\n3\n",
    "graph_labels": "1\n-1\n1\n",
    "node_labels": "5\n0\n5\n5\n5\n0\n2\n2\n",
    "node_attributes": "".join(f"{k / 2}, -{k}e-1\n" for k in range(8)),
}
# Graphs, links, nodes and graphs per class, as the data sets' authors and our papers count them.
REAL = {
    "MUTAG": (188, 3721, 3371, [63, 125]),
    "PROTEINS": (1113, 81044, 43471, [663, 450]),
    "ENZYMES": (600, 37282, 19580, [100] * 6),
    "IMDB-BINARY": (1000, 96531, 19773, [500, 500]),
    "IMDB-MULTI": (1500, 98903, 19502, [500] * 3),
    "DPGGAN-DBLP": (69, 15378, 12227, [21, 24, 24]),
    "DD": (1178, 843046, 334925, [691, 487]),
}


@pytest.fixture
def write(tmp_path):
    """Write a folder, some of whose files are other ones, or missing."""

    def write_files(**changes):
        for name, text in (FILES | changes).items():
            if text is not None:
                (tmp_path / f"TINY_{name}.txt").write_text(text)
        return tmp_path

    return write_files


def test_reads_each_graph(write):
    graphs = read_tu_folder(write())
    assert [graph.edge_index.tolist() for graph in graphs] == [
        [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]],
        [[0, 1], [1, 0]],
        [[0, 1], [1, 0]],
    ]
    assert [graph.num_nodes for graph in graphs] == [3, 2, 3]
    assert graphs[2].node_names == ["0", "1", "2"]
    assert [graph.y.tolist() for graph in graphs] == [[1], [0], [1]]
    # Two attributes, then a column for each of the labels 0, 2 and 5.
    assert torch.allclose(graphs[1].x, torch.tensor([[1.5, -0.3, 0, 0, 1], [2, -0.4, 0, 0, 1]]))


def test_labels_and_features_may_be_missing(write):
    folder = write(graph_labels=None, node_labels=None, node_attributes=None)
    graphs = read_tu_folder(folder)
    assert all(graph.y is None and graph.x is None for graph in graphs)
    datamodule = TUGraphDataModule(str(folder))
    datamodule.setup("fit")
    assert datamodule.labels is None and datamodule.sizes.tolist() == [3, 2, 3]


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("A", None, "no file named NAME_A.txt"),
        ("A", "", "A.txt: empty"),
        ("graph_indicator", None, "no file named NAME_graph_indicator.txt"),
        ("A", "1, 2\n\n2, one\n", "A.txt, line 3: expected 2 whole numbers"),
        ("A", "1, 2\n2, 1\n3\n", "A.txt, line 3: "),
        ("A", "1\n2\n", "A.txt, line 1: expected two node numbers"),
        ("A", "1, 2\n2, 1\n0, 1\n", "line 3: expected nodes from 1 to 8"),
        ("A", "1, 9\n9, 1\n", "line 1: "),
        ("A", "1, 2\n2, 1\n3, 4\n4, 3\n", "line 3: expected two nodes of the same graph"),
        ("A", "1, 2\n2, 1\n1, 3\n1, 3\n", "line 3: expected each link in both directions"),
        ("graph_indicator", "1\n1\n1\n2\n2\n4\n4\n4\n", "line 6: expected 2 or 3"),
        ("graph_indicator", "1\n1\n1\n2\n2\n1\n3\n3\n", "line 6: expected 2 or 3"),
        ("graph_indicator", "2\n2\n2\n2\n2\n3\n3\n3\n", "line 1: expected 1:"),
        ("graph_labels", "1\n-1\n", "graph_labels.txt: 2 lines\nexpected one for each graph"),
        ("node_labels", "1\n" * 9, "node_labels.txt: 9 lines\nexpected one for each node"),
        ("node_attributes", "1, 2\n" * 7 + "1, x\n", "line 8: expected 2 numbers"),
    ],
)
def test_says_what_is_wrong_and_where(write, file, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_tu_folder(write(**{file: text}))
    assert len(str(caught.value).splitlines()) <= 5


def test_directions_can_be_dropped(write):
    folder = write(A="2, 1\n2, 3\n5, 4\n")
    graphs = read_tu_folder(folder, undirected=True)
    assert [graph.num_edges // 2 for graph in graphs] == [2, 1, 0]


def test_unknown_sets_are_named_with_the_known_ones(monkeypatch, tmp_path):
    monkeypatch.setenv("LIGHTNING_DPG_DATA", str(tmp_path))
    (tmp_path / "tu" / "TINY").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"known: graph_atlas, planted_sets, .*, TINY\n"):
        TUGraphDataModule("MUTAG").setup("fit")
    TUGraphDataModule("planted_sets").setup("fit")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "DD" else ()) for name in REAL]
)
def test_real_sets_have_their_published_sizes(data_root, name):
    datamodule = TUGraphDataModule(name)
    datamodule.setup("fit")
    num_graphs, num_edges, num_nodes, per_class = REAL[name]
    assert len(datamodule.graphs) == num_graphs
    assert len(datamodule.edges) == num_edges
    assert len(datamodule.graph_of) == num_nodes
    assert datamodule.labels.bincount().tolist() == per_class


def test_reads_what_pytorch_geometric_reads(data_root):
    folder = data_root / "tu" / "ENZYMES" / "raw"
    before = sorted(folder.parent.rglob("*"))
    graphs = read_tu_folder(folder)
    expected, slices, _ = read_tu_data(str(folder), "ENZYMES")
    assert torch.equal(torch.cat([graph.edge_index for graph in graphs], 1), expected.edge_index)
    assert torch.equal(torch.cat([graph.x for graph in graphs]), expected.x)
    assert torch.equal(torch.cat([graph.y for graph in graphs]), expected.y)
    assert np.array_equal([g.num_nodes for g in graphs], slices["x"].diff())
    assert sorted(folder.parent.rglob("*")) == before
