"""Queries about directed and bipartite graphs only (read the private graph)."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch_geometric.data import Data

from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.metrics.divergence import kl_divergence
from lightning_dpg.metrics.queries import Answer, relative_error

_ROWS_AT_ONCE = 1024


def num_directed_edges(graph: Data) -> float:
    """Count ordered pairs that are edges."""
    return float(len(space_of(graph).edges(graph)))


def reciprocity(graph: Data) -> float:
    """Return the share of directed edges whose opposite is an edge, too; nan without an edge."""
    space = space_of(graph)
    edges = space.edges(graph)
    if not len(edges):
        return math.nan
    mutual = np.isin(space.numbers(edges.flip(1)).numpy(), space.numbers(edges).numpy())
    return float(mutual.mean())


def butterflies(graph: Data) -> float:
    """Count butterflies of a bipartite graph: two left nodes with two common right neighbors.

    Wang, Fu, Cheng, "Rectangle counting in large bipartite graphs", 2014.
    """
    space = space_of(graph)
    edges, left = space.edges(graph).numpy(), space.num_left or 0
    shape = (left, space.num_nodes - left)
    links = csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1] - left)), shape=shape)
    by_left, by_right = links.sum(axis=1), links.sum(axis=0)
    if (by_left**2).sum() < (by_right**2).sum():  # fewer paths of two edges between right nodes
        links = csr_array(links.T)
    total = 0.0
    for start in range(0, links.shape[0], _ROWS_AT_ONCE):
        common = (links[start : start + _ROWS_AT_ONCE] @ links.T).tocoo()
        others = common.data[common.row + start != common.col]
        total += float((others * (others - 1) / 2).sum())
    return total / 2


def part_degrees(graph: Data, part: int) -> NDArray[np.float64]:
    """Count nodes of degree 0, 1, ... in one part of the degree vector.

    Args:
        graph: A directed or bipartite graph.
        part: 0 for out-degrees or left nodes, 1 for in-degrees or right nodes.
    """
    space = space_of(graph)
    entries = space.parts[part]
    degrees = space.degrees(space.edges(graph))[entries.start : entries.stop]
    return np.bincount(degrees.numpy()).astype(np.float64)


_VALUES: dict[str, dict[str, Callable[[Data], float]]] = {
    "undirected": {},
    "directed": {"num_directed_edges": num_directed_edges, "reciprocity": reciprocity},
    "bipartite": {"butterflies": butterflies},
}
_DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "undirected": (),
    "directed": ("out_degree_distribution_kl", "in_degree_distribution_kl"),
    "bipartite": ("left_degree_distribution_kl", "right_degree_distribution_kl"),
}
KIND_QUERIES: dict[str, tuple[str, ...]] = {
    kind: (*_VALUES[kind], *_DISTRIBUTIONS[kind]) for kind in _VALUES
}
"""Queries beside the common ones, by the kind of the graphs."""


def compare_kinds(real: Data, synthetic: Data) -> dict[str, Answer]:
    """Answer :data:`KIND_QUERIES` of two graphs of one kind.

    Args:
        real: Real graph.
        synthetic: Synthetic graph of the same kind. Nodes are matched by name, and a node that one
            graph lacks counts as a node without an edge.
    """
    kind = space_of(real).kind
    answers = {}
    for name, value in _VALUES[kind].items():
        ours, theirs = value(real), value(synthetic)
        answers[name] = Answer(ours, theirs, relative_error(ours, theirs))
    for part, name in enumerate(_DISTRIBUTIONS[kind]):
        counts = part_degrees(real, part), part_degrees(synthetic, part)
        counts[0][0] += _lacked(real, synthetic, part)
        counts[1][0] += _lacked(synthetic, real, part)
        answers[name] = Answer(math.nan, math.nan, kl_divergence(*counts))
    return answers


def _lacked(graph: Data, other: Data, part: int) -> int:
    """Count nodes of one part of another graph that a graph lacks; 0 if no name is common."""
    names = {*graph.node_names}
    if names.isdisjoint(other.node_names):
        return 0
    sides = other.sides.tolist() if "sides" in other else [part] * other.num_nodes
    return sum(
        side == part and name not in names
        for name, side in zip(other.node_names, sides, strict=True)
    )
