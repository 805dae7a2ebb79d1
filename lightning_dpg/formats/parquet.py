"""Edges and attributes of nodes as Parquet tables."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow
from pyarrow import parquet
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.formats.arrow_edges import edges_of_table
from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.conversion import GraphReading
from lightning_dpg.formats.edge_columns import choose
from lightning_dpg.graph.attributes import LABELS, read_stored
from lightning_dpg.graph.node_names import GraphFormatError
from lightning_dpg.graph.pair_space import space_of

COLUMNS = ("source", "target")
ROWS_PER_GROUP = 2**20
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


def write_parquet(graph: Data, file: BinaryIO) -> None:
    """Write the edges of a graph, see :func:`write_edge_table`."""
    edges = space_of(graph).edges(graph)
    write_edge_table([edges], graph.node_names, file)


def write_edge_table(blocks: Iterable[Tensor], names: Sequence[str], file: BinaryIO) -> None:
    """Write columns ``source`` and ``target``; nodes without edges are lost.

    The columns hold names as text, or whole numbers if all names are such.

    Args:
        blocks: Edges of shape ``(P, 2)`` in the numbers of the nodes; each block is written before
            the next one is asked for, in row groups of :data:`ROWS_PER_GROUP`.
        names: Names of all nodes.
        file: Opened file.
    """
    if all(map(_NUMBER.fullmatch, names)):
        labels = pyarrow.array(np.array(names, dtype=np.int64))
    else:
        labels = pyarrow.array(names, type=pyarrow.string())
    schema = pyarrow.schema([(column, labels.type) for column in COLUMNS])
    with parquet.ParquetWriter(file, schema) as writer:
        for block in blocks:
            for start in range(0, len(block), ROWS_PER_GROUP):
                rows = block[start : start + ROWS_PER_GROUP]
                ends = [labels.take(pyarrow.array(end.numpy())) for end in rows.T]
                writer.write_table(pyarrow.Table.from_arrays(ends, schema=schema))


def write_attribute_table(names: list[str], arrays: Mapping[str, Any], file: BinaryIO) -> None:
    """Write a column ``node`` of names, and a column for each attribute and for the classes.

    Args:
        names: Names of all nodes.
        arrays: Their attributes as in NetGAN's archives.
        file: Opened file.
    """
    matrix, columns, labels = read_stored(arrays)
    table: dict[str, Any] = {"node": pyarrow.array(names, type=pyarrow.string())}
    if matrix is not None:
        dense = matrix.toarray() if isinstance(matrix, csr_array) else matrix
        table |= {name: np.ascontiguousarray(dense[:, i]) for i, name in enumerate(columns or [])}
    if labels is not None:
        table[LABELS] = labels
    parquet.write_table(pyarrow.table(table), file)


def read_parquet(path: Path, columns: Columns = Columns()) -> GraphReading:
    """Read a Parquet file with an edge per row.

    Args:
        path: The file (private).
        columns: Its columns that are read.

    Raises:
        GraphFormatError: If the file is damaged, or if its columns hold no ids.
    """
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as opened:  # memory: a column at once
            chosen = choose(str(path), opened.schema_arrow.names, columns)
            names = [chosen.names[place] for place in chosen.read]
            cells = list(opened.read(names).select(names).columns)
        pyarrow.default_memory_pool().release_unused()
    except (pyarrow.ArrowException, OSError) as error:
        raise GraphFormatError(
            f"{path}: not a whole Parquet file\n"
            "get the file again, or write it again: it is damaged or cut short"
        ) from error
    return edges_of_table(cells, chosen, columns, path, "Parquet")
