"""Lengths of shortest paths, by breadth-first search from many nodes at a time."""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal

EXACT_UP_TO = 20_000
SAMPLED_SOURCES = 512
MANY_EDGES = 1_000_000
FEWER_SOURCES = 128
"""Sources beyond :data:`MANY_EDGES`, from each of which a search passes all edges."""

# Sources per 64-bit word of a node, and words of a node per search.
_WORD = 64
_WORDS = 4
_AT_ONCE = 2**20  # neighbors whose words are in memory
# Sources per group: a table of all 16-bit patterns counts their bits.
_GROUP = 16
_BIT_COUNTS = (
    np.unpackbits(np.arange(2**_GROUP, dtype=np.uint16).view(np.uint8))
    .reshape(2**_GROUP, _GROUP)
    .sum(axis=1, dtype=np.uint8)
)


def characteristic_path_length(graph: Data) -> float:
    """Return the mean length of shortest paths between connected nodes; nan without an edge.

    It is exact up to :data:`EXACT_UP_TO` nodes and an estimate above; see :func:`distances`.
    """
    return distances(graph).mean


class _Links(NamedTuple):
    """Neighbors of nodes, each of which has one."""

    starts: NDArray[np.int64]
    """Where the neighbors of each node start, and the end, shape ``(N + 1,)``."""
    neighbors: NDArray[np.int32]
    """Neighbors of the first node, of the next one and so on."""


class Distances(NamedTuple):
    """Lengths of the shortest paths between connected nodes, measured or estimated."""

    counts: NDArray[np.float64]
    """Ordered pairs of nodes at distance 0, 1, ..., of which N are at distance 0.

    The last distance is the diameter, which estimated counts only bound from below.
    """
    mean: float
    """Mean over pairs of different nodes; nan without an edge."""
    standard_error: float
    """Standard error of the mean, 0 where all nodes are sources."""
    num_sources: int | None
    """Number of nodes from which all paths were measured; None if all nodes are sources."""
    covariance: NDArray[np.float64]
    """Covariance of the counts, shape ``(L, L)`` for L counts; 0 where they are exact."""


def distances(graph: Data, num_sources: int | None = None, seed: int = 0) -> Distances:
    """Measure or estimate the lengths of shortest paths between connected nodes.

    Args:
        graph: Graph of N nodes; those without an edge are at distance 0 of themselves only.
        num_sources: Number of nodes from which all paths are measured, at least 64 and rounded
            down to a multiple of 64; by default all up to :data:`EXACT_UP_TO` nodes and
            :data:`SAMPLED_SOURCES` above, or :data:`FEWER_SOURCES` if there are many edges.
        seed: Seed of the choice of sources.
    """
    rows, columns = graph.edge_index.cpu().numpy()
    degree = np.bincount(rows, minlength=graph.num_nodes)
    linked = degree > 0  # the search needs a neighbor of every node
    num_nodes = int(linked.sum())
    if not num_nodes:
        return _exact(np.array([float(graph.num_nodes)]), math.nan, math.nan)
    number = np.cumsum(linked, dtype=np.int32) - 1
    links = _Links(np.concatenate([[0], np.cumsum(degree[linked])]), number[columns])
    if num_sources is None:
        sampled = SAMPLED_SOURCES if graph.num_edges // 2 <= MANY_EDGES else FEWER_SOURCES
        num_sources = num_nodes if num_nodes <= EXACT_UP_TO else sampled
    if num_sources >= num_nodes:
        reached = _reached_by_group(links, np.arange(num_nodes)).sum(axis=1)
        mean = np.arange(1, len(reached) + 1) @ reached / reached.sum()
        return _exact(np.concatenate([[float(graph.num_nodes)], reached]), float(mean), 0.0)
    if num_sources < _WORD:
        raise Refusal(f"num_sources must be at least {_WORD}, got {num_sources}")
    num_sources -= num_sources % _WORD
    sources = np.random.default_rng(seed).permutation(num_nodes)[:num_sources]
    reached = _reached_by_group(links, sources)
    lengths, pairs = np.arange(1, len(reached) + 1) @ reached, reached.sum(axis=0)
    mean = lengths.sum() / pairs.sum()
    # The error of a ratio of two totals, from the spread between groups of sources, which are drawn
    # without replacement.
    groups = num_sources // _GROUP
    correction = groups / (groups - 1) * (1 - num_sources / num_nodes)
    residuals = lengths - mean * pairs
    error = np.sqrt(correction * (residuals**2).sum()) / pairs.sum()
    scale = num_nodes / num_sources
    counts = np.concatenate([[float(graph.num_nodes)], scale * reached.sum(axis=1)])
    spread = scale * (reached - reached.mean(axis=1, keepdims=True))
    covariance = np.zeros((len(counts), len(counts)))
    covariance[1:, 1:] = correction * spread @ spread.T
    return Distances(counts, float(mean), float(error), num_sources, covariance)


def _exact(counts: NDArray[np.float64], mean: float, error: float) -> Distances:
    return Distances(counts, mean, error, None, np.zeros((len(counts), len(counts))))


def _reached_by_group(links: _Links, sources: NDArray[np.int64]) -> NDArray[np.float64]:
    """Count nodes at distance 1, 2, ... from each group of sources, shape ``(levels, groups)``."""
    per_search = _WORD * _WORDS
    blocks = [
        _reached_by_level(links, sources[start : start + per_search])
        for start in range(0, len(sources), per_search)
    ]
    levels = max(map(len, blocks))
    return np.concatenate([np.pad(r, ((0, levels - len(r)), (0, 0))) for r in blocks], axis=1)


def _reached_by_level(links: _Links, sources: NDArray[np.int64]) -> NDArray[np.float64]:
    """Count nodes first reached at distance 1, 2, ... per group of sources: ``(levels, 16)``.

    Bit s of a node is 1 if source s has reached it. One ``or`` over the words of its neighbors
    then advances 64 searches by one edge.
    """
    num_nodes = len(links.starts) - 1
    numbers = np.arange(len(sources))
    visits = np.zeros((num_nodes, -(-len(sources) // _WORD)), dtype=np.uint64)
    visits[sources, numbers // _WORD] = np.uint64(1) << (numbers % _WORD).astype(np.uint64)
    front, ones = visits, np.ones(num_nodes)
    reached: list[NDArray[np.float64]] = []
    while True:
        # take() and the product with ones are several times faster than indexing and sum().
        front = _of_neighbors(links, front) & ~visits
        count = ones @ _BIT_COUNTS.take(front.view(np.uint16)).astype(np.float64)
        if not count.any():
            return np.array(reached)
        visits = visits | front
        reached.append(count)


def _of_neighbors(links: _Links, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Combine the words of the neighbors of each node by ``or``, in blocks of bounded memory."""
    starts = links.starts
    combined = np.empty_like(words)
    marks = np.searchsorted(starts, np.arange(_AT_ONCE, starts[-1], _AT_ONCE))
    for first, stop in pairwise(np.unique(np.r_[0, marks, len(words)]).tolist()):
        neighbors = links.neighbors[starts[first] : starts[stop]]
        rows = starts[first:stop] - starts[first]
        np.bitwise_or.reduceat(
            words.take(neighbors, axis=0), rows, axis=0, out=combined[first:stop]
        )
    return combined
