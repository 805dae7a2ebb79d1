"""Parquet files are read as the edge lists of the same rows, and written block by block."""

from uuid import UUID

import numpy as np
import pyarrow
import pytest
import torch
from pyarrow import parquet

from lightning_dpg.formats.arrow_edges import _positions
from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.io import GraphFormatError, read, read_graph, write_blocks, write_graph
from lightning_dpg.graph.graph import make_graph, undirected_edges


def table(path, **columns):
    parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize("names", [["7", "10", "2", "30"], ["é a", '"b"', "c\t", "07"]])
def test_a_graph_is_read_as_it_was_written(names, tmp_path):
    graph = make_graph(torch.tensor([[0, 1], [2, 1], [3, 0]]), 4, names)
    write_graph(graph, tmp_path / "g.parquet")
    again = read_graph(tmp_path / "g.parquet", nodes=names)
    assert again.node_names == names
    assert torch.equal(again.edge_index, graph.edge_index)


def test_columns_hold_numbers_where_all_names_are_numbers(tmp_path):
    edges = torch.tensor([[0, 1], [1, 2]])
    for names, kind in ((["5", "6", "12"], "int64"), (["5", "06", "12"], "string")):
        write_blocks([edges], names, tmp_path / "g.parquet")
        assert {str(t) for t in parquet.read_schema(tmp_path / "g.parquet").types} == {kind}


def test_blocks_are_written_one_after_the_other(tmp_path):
    edges = torch.combinations(torch.arange(40))
    file = tmp_path / "g.parquet"

    def blocks():
        for block in edges.split(300):
            assert not file.exists()
            yield block

    write_blocks(blocks(), [str(i) for i in range(40)], file)
    assert parquet.ParquetFile(file).num_row_groups == 3
    assert torch.equal(undirected_edges(read_graph(file)), edges)


def test_columns_are_chosen_and_others_are_named(tmp_path):
    file = table(tmp_path / "t.parquet", amount=[1.5, 2.5], from_id=[3, 4], to_id=[4, 9])
    reading = read(file, undirected=True)
    assert reading.graph.node_names == ["3", "4", "9"]
    assert "dropped from the edges: amount" in reading.summary
    same = read(file, undirected=True, columns=Columns("2", "3"))
    assert torch.equal(same.graph.edge_index, reading.graph.edge_index)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"source": [1, None, 2], "target": [2, 3, None]}, "2 of 3 rows lack an id, .* row 1"),
        ({"source": ["a", " NaN"], "target": ["b", "c"]}, "1 of 2 rows lack an id"),
        ({"source": [0.5], "target": [1.5]}, "row 0 .* float that is no whole number"),
        ({"source": ["a", "source"], "target": ["b", "target"]}, "row 1 .* header once more"),
        ({"source": ["1", "2", "a"], "target": ["2", "3", "b"]}, "row 2 .* two whole numbers"),
        ({"a": [1], "b": [2], "c": [3]}, "no two with names such as source and target"),
        ({"source": [], "target": []}, "no rows"),
    ],
)
def test_what_is_no_graph_is_refused(columns, said, tmp_path):
    file = table(tmp_path / "t.parquet", **columns)
    with pytest.raises(GraphFormatError, match=said):
        read_graph(file)


@pytest.mark.parametrize(
    ("columns", "edges"),
    [
        ({"source": [1, 2], "target": ["a", "1"]}, [("1", "a"), ("2", "1")]),
        (
            {"source": np.array([2**63 + 1, 2], np.uint64), "target": [2, 3]},
            [(str(2**63 + 1), "2"), ("2", "3")],
        ),
        ({"source": ["1.0", "2"], "target": [" 2.00", "3"]}, [("1", "2"), ("2", "3")]),
        ({"source": [1.0, None, 2.0], "target": [2, 7, 3]}, [("1", "2"), ("2", "3")]),
        (
            {"source": [UUID(int=1), UUID(int=2)], "target": ["a", "b"]},
            [(str(UUID(int=1)), "a"), (str(UUID(int=2)), "b")],
        ),
    ],
)
def test_ids_of_all_types(columns, edges, tmp_path):
    file = table(tmp_path / "t.parquet", **columns)
    graph = read(file, Columns(missing_ids="drop")).graph
    named = {frozenset(graph.node_names[i] for i in edge) for edge in graph.edge_index.T.tolist()}
    assert named == {*map(frozenset, edges)}


@pytest.mark.parametrize("kept", [0, 3, 0.5, 0.95])
def test_a_file_that_is_cut_short_is_refused(kept, tmp_path):
    rows = np.arange(1000)
    file = table(tmp_path / "t.parquet", source=rows, target=rows + 1)
    content = file.read_bytes()
    file.write_bytes(content[: kept if kept in (0, 3) else int(kept * len(content))])
    with pytest.raises(GraphFormatError, match=r"t\.parquet: not a whole Parquet file") as caught:
        read_graph(file)
    assert str(caught.value).count("\n") < 5


@pytest.mark.parametrize("largest", [9, 30, 10**12])
def test_positions_of_ids_are_those_of_a_sort(largest):
    ids = np.random.default_rng(0).integers(0, largest, (20, 2))
    distinct, inverse = np.unique(ids, return_inverse=True)
    found = _positions(ids)
    assert [each.tolist() for each in found] == [distinct.tolist(), inverse.reshape(-1, 2).tolist()]
