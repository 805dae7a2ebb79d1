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

from lightning_dpg.formats.attribute_sources import attributes_of_networkx, attributes_of_pyg
from lightning_dpg.formats.edge_columns import directed
from lightning_dpg.formats.transfer_columns import EdgeValues
from lightning_dpg.graph.attributes import AttributeTable
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.node_names import (
    GraphFormatError,
    NoEdgesError,
    is_missing,
    natural_order,
)

_MOST_MUTUAL = 0.05
"""Share of the links that an undirected list may hold in both directions."""


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

    graph: Data
    node_set: NodeSet
    summary: str
    """Line for the owner: exact counts and two names, which must not be published."""
    links: Tensor
    """Rows as they were read, in the numbers of the graph's nodes, shape ``(L, 2)``."""
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


def holds_attributes(reading: GraphReading) -> bool:
    """Return whether the source holds attributes of nodes, without reading them."""
    return reading.attributes is not _no_attributes


def on_nodes(reading: GraphReading, nodes: Sequence[str], origin: str | Path) -> GraphReading:
    """Put a graph on a given set of nodes in natural order; others must have no edges."""
    graph = reading.graph
    number = {name.strip(): i for i, name in enumerate(nodes)}  # tables have no spaces around an id
    numbers = torch.tensor([number.get(name.strip(), -1) for name in graph.node_names])
    edges = numbers[undirected_edges(graph)]
    if outside := int((edges < 0).any(dim=1).sum()):
        raise GraphFormatError(
            f"{origin}: edges with an id that is not among the {len(nodes):,} ids of nodes: "
            f"{outside:,}\nexpected edges between ids of the node list only"
        )
    whole = make_graph(edges, len(nodes), nodes)
    sides = None
    if reading.sides is not None:
        by_name = dict(zip(graph.node_names, reading.sides.tolist(), strict=True))
        sides = torch.tensor([by_name.get(name, -1) for name in nodes])
    return reading._replace(
        graph=whole,
        node_set=NodeSet.LIST,
        summary=f"{reading.summary}; {len(nodes):,} nodes by list",
        links=numbers[reading.links],
        sides=sides,
    )


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


def from_networkx(graph: nx.Graph, *, undirected: bool = False, origin: str = "graph") -> Data:
    """Convert a networkx graph; names are the nodes as text, in natural order."""
    return read_networkx(graph, undirected=undirected, origin=origin).graph


def read_networkx(
    graph: nx.Graph, *, undirected: bool = False, origin: str = "graph", form: str = "networkx"
) -> GraphReading:
    """Convert a networkx graph and summarize it."""
    if graph.is_directed() and not undirected:
        raise directed(origin)
    number = {node: i for i, node in enumerate(graph)}
    pairs = torch.tensor([(number[u], number[v]) for u, v in graph.edges()], dtype=torch.long)
    names = [str(node) for node in number]
    reading = checked(pairs.view(-1, 2), names, origin, form, is_directed=graph.is_directed())
    sides = [graph.nodes[node].get("bipartite") for node in number]
    reading = with_sides(reading._replace(has_direction=graph.is_directed()), sides, names)
    if form != "built in":
        values = {str(key) for *_, data in graph.edges(data=True) for key in data}
        reading = without_values(reading, sorted(values - {"id"}))  # GraphML numbers its edges
    if not any(attributes for _, attributes in graph.nodes(data=True)):
        return reading
    return reading._replace(attributes=lambda: attributes_of_networkx(graph, names, origin, form))


def from_pyg(data: Data, *, undirected: bool = False) -> Data:
    """Convert a PyTorch Geometric graph, which must hold both orientations of each edge.

    Features ``x`` and classes ``y`` of its nodes are kept.
    """
    return read_pyg(data, undirected=undirected).graph


def read_pyg(data: Data, *, undirected: bool = False) -> GraphReading:
    """Convert a PyTorch Geometric graph and summarize it."""
    if data.edge_index is None:
        raise GraphFormatError("Data: no edge_index\nexpected a long tensor of shape (2, 2M)")
    num_nodes = int(data.num_nodes or 0)
    names = [str(name) for name in getattr(data, "node_names", None) or range(num_nodes)]
    reading = checked(data.edge_index.T.cpu(), names, "Data", "PyTorch Geometric", both=True)
    check_mutual(data.edge_index.T.cpu(), reading.graph, "Data", undirected)
    values = sorted(key for key in data.edge_attrs() if key != "edge_index")
    reading = without_values(reading, values)
    order = torch.tensor(natural_order(names))
    for key in {"x", "y"} & set(data.keys()):
        if isinstance(data[key], Tensor) and data[key].shape[:1] == (num_nodes,):
            reading.graph[key] = data[key][order]
    sides = getattr(data, "sides", None)
    if sides is not None:
        reading = with_sides(reading, sides.tolist(), names)
    if data.x is None and data.y is None:
        return reading
    return reading._replace(attributes=lambda: attributes_of_pyg(data, names))


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
    check_mutual(pairs, reading.graph, origin, undirected)
    has_values = bool((matrix.data != 1).any())
    return without_values(reading, ["entries other than 1"] if has_values else [])


