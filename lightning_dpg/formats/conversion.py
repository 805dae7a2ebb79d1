"""Conversion of objects of other libraries to graphs, with a summary line for the owner.

Nodes are always in the natural order of their names: the order in which an object or a file lists
them may follow the private edges, and would reach the release.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import is_sparse, to_edge_index

from lightning_dpg.formats.attribute_sources import attributes_of_networkx, attributes_of_pyg
from lightning_dpg.formats.edge_columns import directed
from lightning_dpg.formats.transfer_columns import EdgeValues
from lightning_dpg.graph.attributes import AttributeTable
from lightning_dpg.graph.graph import distinct_edges, make_graph
from lightning_dpg.graph.node_names import (
    GraphFormatError,
    NoEdgesError,
    are_ascending_numbers,
    is_missing,
    name_of,
    natural_order,
)
from lightning_dpg.graph.pair_space import joined

_WHOLE = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


class NodeSet(Enum):
    """Origin of the nodes of a graph, which the guarantee states."""

    BUILT_IN = "built in"
    TABLE = "node table"
    LIST = "node list"
    LINES = "ids on the lines"
    LARGEST = "numbers up to the largest id"


def _no_attributes() -> AttributeTable | None:
    """Return nothing: the source holds no attributes of nodes."""
    return None


class GraphReading(NamedTuple):
    """A graph and a summary of its source, all of it private."""

    nodes: Data
    """The graph without its edges."""
    edges: Tensor
    """Each edge once, in lexicographic order, shape ``(M, 2)``."""
    node_set: NodeSet
    summary: str
    """Line for the owner: exact counts and two names, which must not be published."""
    links: Tensor
    """Rows as they were read, in the numbers of the nodes, shape ``(L, 2)``."""
    has_direction: bool = True
    """Whether the two ends of a row have an order, which is a direction or a side."""
    sides: Tensor | None = None
    """Side of each node, 0 or 1, if the source says it, shape ``(N,)``."""
    numbers_sides: bool = False
    """Whether the source numbers each of its two columns by itself, as KONECT's bipartite files."""
    attributes: Callable[[], AttributeTable | None] = _no_attributes
    """Read the attributes of nodes that the source holds itself; they are not read unasked."""
    file_order: Sequence[str] | None = None
    """Names of the nodes in the order of an archive, to which published splits refer."""
    values: EdgeValues | None = None
    """Amounts and times of the rows in ``links``, if they are read."""
    header: tuple[str, str] | None = None
    """Names of the two columns of ids, if they have any."""
    place: Callable[[int], str] | None = None
    """Say where a row of ``links`` is, such as ``, line 3``."""

    @property
    def graph(self) -> Data:
        """The graph with its edges, built anew at each call."""
        return joined(self.nodes, self.edges)

    @property
    def origin(self) -> str:
        """Name of the source, for an error."""
        return self.summary.removeprefix("read ").partition(":")[0]

    def first(self, row: int) -> str:
        """Say for an error where the first of some rows is, if that is known."""
        return "" if self.place is None else f", the first in{self.place(row).removeprefix(',')}"


def holds_attributes(reading: GraphReading) -> bool:
    """Return whether the source holds attributes of nodes, without reading them."""
    return reading.attributes is not _no_attributes


