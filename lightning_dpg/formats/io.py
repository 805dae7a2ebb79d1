"""Reading and writing of graph files.

Reads edge lists, npz archives, GraphML, GEXF and GML; writes edge lists, npz archives and GraphML.
"""

import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from tokenize import TokenError
from typing import BinaryIO

import numpy as np
from scipy.sparse import csr_array, load_npz
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.formats.attribute_sources import numbers_of_nodes
from lightning_dpg.formats.columns import Columns, refuse_columns
from lightning_dpg.formats.conversion import (
    GraphReading,
    from_networkx,
    on_nodes,
    read_matrix,
    with_edges,
    with_sides,
)
from lightning_dpg.formats.edge_lists import check_edge_list_names, read_edge_list, write_edges
from lightning_dpg.formats.graph_places import check_file
from lightning_dpg.formats.markup import MARKUP, read_markup, write_graphml
from lightning_dpg.formats.parquet import read_parquet, write_edge_table, write_parquet
from lightning_dpg.formats.text_rows import TEXT_SUFFIXES, is_edge_list
from lightning_dpg.formats.whole_files import whole_file
from lightning_dpg.graph.attributes import (
    ATTRIBUTE_KEYS,
    AttributeTable,
    attributes_of,
    read_stored,
    stored,
)
from lightning_dpg.graph.graph import adjacency
from lightning_dpg.graph.node_names import GraphFormatError

__all__ = [
    "GraphFormatError",
    "check_edge_list_names",
    "from_networkx",
    "read",
    "read_graph",
    "write_blocks",
    "write_graph",
]

_DAMAGES = (  # what numpy and scipy raise for files that are no archive, or a damaged one
    *(LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RuntimeError),
    *(OSError, EOFError, MemoryError, zlib.error, zipfile.BadZipFile),
    *(SyntaxError, TokenError),  # a header is a dictionary in the syntax of Python
)


def read_graph(
    path: str | Path,
    *,
    undirected: bool = False,
    keep_gaps: bool = False,
    nodes: Sequence[str] | None = None,
) -> Data:
    """Read a graph from a file, see :func:`read`."""
    return with_edges(read(path, undirected=undirected, keep_gaps=keep_gaps, nodes=nodes)).graph


def read(
    path: str | Path,
    columns: Columns = Columns(),
    *,
    undirected: bool = False,
    keep_gaps: bool = False,
    nodes: Sequence[str] | None = None,
) -> GraphReading:
    """Read a graph from a file in the format of its suffix.

    Args:
        path: ``.npz`` (scipy's sparse matrices or NetGAN's ``adj_data``, ...), ``.graphml``,
            ``.gexf``, ``.gml``, or an edge list: ``.edges``, ``.edgelist``, ``.txt``, ``.csv``,
            ``.tsv``, ``.dat``, or KONECT's ``out.NAME``, all also with ``.gz``; or ``.parquet``
            with a column for each end of an edge.
        columns: Columns of an edge list or Parquet file that are read.
        undirected: Whether to read directed links as undirected edges instead of refusing them.
        keep_gaps: Whether all numbers from 0 to the largest id of an edge list are nodes. Otherwise
            the nodes are the ids that occur.
        nodes: Names of all nodes (public); edges at other nodes are refused.
    """
    path = Path(path)
    check_file(path)
    kind = path.name.lower()
    markup = MARKUP.get(Path(kind.removesuffix(".gz")).suffix)
    if kind.endswith(".npz") or markup is not None:
        refuse_columns(columns, str(path))
    if kind.endswith(".npz"):
        reading = _read_npz(path, undirected)
    elif kind.endswith(".parquet"):
        reading = read_parquet(path, columns)
    elif markup is not None:
        reading = read_markup(path, markup, undirected=undirected)
    elif is_edge_list(path.name):
        reading = read_edge_list(
            path,
            columns,
            undirected=undirected,
            # Numbers up to the largest one would include those of lines that are no transfer.
            keep_gaps=keep_gaps and nodes is None and not columns.values,
            nodes=nodes,
        )
    else:
        raise GraphFormatError(
            f"{path}: {path.suffix or 'no suffix'} is no known format\n"
            f"expected {', '.join(TEXT_SUFFIXES)} (edge lists, also with .gz),\n"
            ".npz, .parquet, .graphml, .gexf, .gml, or KONECT's out.NAME\n"
            "rename the file if it is one of these, or convert it"
        )
    return reading if nodes is None else on_nodes(reading, nodes, path)


