"""Random edges that give nodes the degrees they still lack, by linking half-edges (stubs)."""

import random
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.counts import rounded
from lightning_dpg.graph.pair_numbers import (
    are_among,
    are_first,
    contains,
    pair_keys,
    pairs_of_keys,
)

_BLOCK = 2**20  # edges that are counted at once, and stubs beyond the cache of a processor
_INDEPENDENT = 1e-3  # enough that no class is cut off, too little to show
_SCALINGS = 50
_TRIES, _NEAR_TRIES = 100, 200
_UNTANGLING_ROUNDS = 50

Level = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Class of each node, ``(N,)``, and wanted ends of links by class and class, symmetric ``(K, K)``."""

NO_PAIRS = np.empty((0, 2), dtype=np.int64)


def count_links(classes: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count edges by the classes of their ends.

    Args:
        classes: Class of each node, integers from 0 below K, shape ``(N,)``.
        edges: Edges of shape ``(M, 2)``.

    Returns:
        Edges between class a and a class b <= a in row a and column b, shape ``(K, K)``.
    """
    size = int(classes.max()) + 1
    counts = np.zeros(size**2, dtype=np.int64)
    for start in range(0, len(edges), _BLOCK):
        one, other = classes[edges[start : start + _BLOCK]].T
        cells = np.maximum(one, other) * size + np.minimum(one, other)
        counts += np.bincount(cells, minlength=size**2)
    return counts.reshape(size, size)


def ends_of_links(links: NDArray[Any]) -> NDArray[Any]:
    """Return symmetric matrices ``(..., K, K)`` whose rows sum to the ends of links."""
    lower = np.tril(links)
    return np.asarray(lower + np.swapaxes(lower, -1, -2))


def links_of_ends(ends: NDArray[Any]) -> NDArray[np.float64]:
    """Invert :func:`ends_of_links` for one matrix ``(K, K)``."""
    return np.asarray(np.tril(ends, -1) + np.diag(np.diag(ends)) / 2)