def on_nodes(reading: GraphReading, nodes: Sequence[str], origin: str | Path) -> GraphReading:
    """Put a graph on a given set of nodes in natural order; others must have no edges."""
    names = reading.nodes.node_names
    number = {name.strip(): i for i, name in enumerate(nodes)}  # tables have no spaces around an id
    numbers = torch.tensor([number.get(name.strip(), -1) for name in names])
    edges = numbers[reading.edges]
    if outside := int((edges < 0).any(dim=1).sum()):
        first = reading.first(int((numbers[reading.links] < 0).any(dim=1).nonzero()[0]))
        raise GraphFormatError(
            f"{origin}: edges with an id that is not among the {len(nodes):,} ids of nodes: "
            f"{outside:,}{first}\nexpected edges between ids of the node list only\n"
            "add the id to the list, or leave the row out; the rows of nodes.attributes are the\n"
            "list unless nodes.ids (--nodes FILE) is set, which may hold ids without a row"
        )
    sides = None
    if reading.sides is not None:
        by_name = dict(zip(names, reading.sides.tolist(), strict=True))
        sides = torch.tensor([by_name.get(name, -1) for name in nodes])
    return reading._replace(
        nodes=make_graph(edges[:0], len(nodes), nodes),
        edges=distinct_edges(edges, len(nodes)),
        node_set=NodeSet.LIST,
        summary=f"{reading.summary}; {len(nodes):,} nodes by list",
        links=numbers[reading.links],
        sides=sides,
    )


def with_edges(reading: GraphReading) -> GraphReading:
    """Refuse a reading all rows of which link a node to itself: in two columns of unlike nodes none do."""
    if not len(reading.edges):
        raise _no_edges(reading.origin)
    return reading


def _no_edges(origin: str | Path) -> NoEdgesError:
    return NoEdgesError(f"{origin}: no edges\nexpected an edge between two different nodes")


def without_values(reading: GraphReading, names: Sequence[str]) -> GraphReading:
    """Tell the owner which values of edges, such as weights and times, were not read."""
    if not names:
        return reading
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8:,} more" if len(names) > 8 else "")
    return reading._replace(summary=f"{reading.summary}; dropped from the edges: {shown}")


def with_transfers(reading: GraphReading, values: EdgeValues | None) -> GraphReading:
    """Add the amounts and times of the rows, if they are read."""
    if values is None:
        return reading
    return reading._replace(values=values, summary=f"{reading.summary}{values.summary}")


def from_networkx(graph: nx.Graph, *, undirected: bool = False) -> Data:
    """Convert a networkx graph; names are the nodes as text, in natural order."""
    return read_networkx(graph, undirected=undirected).graph


def read_networkx(
    graph: nx.Graph,
    *,
    undirected: bool = False,
    origin: str = "graph",
    form: str = "networkx",
    of_set: bool = False,
) -> GraphReading:
    """Convert a networkx graph and summarize it; one of a set may have no edge."""
    is_directed = graph.is_directed()
    if is_directed and not undirected:
        raise directed(origin)
    number = {node: i for i, node in enumerate(graph)}
    pairs = torch.tensor([(number[u], number[v]) for u, v in graph.edges()], dtype=torch.long)
    names = [name_of(node) for node in number]
    reading = checked(
        pairs.view(-1, 2), names, origin, form, is_directed=is_directed, of_set=of_set
    )
    sides = [graph.nodes[node].get("bipartite") for node in number]
    reading = with_sides(reading._replace(has_direction=is_directed), sides, names)
    if form != "built in":
        values = {str(key) for *_, data in graph.edges(data=True) for key in data}
        reading = without_values(reading, sorted(values - {"id"}))  # GraphML numbers its edges
    if not any(graph.nodes.values()) and not graph.graph.get("node_default"):
        return reading
    return reading._replace(attributes=lambda: attributes_of_networkx(graph, names, origin))


def read_pyg(data: Data, *, undirected: bool = False, of_set: bool = False) -> GraphReading:
    """Convert a PyTorch Geometric graph, which must hold both orientations of each edge.

    Features ``x`` and classes ``y`` of its nodes are kept. One of a set may have no edge.
    """
    pairs, names, sides = _parts(data)
    reading = checked(pairs, names, "Data", "PyTorch Geometric", both=True, of_set=of_set)
    _check_mutual(pairs, reading, "Data", undirected)
    values = sorted({*data.edge_attrs()} - {"edge_index", "adj_t"})
    reading = without_values(reading, values)
    order = torch.tensor(natural_order(names))
    for key in {"x", "y"} & set(data.keys()):
        if isinstance(data[key], Tensor) and data[key].shape[:1] == (len(names),):
            reading.nodes[key] = data[key][order]
    reading = with_sides(reading, sides, names)
    if data.x is None and data.y is None:
        return reading
    return reading._replace(attributes=lambda: attributes_of_pyg(data, names))


