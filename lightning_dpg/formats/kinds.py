"""Directed and bipartite graphs from readings, whose rows keep the order of their two ends."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lightning_dpg.formats.conversion import GraphReading, NodeSet, with_edges
from lightning_dpg.formats.edge_columns import bipartite
from lightning_dpg.formats.node_lists import given_column, given_names
from lightning_dpg.graph.node_names import GraphFormatError, natural_key
from lightning_dpg.graph.pair_space import BipartitePairs, DirectedPairs, apart


class Sides(NamedTuple):
    """Names of the nodes of both sides (public), each in natural order."""

    left: Sequence[str]
    right: Sequence[str]


def given_sides(
    left: str | Sequence[str] | None,
    right: str | Sequence[str] | None,
    nodes: str | Sequence[str] | None,
    node_column: str | None,
    side_column: str | None,
) -> Sides | None:
    """Read the sides from two lists or files of ids, or from a column of the table of nodes.

    Args:
        left: Ids of the left nodes, or a file of them; both sides, or neither.
        right: Ids of the right nodes, or a file of them.
        nodes: File of the table of nodes.
        node_column: Column that holds the ids.
        side_column: Column that holds one of two values; the left one is first in natural order.

    Returns:
        The names of both sides, or None if none of this is given.
    """
    if left is not None and right is not None:
        return Sides(given_names(left, node_column), given_names(right, node_column))
    if side_column is None:
        return None
    if not isinstance(nodes, str) or node_column is None:
        raise GraphFormatError(
            f"nodes.side_column {side_column!r} is a column of the table of nodes\n"
            "give its file and the column of ids: nodes.ids and nodes.column"
        )
    side_of = given_column(nodes, node_column, side_column)
    values = sorted({*side_of.values()}, key=natural_key)
    if len(values) != 2:
        shown = ", ".join(map(repr, values[:4]))
        raise GraphFormatError(
            f"nodes {nodes}: column {side_column!r} holds {len(values)} values ({shown}"
            f"{', ...' if len(values) > 4 else ''})\nexpected two, one for each side"
        )
    names = sorted(side_of, key=natural_key)
    left, right = ([name for name in names if side_of[name] == value] for value in values)
    return Sides(left, right)


def in_kind(reading: GraphReading, kind: str, sides: Sides | None = None) -> GraphReading:
    """Turn a reading into a graph of the given kind.

    Args:
        reading: The reading, whose graph is undirected.
        kind: ``undirected``, ``directed`` or ``bipartite``.
        sides: Names of the nodes of both sides of a bipartite graph. By default the sides that the
            source has or, of rows of two columns, the names in each column.
    """
    if reading.numbers_sides and kind != "bipartite":
        raise bipartite(reading.origin)
    if kind == "bipartite":
        return _as_bipartite(reading, sides)
    return _as_directed(with_edges(reading)) if kind == "directed" else with_edges(reading)


def _as_directed(reading: GraphReading) -> GraphReading:
    if not reading.has_direction:
        raise GraphFormatError(
            "the graph is undirected: its source has no direction of edges\n"
            "expected ordered pairs, such as an edge list or a networkx.DiGraph\n"
            "set kind to undirected (--kind undirected)"
        )
    names = reading.nodes.node_names
    nodes, edges = apart(DirectedPairs(len(names)).graph(reading.links, names))
    return _summarized(reading._replace(nodes=nodes, edges=edges), "directed")


def _as_bipartite(reading: GraphReading, sides: Sides | None) -> GraphReading:
    names = np.array(reading.nodes.node_names, dtype=object)
    ends = reading.links.numpy()
    node_set = reading.node_set if sides is None else NodeSet.LIST
    both = sides or _found_sides(reading, names)
    left, right = ({name: k for k, name in enumerate(side)} for side in both)
    if not left or not right:
        raise GraphFormatError("a bipartite graph needs nodes on both sides, and one has none")
    numbers = _numbered(reading, names, ends, left, right)
    listed = names_of_sides(both)
    space = BipartitePairs(len(listed), len(left))
    links = torch.from_numpy(numbers)
    nodes, edges = apart(space.graph(links, listed))
    two_sided = reading._replace(
        nodes=nodes, edges=edges, node_set=node_set, sides=nodes.sides, links=links
    )
    return _summarized(two_sided, f"{len(left):,} left, {len(right):,} right")


def names_of_sides(sides: Sides) -> list[str]:
    """Return the names of all nodes in a graph, the left ones first."""
    if set(sides.left).isdisjoint(sides.right):
        return [*sides.left, *sides.right]
    # Two numberings, such as user 1 and item 1
    return [f"{side}:{name}" for side in sides._fields for name in getattr(sides, side)]


def _found_sides(reading: GraphReading, names: NDArray[np.object_]) -> Sides:
    """Return the sides that the source has, or the names in each of the two columns."""
    if reading.sides is not None:
        unknown = names[reading.sides.numpy() < 0]  # of a list of nodes beside the source
        if len(unknown):
            raise GraphFormatError(
                f"nodes whose side is not known, as the source does not have them: {len(unknown):,}\n"
                "give the ids of both sides: nodes.left and nodes.right\n"
                "(--data.nodes.left FILE --data.nodes.right FILE)"
            )
        of_left = reading.sides.numpy() == 0
        return Sides(names[of_left].tolist(), names[~of_left].tolist())
    if not reading.has_direction or reading.node_set is not NodeSet.LINES:
        raise GraphFormatError(
            "the side of each node is not known\n"
            "give the ids of both sides: nodes.left and nodes.right\n"
            "(--data.nodes.left FILE --data.nodes.right FILE), or a column of the table of nodes:\n"
            "nodes.side_column; a graph of networkx or GraphML may have a node attribute 'bipartite'"
        )
    left, right = (names[np.unique(column)].tolist() for column in reading.links.numpy().T)
    return Sides(sorted(left, key=natural_key), sorted(right, key=natural_key))


def _numbered(
    reading: GraphReading,
    names: NDArray[np.object_],
    ends: NDArray[np.int64],
    left: dict[str, int],
    right: dict[str, int],
) -> NDArray[np.int64]:
    """Return the numbers of both ends of each row, the left node first."""
    on_left = np.array([left.get(name, -1) for name in names])
    on_right = np.array([right.get(name, -1) for name in names])
    rows = np.stack([on_left[ends[:, 0]], on_right[ends[:, 1]]], axis=1)
    turned = np.stack([on_left[ends[:, 1]], on_right[ends[:, 0]]], axis=1)
    # A row may hold the right node first, unless an id can mean a node of either side.
    use = (rows < 0).any(axis=1) & (turned >= 0).all(axis=1) & left.keys().isdisjoint(right)
    rows[use] = turned[use]
    bad = np.flatnonzero((rows < 0).any(axis=1))
    if len(bad):
        sides = left | right
        apart = sum(any(names[end] not in sides for end in ends[row]) for row in bad)
        raise GraphFormatError(
            f"{reading.origin}: edges with an id that is on no side: {apart:,}, edges that do not link "
            f"the two sides: {len(bad) - apart:,}{reading.first(int(bad[0]))}\n"
            "expected edges between a left and a right node\nadd the id to nodes.left or nodes.right, "
            "or leave the row out"
        )
    rows[:, 1] += len(left)
    return rows


def _summarized(reading: GraphReading, what: str) -> GraphReading:
    """Replace the count of undirected edges in the line for the owner (private)."""
    origin = reading.summary.partition(":")[0]
    example = reading.summary.rpartition("; e.g. ")[2]
    left_out = re.search(r"; [\d,]+ rows without an id", reading.summary)
    nodes, edges = int(reading.nodes.num_nodes), len(reading.edges)
    what += "" if left_out is None else left_out[0]
    line = f"{origin}: {nodes:,} nodes, {edges:,} edges ({what}); e.g. {example}"
    return reading._replace(summary=line)