def pair_stubs(
    lacking: NDArray[np.int64],
    levels: Sequence[Level],
    rng: np.random.Generator,
    *,
    num_first: int | None = None,
) -> NDArray[np.int64]:
    """Pair the stubs of nodes at random, with links between classes next to wanted ones.

    Numbers of links are rounded at random, so that none is far from its expectation. Classes whose
    stubs do not suffice lack a few links; the next level pairs the stubs that are left over, and
    chance those that all levels leave.

    Args:
        lacking: Number of stubs of each node, shape ``(N,)``.
        levels: Classes of nodes and their wanted links, the finest classes first.
        rng: Source of the draw.
        num_first: Nodes of the first of two sides, where pairs link both; None of a single side.

    Returns:
        Pairs of nodes, the first side first; a last odd stub is left over.
    """
    parts: list[NDArray[Any]] = []
    for classes, mixing in levels:
        wanted = links_of_ends(mixing)
        for pairs in parts:
            wanted = np.maximum(wanted - count_links(classes, pairs), 0)
        links = rounded(wanted.ravel(), rng.random()).reshape(wanted.shape)
        pairs, lacking = _linked(lacking, classes, links, rng)
        parts.append(pairs if num_first is None else pairs[:, ::-1])
    rest = rng.permutation(np.repeat(np.arange(len(lacking)), lacking))
    if num_first is None:
        parts.append(rest[: len(rest) // 2 * 2].reshape(-1, 2))
    else:
        one, other = rest[rest < num_first], rest[rest >= num_first]
        count = min(len(one), len(other))
        parts.append(np.stack([one[:count], other[:count]], axis=1))
    return np.concatenate(parts, dtype=parts[0].dtype)


def _linked(
    lacking: NDArray[np.int64],
    classes: NDArray[np.int64],
    links: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Pair random stubs by the links between classes while there are stubs; and count the others."""
    kind = np.int32 if len(lacking) < 2**31 else np.int64  # memory
    members, sizes = [], np.bincount(classes, minlength=len(links))
    for nodes in np.split(np.argsort(classes, kind="stable").astype(kind), np.cumsum(sizes)[:-1]):
        members.append(shuffled(np.repeat(nodes, lacking[nodes]), rng))
    free = [len(stubs) for stubs in members]
    pairs, place = np.empty((links.sum(), 2), dtype=kind), 0
    for a, b in rng.permutation(np.argwhere(links)).tolist():
        count = min(int(links[a, b]), free[a] // (1 + int(a == b)), free[b])
        for side, k in enumerate((a, b)):
            free[k] -= count
            pairs[place : place + count, side] = members[k][free[k] : free[k] + count]
        place += count
    rest = [stubs[:count] for stubs, count in zip(members, free, strict=True)]
    return pairs[:place], np.bincount(np.concatenate(rest), minlength=len(lacking))


def shuffled(nodes: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Put nodes into random order."""
    if len(nodes) < _BLOCK:
        return rng.permutation(nodes)
    # Many random numbers, each with a node in its lowest bits, are sorted sooner than places exchanged.
    bits = int(nodes.max(initial=0)).bit_length()
    numbers = rng.integers(1 << 63 - bits, size=len(nodes))
    numbers <<= bits
    numbers |= nodes
    numbers.sort()
    numbers &= (1 << bits) - 1
    return numbers.astype(nodes.dtype)


def draw_links(
    degrees: NDArray[np.int64],
    levels: Sequence[Level],
    rng: np.random.Generator,
    *,
    no_pairs: NDArray[np.int64] = NO_PAIRS,
    num_first: int | None = None,
) -> NDArray[np.int64]:
    """Draw a simple graph with given degrees, and links between classes next to wanted ones.

    Loops and repeated pairs are removed by exchanges that keep the links between classes, then by
    insertions into other edges, of the same coarsest classes if possible. A pair for which no place is
    found links one of its nodes to another one, so that there are as many edges as pairs of stubs.

    Args:
        degrees: Degrees of shape ``(N,)``.
        levels: Classes of nodes and their wanted links, the finest classes first.
        rng: Source of the draw.
        no_pairs: Pairs that are no edges, shape ``(P, 2)``.
        num_first: Nodes of the first of two sides, where edges link both; None of a single side.

    Returns:
        Edges of shape ``(M, 2)``, rows ``i < j``. Degrees differ only where no place was found, and there
        are fewer edges only where all pairs are edges.
    """
    pairs = pair_stubs(degrees, levels, rng, num_first=num_first).astype(np.int64)
    for classes, _ in levels:
        pairs = untangle(pairs, classes, rng, no_pairs)
    num_nodes, coarsest = len(degrees), levels[-1][0] if levels else None
    numbers, fixed = (pair_keys(part, num_nodes) for part in (pairs, no_pairs))
    added = link_numbers(numbers, fixed, num_nodes, rng, classes=coarsest, num_first=num_first)
    return pairs_of_keys(added, num_nodes)


def stub_mixing(
    links: NDArray[Any], totals: NDArray[Any], *, num_first: int | None = None
) -> NDArray[np.float64]:
    """Return how many stubs of class a link to class b if totals take precedence over links.

    Args:
        links: Wanted links between classes, as :func:`count_links` gives them, shape ``(K, K)``.
        totals: Number of stubs of each class, shape ``(K,)``.
        num_first: Classes of the first of two sides, where links are between both; None of a single
            side.

    Returns:
        Symmetric matrix of shape ``(K, K)`` with the row sums ``totals``: ``links`` with scaled
        rows and columns, after a small share of independent mixing that leaves no class cut off.
    """
    total = max(totals.sum(), 1)
    independent = _INDEPENDENT * np.outer(totals, totals) / total
    if num_first is not None:
        independent[:num_first, :num_first] = independent[num_first:, num_first:] = 0
    mixing = links + links.T + independent
    scale = np.ones(len(totals))
    for _ in range(_SCALINGS):
        sums = scale * (mixing @ scale)
        # Both ends are corrected, each by half.
        scale *= np.sqrt(np.divide(totals, sums, out=np.zeros(len(totals)), where=sums > 0))
    return mixing * np.outer(scale, scale)


def link_numbers(
    numbers: NDArray[np.int64],
    fixed: NDArray[np.int64],
    num_nodes: int,
    rng: np.random.Generator,
    *,
    classes: NDArray[np.int64] | None = None,
    num_first: int | None = None,
) -> NDArray[np.int64]:
    """Link pairs of stubs as numbers, see :func:`pair_keys`, which take half the memory.

    A pair that cannot be linked is inserted into a random added edge: from a, b and (c, d) come
    (a, c) and (b, d). All nodes keep the number of their stubs. Where no edge takes it, one of its nodes
    is linked to any other one.

    Args:
        numbers: Numbers of the pairs, shape ``(P,)``; overwritten.
        fixed: Numbers of the edges that exist, shape ``(M,)``; they stay.
        num_nodes: Number of nodes N.
        rng: Source of the draw.
        classes: Class of each node, shape ``(N,)``; edges that keep the links between classes are
            tried first.
        num_first: Nodes of the first of two sides, where edges link both; None of a single side.

    Returns:
        Numbers of the added edges, shape ``(K,)``, in no order. There are fewer than P only where all
        pairs of nodes are edges.
    """
    ascending = np.concatenate([numbers, fixed])
    ascending.sort()
    fits = are_first(numbers, fixed, ascending)
    for start in range(0, len(numbers), _BLOCK):  # a loop is a multiple of N + 1
        fits[start : start + _BLOCK] &= numbers[start : start + _BLOCK] % (num_nodes + 1) != 0
    lacking = pairs_of_keys(numbers[~fits], num_nodes)
    added = _kept(numbers, fits)
    others: list[int] = []
    changed: dict[int, bool] = {}  # beside the array, which takes a tenth of a set's memory

    def is_present(number: int) -> bool:
        if number in changed:
            return changed[number]
        # Loops and repeated numbers do no harm: none is looked up.
        place = int(ascending.searchsorted(number))
        return place < len(ascending) and int(ascending[place]) == number

    # NumPy's generator takes microseconds for a single number.
    draw = random.Random(int(rng.integers(2**62)))
    near = _NEAR_TRIES if classes is not None else 0
    of_node = [] if classes is None else classes.tolist()
    for a, b in lacking.tolist():
        for left in reversed(range(near + _TRIES if len(added) else 0)):
            place = draw.randrange(len(added) + len(others))
            is_first = place < len(added)
            old = int(added[place]) if is_first else others[place - len(added)]
            d, c = divmod(old, num_nodes)
            if num_first is None:
                c, d = draw.sample((d, c), 2)
            if left >= _TRIES and of_node[c] != of_node[b] and of_node[d] != of_node[a]:
                continue
            new = [min(p, q) * num_nodes + max(p, q) for p, q in ((a, c), (b, d)) if p != q]
            if len({*new}) == 2 and not any(map(is_present, new)):
                changed |= {old: False, **dict.fromkeys(new, True)}
                if is_first:
                    added[place] = new[0]
                else:
                    others[place - len(added)] = new[0]
                others.append(new[1])
                break
        else:
            start = draw.randrange(num_nodes)
            free = _pairs_near(a, b, start, num_nodes, num_first)
            if found := next((number for number in free if not is_present(number)), None):
                changed[found] = True
                others.append(found)
    ascending = np.empty(0, dtype=np.int64)  # memory
    return np.concatenate([added, np.array(others, dtype=np.int64)])


def _pairs_near(a: int, b: int, start: int, num_nodes: int, num_first: int | None) -> Iterator[int]:
    """Yield the numbers of all pairs: those of node a, of b, and of all others, from a node on."""
    # No list of all nodes: this is about one pair, of a large graph as well.
    for one in chain((a, b), range(start, num_nodes), range(start)):
        for other in chain(range(start, num_nodes), range(start)):
            low, high = min(one, other), max(one, other)
            if low < high and (num_first is None or low < num_first <= high):
                yield low * num_nodes + high


def _kept(numbers: NDArray[np.int64], is_kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Move the kept numbers to the front, block by block; return these, without a copy."""
    place = 0
    for start in range(0, len(numbers), _BLOCK):
        part = numbers[start : start + _BLOCK][is_kept[start : start + _BLOCK]]
        numbers[place : place + len(part)] = part
        place += len(part)
    return numbers[:place]


def untangle(
    pairs: NDArray[np.int64],
    communities: NDArray[np.int64],
    rng: np.random.Generator,
    no_pairs: NDArray[np.int64] = NO_PAIRS,
) -> NDArray[np.int64]:
    """Exchange ends of pairs to remove loops and repeated pairs, as far as possible.

    Ends are exchanged between pairs that link the same two communities. Nodes keep the number of
    their pairs, and communities the number of pairs between them.

    Args:
        pairs: Pairs of nodes, shape ``(P, 2)``.
        communities: Community of each node, shape ``(N,)``.
        rng: Source of the draw.
        no_pairs: Pairs that are removed like loops, shape ``(K, 2)``.

    Returns:
        Pairs of shape ``(P, 2)``.
    """
    barred = np.sort(pair_keys(no_pairs, len(communities)))
    num_nodes, ends = len(communities), communities[pairs]
    turned = ends[:, 0] > ends[:, 1]
    pairs = np.where(turned[:, None], pairs[:, ::-1], pairs)
    block, keys = ends.min(axis=1) * num_nodes + ends.max(axis=1), pair_keys(pairs, num_nodes)
    # Nearly sorted keys take little time to sort again.
    order = np.lexsort((keys, block))
    pairs, block, keys = pairs[order], block[order], keys[order]
    is_barred = (pairs[:, 0] == pairs[:, 1]) | are_among(keys, barred)
    first, last = (np.searchsorted(block, block, side=side) for side in ("left", "right"))
    for _ in range(_UNTANGLING_ROUNDS):
        order = np.argsort(keys, kind="stable")
        sorted_keys = keys[order]
        is_tangled = is_barred.copy()
        is_tangled[order[1:][sorted_keys[1:] == sorted_keys[:-1]]] = True
        tangled = np.flatnonzero(is_tangled)
        if not len(tangled):
            break
        partners, chosen = np.unique(rng.integers(first[tangled], last[tangled]), return_index=True)
        free = ~is_tangled[partners]
        moved = np.stack([tangled[chosen[free]], partners[free]], axis=1)
        # From a, b and c, d come a, d and c, b.
        new = pairs[moved]
        new[:, :, 1] = new[:, ::-1, 1]
        fits = _are_new(new, sorted_keys, num_nodes)
        fits &= ~contains(barred, pair_keys(new, num_nodes)).any(axis=1)
        pairs[moved[fits]], keys[moved[fits]] = new[fits], pair_keys(new[fits], num_nodes)
        is_barred[moved[fits]] = False
    return pairs


def _are_new(
    proposals: NDArray[np.int64], sorted_keys: NDArray[np.int64], num_nodes: int
) -> NDArray[np.bool_]:
    """Return a mask of proposals ``(K, 2, 2)`` of two pairs without a loop or an existing pair."""
    keys = pair_keys(proposals, num_nodes)
    _, group, counts = np.unique(keys, return_inverse=True, return_counts=True)
    at = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    is_new = (sorted_keys[at] != keys) & (counts[group].reshape(keys.shape) == 1)
    is_new &= proposals[:, :, 0] != proposals[:, :, 1]
    return is_new.all(axis=1)