def read_edges(
    pairs: Tensor,
    names: list[str],
    origin: str | Path,
    form: str,
    *,
    undirected: bool,
    node_set: NodeSet = NodeSet.LINES,
    is_symmetric: bool = False,
) -> GraphReading:
    """Build a graph of a list of edges, which lists each edge once, or each edge twice.

    Args:
        pairs: Positions in ``names``, shape ``(P, 2)``.
        names: Names of all nodes, in any order.
        origin: Place that an error names.
        form: How the pairs were written.
        undirected: Whether to drop the directions of a directed graph instead of refusing it.
        node_set: Origin of the names.
        is_symmetric: Whether the source says that its links have no direction.
    """
    reading = checked(pairs, names, origin, form, node_set=node_set)
    if is_symmetric:
        return reading._replace(has_direction=False)
    check_mutual(pairs, reading.graph, origin, undirected, _MOST_MUTUAL)
    return reading


def checked(
    pairs: Tensor,
    names: list[str],
    origin: str | Path,
    form: str,
    *,
    both: bool = False,
    is_directed: bool = False,
    node_set: NodeSet = NodeSet.TABLE,
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
    """
    if len(names) < 2:
        raise GraphFormatError(f"{origin}: {len(names)} node(s)\nexpected two nodes or more")
    if odd := next((name for name in names if is_missing(name)), None):
        raise GraphFormatError(f"{origin}: a node named {odd!r}\nexpected names, none missing")
    if outside := int(((pairs < 0) | (pairs >= len(names))).any(dim=1).sum()):
        raise GraphFormatError(
            f"{origin}: edges with a number of no node: {outside:,}\n"
            f"expected numbers from 0 to {len(names) - 1}"
        )
    order = natural_order(names)
    position = torch.empty(len(names), dtype=torch.long)
    position[torch.tensor(order)] = torch.arange(len(names))
    try:
        links = position[pairs]
        graph = make_graph(links, len(names), [names[i] for i in order])
    except ValueError as error:
        raise GraphFormatError(f"{origin}: {error}") from error
    if graph.num_edges == 0:
        raise NoEdgesError(f"{origin}: no edges\nexpected an edge between two different nodes")
    loops = int((pairs[:, 0] == pairs[:, 1]).sum())
    edges = graph.num_edges // 2
    distinct = _distinct(pairs, len(names), edges)
    mutual = distinct - edges
    dropped = mutual % edges  # all of them twice is one way to write an undirected graph
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
    return GraphReading(graph, node_set, summary, links)


def with_sides(
    reading: GraphReading, sides: Sequence[object], names: Sequence[str]
) -> GraphReading:
    """Add the side of each node, 0 or 1, if a source has one for every node.

    Args:
        reading: The reading.
        sides: Side of each node; anything else says that the source has none.
        names: Names of the nodes in the same order.
    """
    by_name = dict(zip(names, (str(side) for side in sides), strict=True))
    if not {*by_name.values()} <= {"0", "1"}:
        return reading
    return reading._replace(
        sides=torch.tensor([int(by_name[name]) for name in reading.graph.node_names])
    )


def _distinct(pairs: Tensor, num_nodes: int, num_edges: int) -> int:
    """Count different directed links without loops, of which undirected edges are known."""
    is_link = pairs[:, 0] != pairs[:, 1]
    if int(is_link.sum()) == num_edges:  # no edge is listed twice, the usual case
        return num_edges
    keys = (pairs[:, 0] * num_nodes + pairs[:, 1])[is_link].sort().values
    return int((keys[1:] != keys[:-1]).sum()) + int(len(keys) > 0)


def check_mutual(
    pairs: Tensor, graph: Data, origin: str | Path, undirected: bool, most: float | None = None
) -> None:
    """Refuse links of which only some have an opposite.

    Args:
        pairs: The links as they were read, shape ``(P, 2)``.
        graph: The undirected graph made of them.
        origin: Place that the error names.
        undirected: Whether to accept all links.
        most: Largest share of edges in both directions; by default all edges must be in both.
    """
    edges = graph.num_edges // 2
    mutual = _distinct(pairs, graph.num_nodes, edges) - edges
    if most is not None:
        check_share_of_mutual(mutual, edges, origin, undirected, most)
    elif not undirected and mutual != edges:
        raise directed(origin)


def check_share_of_mutual(
    mutual: int, edges: int, origin: str | Path, undirected: bool, most: float = _MOST_MUTUAL
) -> None:
    """Refuse a list of which many links, but not all, have an opposite.

    Args:
        mutual: Number of edges that are listed in both directions.
        edges: Number of edges.
        origin: Place that the error names.
        undirected: Whether to accept all links.
        most: Largest share of edges in both directions.
    """
    if undirected or mutual == edges or mutual <= most * edges:
        return
    raise GraphFormatError(
        f"{origin}: some links, and not all, are there in both directions, so it looks directed\n"
        "expected an undirected graph, whose edges are all listed once, or all twice\n"
        "set kind to directed (--kind directed), or\n"
        "set undirected=True (--undirected) to drop the directions"
    )
