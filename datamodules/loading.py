"""Loading of graphs: built in, from the folder of real data, from a file, or from an object."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import networkx as nx
import numpy as np
import pyarrow
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse
from torch import Tensor
from torch_geometric.data import Data, Dataset

from lightning_dpg.datamodules import small_bank, town
from lightning_dpg.errors import Refusal
from lightning_dpg.formats import graph_places
from lightning_dpg.formats.columns import Columns, refuse_columns
from lightning_dpg.formats.conversion import (
    GraphReading,
    NodeSet,
    on_nodes,
    read_matrix,
    read_networkx,
    read_pyg,
    with_edges,
)
from lightning_dpg.formats.edge_tables import (
    ExportsArrow,
    Table,
    read_edge_array,
    read_pairs,
    read_table,
)
from lightning_dpg.formats.graph_places import data_set_file, graph_file
from lightning_dpg.formats.io import GraphFormatError, read
from lightning_dpg.formats.node_lists import given_names
from lightning_dpg.graph.node_names import user_path

FROM_EDGES = "from_edges"
ODD_INSIDE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RuntimeError)
"""What objects raise whose parts are not those that their type has."""


def _planted_words() -> nx.Graph:
    """Draw the graph ``planted_partition`` with 32 public words that its nodes hold or not.

    Each community prefers eight words. Words are drawn apart from the edges, given the communities.
    """
    graph = BUILT_IN["planted_partition"]()
    coins = np.random.default_rng(0).random((len(graph), 32))
    preferred = np.arange(len(graph))[:, None] // 50 == np.arange(32) // 8
    for node, held in enumerate(coins < np.where(preferred, 0.4, 0.1)):
        graph.nodes[node].pop("block", None)
        graph.nodes[node].update({f"word {k:02}": float(held[k]) for k in range(32)})
    return graph


def _planted_classes() -> nx.Graph:
    """Draw the graph ``planted_words``, where 20 nodes of each community show it as their class."""
    graph = _planted_words()
    for node in graph:
        graph.nodes[node]["y"] = node // 50 if node % 50 < 20 else None
    return graph


BUILT_IN: dict[str, Callable[[], nx.Graph]] = {
    "les_miserables": nx.les_miserables_graph,
    "karate": nx.karate_club_graph,
    "davis": nx.davis_southern_women_graph,
    # Four communities of 50 nodes, with about 7.4 neighbors inside and 1.5 outside.
    "planted_partition": lambda: nx.planted_partition_graph(4, 50, 0.15, 0.01, seed=0),
    "planted_words": _planted_words,
    "planted_classes": _planted_classes,
    "small_bank": small_bank.small_bank,
    "town": town.town,
}

TRANSFER_FACTS: dict[str, dict[str, Any]] = {"small_bank": small_bank.FACTS}
"""Bounds of amounts and windows of times of built-in graphs, for settings that name none."""

if TYPE_CHECKING:
    GraphSource: TypeAlias = (
        str
        | Path
        | Data
        | Dataset
        | nx.Graph
        | NDArray[Any]
        | csr_array
        | Tensor
        | Table
        | Sequence[Sequence[Any]]
    )
    GraphSetSource: TypeAlias = str | Path | Sequence[Data] | Sequence[nx.Graph] | Dataset
else:
    # Options of the command line are names and paths; its help would list each subclass of the rest.
    GraphSource = str | Data | nx.Graph
    GraphSetSource = str | Sequence[Data] | Sequence[nx.Graph]


def load_graph(source: GraphSource, *, undirected: bool = False) -> Data:
    """Load a graph, see :func:`load_reading`."""
    return with_edges(load_reading(source, undirected=undirected)).graph


def load_reading(
    source: GraphSource,
    *,
    undirected: bool = False,
    nodes: str | Sequence[str] | None = None,
    node_column: str | None = None,
    columns: Columns = Columns(),
) -> GraphReading:
    """Load a graph with the origin of its nodes and a summary line (private).

    Args:
        source: One of

            * the name of a built-in graph, or of a data set in the folder that the environment
              variable ``LIGHTNING_DPG_DATA`` names (``graphs/NAME.edges.gz`` or ``npz/NAME.npz``);
            * the path of a file, as text or as a ``Path``, which is never a name;
            * a graph of networkx or PyTorch Geometric, or a data set of PyTorch Geometric that
              holds one graph;
            * a square adjacency matrix of numpy, or of scipy in any sparse format;
            * a table with an edge per row, such as a DataFrame of pandas;
            * an array of shape ``(M, 2)`` with an edge per row, of whole numbers or text;
            * a list of pairs of ids.

            A 2 x 2 array could be two edges or a matrix, and is refused. Self loops and repeated
            edges are dropped and counted in the summary, from all of these.
        undirected: Whether to drop the directions of a directed graph instead of refusing it.
        nodes: Ids of all nodes (public), or a file of them; ``from_edges``: ids that occur on
            the lines of an edge list. By default the source's own node table, or ``from_edges``.
        node_column: Column of that file that holds the ids.
        columns: Columns of an edge list or a table that hold the relation.
    """
    names = None if nodes is None or nodes == FROM_EDGES else given_names(nodes, node_column)
    if isinstance(source, (str, Path)):
        reading = _read_named(source, undirected, nodes, names, columns)
    else:
        reading = _converted(source, undirected, columns)
    return read_on_nodes(reading, nodes, names)


def read_on_nodes(
    reading: GraphReading, nodes: str | Sequence[str] | None, names: Sequence[str] | None
) -> GraphReading:
    """Put a graph on the nodes of the settings.

    Args:
        reading: The graph as it was read.
        nodes: Ids of all nodes, a file of them, ``from_edges``, or None.
        names: The ids, if there are any and they have been read.
    """
    if nodes == FROM_EDGES and reading.node_set is not NodeSet.LINES:
        raise GraphFormatError(
            f"nodes: {FROM_EDGES} is for edge lists, and this graph has a node table\n"
            "leave nodes out, or give a list of ids"
        )
    if names is None or reading.node_set is NodeSet.LIST:
        return reading
    return on_nodes(reading, names, reading.origin)


def _converted(source: object, undirected: bool, columns: Columns) -> GraphReading:
    """Convert a graph object of another library.

    Raises:
        GraphFormatError: If it is none, whatever it raises when it is looked at.
    """
    try:
        if (reading := _read_object(source, undirected, columns)) is not None:
            return reading
    except Refusal:
        raise
    except ODD_INSIDE:
        pass  # its text may quote rows
    raise GraphFormatError(
        f"name: an object of type {type(source).__name__} is no graph, or holds none\n"
        "expected a name or path, a graph of networkx or PyTorch Geometric, a square matrix, or\n"
        "edges: a DataFrame, an array of shape (M, 2) or a list of pairs\n"
        "of igraph graph.to_networkx(), of rustworkx list(graph.edge_list()), of HeteroData\n"
        "data.to_homogeneous()"
    )


def _read_object(source: object, undirected: bool, columns: Columns) -> GraphReading | None:
    """Read an object by its type; None for an object of any other type."""
    if isinstance(source, (Table, ExportsArrow)):
        return read_table(source, columns)
    refuse_columns(columns, type(source).__name__)
    if isinstance(source, Dataset):
        source = _only_graph(source)
    if isinstance(source, Data):
        return read_pyg(source, undirected=undirected)
    if isinstance(source, nx.Graph):
        return read_networkx(source, undirected=undirected)
    if isinstance(source, Tensor):
        source = _of_tensor(source)
    if issparse(source):
        return read_matrix(source, undirected=undirected)
    if isinstance(source, np.ndarray) and not isinstance(source, np.ma.MaskedArray):
        return _read_array(np.asarray(source), columns, undirected)
    if _holds_graphs(source):
        raise GraphFormatError(
            "name: a list of graphs is a set, expected one graph\n"
            "a set is for methods of sets, such as ErdosRenyiSet, and for GraphSetDataModule"
        )
    if isinstance(source, Sequence) and not isinstance(source, (bytes, memoryview, range)):
        return read_pairs(source, columns)
    return None


def _of_tensor(tensor: Tensor) -> csr_array | NDArray[Any]:
    """Return a tensor as an array; a sparse one, of any layout, as a sparse matrix."""
    if tensor.is_floating_point():
        tensor = tensor.double()  # NumPy has no bfloat16
    if tensor.layout == torch.strided:
        return tensor.numpy(force=True)
    tensor = tensor.detach().cpu().to_sparse().coalesce()
    return coo_array((tensor.values().numpy(), tuple(tensor.indices().numpy())), tensor.shape)


def _only_graph(data_set: Dataset) -> Data:
    """Return the one graph of a data set."""
    if len(data_set) != 1:
        raise GraphFormatError(
            f"name: {type(data_set).__name__} is no graph, it holds {len(data_set)}\n"
            "take one of them, such as dataset[0], or GraphSetDataModule for all of them"
        )
    return data_set[0]


def _holds_graphs(source: object) -> bool:
    """Return whether an object is a list of graphs."""
    if not isinstance(source, (list, tuple)) or not source:
        return False
    return all(isinstance(item, (Data, nx.Graph)) for item in source)


def _read_array(array: NDArray[Any], columns: Columns, undirected: bool) -> GraphReading:
    """Read an array by its shape: edges, or a square matrix."""
    if array.shape == (2, 2):
        raise GraphFormatError(
            "array: a 2 x 2 array can be two edges or a matrix of two nodes\n"
            "pass two edges as a list: array.tolist()\n"
            "pass a matrix as scipy.sparse.csr_array(array)"
        )
    if array.ndim == 2 and array.shape[1] == 2:
        return read_edge_array(array, columns)
    if array.ndim == 2 and array.shape[0] == array.shape[1]:
        return read_matrix(array, undirected=undirected)
    is_index = array.ndim == 2 and len(array) == 2
    hint = "\nof an edge_index: edge_index.T" if is_index else ""
    raise GraphFormatError(
        f"array: an array of shape {array.shape}\n"
        f"expected edges, of shape (M, 2), or a square adjacency matrix{hint}"
    )


def _read_named(
    source: str | Path,
    undirected: bool,
    nodes: str | Sequence[str] | None,
    names: Sequence[str] | None,
    columns: Columns,
) -> GraphReading:
    """Read a graph by its name, or from a file."""
    file = user_path(source) if isinstance(source, Path) else graph_file(source, BUILT_IN)
    if file is None:
        return _read_built_in(str(source), columns)
    # The ids of edge lists of data sets are 0 to n - 1, including nodes without an edge.
    is_data_set = isinstance(source, str) and file == data_set_file(source)
    return read(
        file,
        columns,
        undirected=undirected,
        keep_gaps=is_data_set and nodes is None and file.suffix == ".gz",
        nodes=names,
    )


def _read_built_in(name: str, columns: Columns) -> GraphReading:
    """Read a built-in graph; the directions of transfers are dropped where the kind has none."""
    graph = BUILT_IN[name]()
    reading = read_networkx(graph, undirected=True, origin=name, form="built in")
    reading = reading._replace(node_set=NodeSet.BUILT_IN)
    if not columns.values:
        return reading
    if name not in TRANSFER_FACTS:
        refuse_columns(columns, name)
    rows = [{"source": u, "target": v, **data} for u, v, data in graph.edges(data=True)]
    ends = replace(columns, source="source", target="target")
    found = read_table(pyarrow.Table.from_pylist(rows), ends)
    found = on_nodes(found, reading.nodes.node_names, name)
    summary = f"{reading.summary}{found.values.summary if found.values else ''}"
    return found._replace(node_set=NodeSet.BUILT_IN, attributes=reading.attributes, summary=summary)


def known_graphs() -> list[str]:
    """Return the names of built-in graphs and of data sets that are there."""
    return graph_places.known_graphs(BUILT_IN)
