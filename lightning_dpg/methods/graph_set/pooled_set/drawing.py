"""Drawing of one graph that meets the pooled statistics of its class."""

from random import Random

from lightning_dpg.graph.swaps import SwapGraph
from lightning_dpg.methods.graph_set.pooled_set.degree_shapes import (
    Floats,
    expected_degrees,
    whole_degrees,
)
from lightning_dpg.methods.graph_set.pooled_set.statistics import Ints


def draw_edges(
    size: int,
    num_edges: int,
    shape: Floats,
    closed_share: float,
    component_share: float,
    coins: Random,
) -> list[list[int]]:
    """Draw a graph of given degrees, largest component and triangles.

    Args:
        size: Number of nodes.
        num_edges: Number of edges, at most all pairs.
        shape: Degrees as shares of the possible neighbors, by bin, shape ``(B,)``.
        closed_share: Share of the wedges that triangles close.
        component_share: Share of the nodes that are in the largest component.
        coins: Public source of the draw.

    Returns:
        Pairs of nodes, ``num_edges`` of them.
    """
    degrees = expected_degrees(size, num_edges, shape)
    names = list(range(size))
    coins.shuffle(names)
    edges: list[list[int]] = []
    start = 0
    for part_size, part_edges in _parts(size, num_edges, degrees, component_share):
        stop = start + part_size
        for pair in _draw_part(degrees[start:stop], part_edges, start == 0, closed_share, coins):
            edges.append([names[start + node] for node in pair])
        start = stop
    return edges


def num_wedges(degrees: Ints) -> int:
    """Number of pairs of edges that share a node."""
    return int((degrees * (degrees - 1) // 2).sum())


def _draw_part(
    expected: Floats, num_edges: int, connected: bool, closed_share: float, coins: Random
) -> list[tuple[int, int]]:
    """Draw from a random graph, or from one with more triangles where swaps fall short."""
    if not num_edges:
        return []
    degrees = whole_degrees(expected, num_edges, int(connected))
    target = closed_share * num_wedges(degrees) / 3
    attempts = []
    for shuffled in (True, False):
        graph = SwapGraph(degrees.tolist(), num_edges, coins)
        if shuffled:
            graph.shuffle()
        if connected:
            graph.connect()
        lacking = graph.reach_triangles(target, connected=connected)
        if lacking <= 0.5:
            return graph.edges
        attempts.append((lacking, graph.edges))
    return min(attempts)[1]


def _parts(
    size: int, num_edges: int, degrees: Floats, component_share: float
) -> list[tuple[int, int]]:
    """Nodes and edges of the largest component, which has the largest degrees, and of the rest.

    The rest is one part or several, none larger than the first one.
    """
    largest = min(max(round(component_share * size), 1), num_edges + 1, size)
    most_inside = largest * (largest - 1) // 2
    sizes = [min(largest, size - start) for start in range(largest, size, largest)]
    rest = []
    for number, part_size in enumerate(sizes):
        start = largest * (number + 1)
        own_edges = round(float(degrees[start : start + part_size].sum()) / 2)
        rest.append(min(own_edges, part_size * (part_size - 1) // 2))
    inside = num_edges - sum(rest)
    if not largest - 1 <= inside <= most_inside:
        return _spread(size, num_edges, largest)
    return [(largest, inside), *zip(sizes, rest, strict=True)]


def _spread(size: int, num_edges: int, largest: int) -> list[tuple[int, int]]:
    """The largest component with all edges, and nodes without any; larger where they do not fit."""
    while largest * (largest - 1) // 2 < num_edges:
        largest += 1
    return [(largest, num_edges), (size - largest, 0)]