def write_graph(graph: Data, path: str | Path) -> None:
    """Write a graph under its node names in the format of the suffix.

    Args:
        graph: The graph. Nodes without edges are lost in an edge list, the other formats keep them.
        path: ``.edges`` (one line per edge, separated by a tab: source and target, or left and
            right node), ``.graphml`` or ``.npz`` (scipy's CSR matrix and ``node_names``). The sides
            of a bipartite graph are the node attribute ``bipartite``, or the array ``sides``.
            ``.parquet`` has columns ``source`` and ``target``, loses nodes without edges and needs
            pyarrow.

    Raises:
        OSError: If the disk is full; the file then is not there, or is the one from before.
    """
    path = Path(path)
    writers = {
        ".edges": write_edges,
        ".graphml": write_graphml,
        ".npz": _write_npz,
        ".parquet": write_parquet,
    }
    if path.suffix not in writers:
        raise Refusal(f"path must end with one of {', '.join(writers)}, got {path.name!r}")
    with whole_file(path) as scratch, scratch.open("wb") as file:
        writers[path.suffix](graph, file)


def write_blocks(blocks: Iterable[Tensor], names: Sequence[str], path: str | Path) -> None:
    """Write a graph to ``.parquet`` while it is drawn, which holds one block at a time in memory.

    Args:
        blocks: Edges of shape ``(P, 2)``, each of them once.
        names: Names of all nodes.
        path: File to write.

    Raises:
        OSError: If the disk is full; the file then is not there, or is the one from before.
    """
    with whole_file(Path(path)) as scratch, scratch.open("wb") as file:
        write_edge_table(blocks, names, file)


def _read_npz(path: Path, undirected: bool) -> GraphReading:
    expected = (
        "expected a square scipy sparse matrix (scipy.sparse.save_npz) or NetGAN's arrays\n"
        "adj_data, adj_indices, adj_indptr, adj_shape"
    )
    try:
        with np.load(path, allow_pickle=False) as archive:
            if "adj_indptr" in archive.files:
                parts = [archive[f"adj_{part}"] for part in ("data", "indices", "indptr")]
                matrix = csr_array(tuple(parts), shape=tuple(archive["adj_shape"]))
            else:
                matrix = csr_array(load_npz(path))
            matrix.check_format(full_check=True)
            has_attributes = not ATTRIBUTE_KEYS.isdisjoint(archive.files)
            stored = archive["node_names"].tolist() if "node_names" in archive.files else None
            sides = archive["sides"].tolist() if "sides" in archive.files else []
    except _DAMAGES:
        raise GraphFormatError(f"{path}: not a graph, or a damaged archive\n{expected}") from None
    if stored is not None and len(stored) != matrix.shape[0]:
        raise GraphFormatError(
            f"{path}: {len(stored)} node_names for a matrix of shape {matrix.shape}"
        )
    # NetGAN's archives end each name with a line end.
    names = None if stored is None else [str(name).rstrip("\n") for name in stored]
    reading = read_matrix(matrix, undirected=undirected, origin=path, names=names, form="npz")
    reading = reading._replace(file_order=names)
    if names is not None and len(sides) == len(names):
        reading = with_sides(reading, sides, names)
    ids = [str(i) for i in range(matrix.shape[0])] if names is None else names
    if not has_attributes:
        return reading
    return reading._replace(attributes=lambda: _attributes_of_npz(path, ids))


def _attributes_of_npz(path: Path, ids: Sequence[str]) -> AttributeTable | None:
    try:
        with np.load(path, allow_pickle=False) as archive:
            stored_attributes = read_stored(archive)
    except _DAMAGES:
        raise GraphFormatError(
            f"{path}: attributes that cannot be read\n"
            "expected attr_data, attr_indices, attr_indptr, attr_shape, or a matrix attr_matrix"
        ) from None
    return numbers_of_nodes(path, ids, *stored_attributes)


def _write_npz(graph: Data, file: BinaryIO) -> None:
    matrix, attributes = adjacency(graph), attributes_of(graph)
    np.savez_compressed(
        file,
        data=matrix.data,
        indices=matrix.indices,
        indptr=matrix.indptr,
        shape=np.array(matrix.shape),
        format=np.array(b"csr"),
        node_names=np.array(graph.node_names),
        **({} if attributes is None else stored(attributes)),
        **({"sides": graph.sides.numpy()} if "sides" in graph else {}),
    )