def _parts(data: Data) -> tuple[Tensor, list[str], list[object]]:
    """Return edges of shape ``(P, 2)``, names and sides of a graph of PyTorch Geometric."""
    index = data.edge_index
    if index is None and is_sparse(data.get("adj_t")):
        index = to_edge_index(data.adj_t)[0].flip(0)  # the transposed matrix
    try:
        given = torch.as_tensor(index).cpu()
        pairs = given.long().T
        num_nodes = int(data.num_nodes or (given.max() + 1 if given.numel() else 0))
        names = data.get("node_names") or range(num_nodes)
        sides = torch.as_tensor(data.get("sides", [-1] * num_nodes)).tolist()
        is_number = given.is_floating_point() or given.dtype in _WHOLE
        fits = is_number and bool((pairs.T == given).all()) and pairs.shape[1:] == (2,)
        if fits and len(names) == len(sides) == num_nodes:
            return pairs, [name_of(name) for name in names], sides
    except (TypeError, ValueError, RuntimeError, LookupError):
        pass  # text, lists of unlike lengths, sparse tensors: nothing of it is an edge
    raise GraphFormatError(
        f"Data: edge_index of type {type(index).__name__}, or parts that do not fit it\n"
        "expected edge_index of shape (2, 2M), of whole numbers from 0 to num_nodes - 1, or a sparse\n"
        "adj_t; node_names and sides, if they are there, hold one for each of num_nodes"
    )


