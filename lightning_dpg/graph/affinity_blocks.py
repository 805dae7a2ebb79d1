"""Blocks of nodes of similar degrees, whose edges make the triangles of BTER graphs."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.stubs import count_links

_PAIRS = 2**22  # pairs of nodes that are looked at at once; a node may have more
_SCALINGS = 4
_FULL = 0.99  # share of the block to which a node has links, beyond which factors become too large


def block_starts(sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    """Partition nodes into blocks, in which a node has as many others as its nodes want on average.

    Args:
        sizes: Wanted numbers of other nodes, in the order of the blocks, positive, shape ``(N,)``.

    Returns:
        Ascending positions of shape ``(B,)``; the last block ends with the nodes.
    """
    starts: list[int] = []
    count, total = 0, -1.0
    for position, size in enumerate(sizes.tolist()):
        if count * count > total:
            starts.append(position)
            count, total = 0, 0.0
        count += 1
        total += size
    return np.array(starts, dtype=np.int64)


def block_edges(
    nodes: NDArray[np.int64],
    starts: NDArray[np.int64],
    inner: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    r"""Link the pairs of each block at random, so that nodes have wanted links on average.

    Nodes i and j are linked with probability :math:`x_i x_j / (1 + x_i x_j)`, the law of largest entropy
    for given expected links. The factors x are found by iteration, and reach the wanted links roughly.

    Args:
        nodes: Nodes in the order of the blocks, shape ``(N,)``.
        starts: Where blocks start, shape ``(B,)``.
        inner: Wanted links of each node in its block, in the order of the blocks, shape ``(N,)``. More
            than 99 % of the other nodes of the block are cut.
        rng: Source of the draw.

    Returns:
        Edges of shape ``(M, 2)``, rows ``i < j`` in no order.
    """
    sizes = np.diff(starts, append=len(nodes))
    before = np.arange(len(nodes)) - np.repeat(starts, sizes)
    others = np.repeat(sizes - 1, sizes)
    shares = np.minimum(inner / np.maximum(others, 1), _FULL)
    inner, factors = shares * others, np.sqrt(shares / (1 - shares))  # right for equal nodes
    for _ in range(_SCALINGS):
        links = np.zeros(len(nodes))
        for part, first, second in _pairs(before):
            expected = _expected(factors[part], first, second)
            for ends in (first, second):
                links[part] += np.bincount(ends, expected, part.stop - part.start)
        factors *= np.divide(inner, links, out=np.zeros(len(nodes)), where=links > 0)
    edges = [np.empty((0, 2), dtype=np.int64)]
    for part, first, second in _pairs(before):
        linked = rng.random(len(second)) < _expected(factors[part], first, second)
        one, other = (nodes[part][ends[linked]] for ends in (first, second))
        edges.append(np.stack([np.minimum(one, other), np.maximum(one, other)], axis=1))
    return np.concatenate(edges)


def _expected(
    factors: NDArray[np.float64], first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.float64]:
    products = factors[first] * factors[second]
    return np.asarray(products / (1 + products))


def _pairs(
    before: NDArray[np.int64],
) -> Iterator[tuple[slice, NDArray[np.int64], NDArray[np.int64]]]:
    """Yield a part of the nodes, and in numbers of that part nodes with all ``before`` earlier ones."""
    ends = np.cumsum(before)
    marks = np.searchsorted(ends, np.arange(_PAIRS, ends[-1] if len(ends) else 0, _PAIRS))
    for start, stop in pairwise([0, *marks.tolist(), len(before)]):
        count = before[start:stop]
        part = slice(start - int(count[:1].sum()), stop)
        second = np.arange(start, stop) - part.start
        offsets = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        yield part, np.repeat(second - count, count) + offsets, np.repeat(second, count)


def within_degrees(
    edges: NDArray[np.int64], degrees: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Drop random edges of the nodes that have more than their degrees.

    Args:
        edges: Edges of shape ``(M, 2)``.
        degrees: Largest numbers of edges, shape ``(N,)``.
        rng: Source of the choice.
    """
    crowded = np.bincount(edges.ravel(), minlength=len(degrees)) > degrees
    touched = np.flatnonzero(crowded[edges].any(axis=1))
    ends = edges[rng.permutation(touched)]
    # The place of each end among the ends of its node, in a random order of the edges.
    order = np.argsort(ends.ravel(), kind="stable")
    sorted_ends = ends.ravel()[order]
    first = np.flatnonzero(np.diff(sorted_ends, prepend=-1))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    fits = (ranks.reshape(-1, 2) < degrees[ends]) | ~crowded[ends]
    rest = np.delete(edges, touched, axis=0)
    return np.concatenate([rest, ends[fits.all(axis=1)]])


def thinned(
    edges: NDArray[np.int64],
    classes: NDArray[np.int64],
    links: NDArray[np.int64],
    kept: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Drop random edges between classes that have more of them than wanted.

    Args:
        edges: Edges of shape ``(M, 2)``.
        classes: Class of each node, integers from 0 below K, shape ``(N,)``.
        links: Wanted edges between classes, as :func:`count_links` gives them, shape ``(K, K)``.
        kept: Share of the surplus that stays, from 0 to 1.
        rng: Source of the choice.
    """
    counts = count_links(classes, edges)
    surplus = np.maximum(counts - links, 0)
    shares = 1 - (1 - kept) * surplus / np.maximum(counts, 1)
    ends = classes[edges]
    return edges[rng.random(len(edges)) < shares[ends.max(axis=1), ends.min(axis=1)]]