def read_matrix(
    matrix: csr_array,
    *,
    undirected: bool = False,
    origin: str | Path = "matrix",
    names: Sequence[str] | None = None,
    form: str = "adjacency matrix",
) -> GraphReading:
    """Convert a square adjacency matrix; entries other than 0 are edges."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise GraphFormatError(
            f"{origin}: a matrix of shape {matrix.shape}\n"
            "expected a square adjacency matrix, of scipy or numpy"
        )
    no_numbers = matrix.dtype.kind not in "biuf"
    if not no_numbers:
        matrix = csr_array(matrix)
        no_numbers = bool(np.isnan(matrix.data).any())
    if no_numbers:
        raise GraphFormatError(
            f"{origin}: a matrix of {matrix.dtype} with entries that are no numbers (text or NaN)\n"
            "expected an adjacency matrix of numbers"
        )
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    pairs = torch.from_numpy(np.stack(matrix.nonzero(), axis=1).astype(np.int64))
    names = [str(i) for i in range(matrix.shape[0])] if names is None else list(names)
    reading = checked(pairs, names, origin, form, both=True)
    _check_mutual(pairs, reading, origin, undirected)
    has_values = bool((matrix.data != 1).any())
    return without_values(reading, ["entries other than 1"] if has_values else [])


def checked(
    pairs: Tensor,
    names: list[str],
    origin: str | Path,
    form: str,
    *,
    both: bool = False,
    is_directed: bool = False,
    node_set: NodeSet = NodeSet.TABLE,
    of_set: bool = False,
) -> GraphReading:
    """Build a graph of ``pairs`` in natural order; refuse one without nodes or edges.

    Args:
        pairs: Positions in ``names``, shape ``(P, 2)``.
        names: Names of all nodes, in any order.
        origin: Place that an error names.
        form: How the pairs were written.
        both: Whether each edge should be listed in both orientations.
        is_directed: Whether the pairs have a direction, which is dropped.
        node_set: Where the names come from.
        of_set: Whether it is one of a set, which may have no edge: a refusal would show that it has
            lost its last one. Nothing is summarized then.
    """
    if len(names) < 2 - of_set:
        least = "one node" if of_set else "two nodes"
        raise GraphFormatError(f"{origin}: {len(names)} node(s)\nexpected {least} or more")
    are_in_order = are_ascending_numbers(names)  # then all differ, and none is missing
    if not are_in_order and (odd := next(filter(is_missing, names), None)) is not None:
        raise GraphFormatError(f"{origin}: a node named {odd!r}\nexpected names, none missing")
    if outside := int(((pairs < 0) | (pairs >= len(names))).any(dim=1).sum()):
        raise GraphFormatError(
            f"{origin}: edges with a number of no node: {outside:,}\n"
            f"expected numbers from 0 to {len(names) - 1}"
        )
    if not are_in_order and (more := len(names) - len({*names})):
        raise GraphFormatError(
            f"{origin}: nodes with the name of another one: {more:,}\nexpected names that differ"
        )
    links, ordered = pairs, names
    if not are_in_order:  # memory: as whole numbers are read
        order = natural_order(names)
        position = torch.empty(len(names), dtype=pairs.dtype)
        position[torch.tensor(order)] = torch.arange(len(names), dtype=pairs.dtype)
        links, ordered = position[pairs], [names[i] for i in order]
    nodes = Data(edge_index=pairs.new_empty(2, 0).long(), num_nodes=len(names), node_names=ordered)
    listed = distinct_edges(links, len(names))
    if of_set:
        return GraphReading(nodes, listed, node_set, "", links)
    edges = len(listed)
    if not edges and (node_set is not NodeSet.LINES or not len(pairs)):
        raise _no_edges(origin)
    loops = int((pairs[:, 0] == pairs[:, 1]).sum())
    distinct = _distinct(pairs, len(names), edges)
    mutual = distinct - edges
    dropped = mutual % max(edges, 1)  # all of them twice is one way to write an undirected graph
    if both:
        dropped = edges - mutual
    if is_directed:
        dropped = edges
    direction = f", edges whose direction is dropped: {dropped:,}" if dropped else ""
    summary = (
        f"read {Path(origin).name}: {len(names):,} nodes, {edges:,} edges ({form}; "
        f"{len(pairs) - loops - distinct:,} repeated, {loops:,} loops{direction}); "
        f"e.g. {names[int(pairs[0, 0])]}, {names[int(pairs[0, 1])]}, ..."
    )
    return GraphReading(nodes, listed, node_set, summary, links)


def with_sides(
    reading: GraphReading, sides: Sequence[object], names: Sequence[str]
) -> GraphReading:
    """Add the side of each node, 0 or 1, if a source has one for every node.

    Args:
        reading: The reading.
        sides: Side of each node; anything else says that the source has none.
        names: Names of the nodes in the same order.
    """
    side_of = dict(zip(names, map(str, sides), strict=True))
    if not {*side_of.values()} <= {"0", "1"}:
        return reading
    ordered = [int(side_of[name]) for name in reading.nodes.node_names]
    return reading._replace(sides=torch.tensor(ordered))


def _distinct(pairs: Tensor, num_nodes: int, num_edges: int) -> int:
    """Count different directed links without loops, of which undirected edges are known."""
    is_link = pairs[:, 0] != pairs[:, 1]
    if int(torch.count_nonzero(is_link)) == num_edges:  # no edge is listed twice, the usual case
        return num_edges
    keys = (pairs[:, 0].long() * num_nodes + pairs[:, 1])[is_link].sort().values
    return int((keys[1:] != keys[:-1]).sum()) + int(len(keys) > 0)


def _check_mutual(pairs: Tensor, read: GraphReading, origin: str | Path, undirected: bool) -> None:
    """Refuse links of an object or a matrix that has a direction: some lack the opposite one.

    Args:
        pairs: The links as they were read, shape ``(P, 2)``.
        read: The undirected graph made of them.
        origin: Place that the error names.
        undirected: Whether to accept all links.
    """
    edges = len(read.edges)
    if not undirected and _distinct(pairs, int(read.nodes.num_nodes), edges) != 2 * edges:
        raise directed(origin)
