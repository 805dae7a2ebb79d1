"""Random edges that give nodes the degrees they still lack, by linking half-edges (stubs)."""

import random
from collections.abc import Sequence
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

_BLOCK = 2**20  # edges that are counted at once
_INDEPENDENT = 1e-3  # enough that no class is cut off, too little to show
_SCALINGS = 50
_TRIES = 100
MANY_STUBS = 500_000
"""From here on stubs are paired cell by cell, in a fraction of the time and memory."""
_UNTANGLING_ROUNDS = 50


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


def pair_stubs(
    stubs: NDArray[np.int64],
    classes: NDArray[np.int64],
    links: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Pair stubs at random, with links between classes as near to wanted ones as can be.

    Args:
        stubs: Node of each stub, shape ``(S,)``.
        classes: Class of each stub, shape ``(S,)``.
        links: Wanted links between classes, as :func:`count_links` gives them, shape ``(K, K)``.
        rng: Source of the draw.

    Returns:
        Pairs of nodes, shape ``(S // 2, 2)``; a last odd stub is left over.
    """
    if len(stubs) >= MANY_STUBS:
        return pair_in_cells(stubs, classes, links, rng)
    order = rng.permutation(len(stubs))
    stubs, classes = stubs[order], classes[order]
    totals = np.bincount(classes, minlength=len(links))
    shares = np.cumsum(stub_mixing(links, totals), axis=1)
    shares += np.r_[0.0, np.cumsum(shares[:-1, -1])][:, None]
    starts, stops = np.r_[0.0, shares[:-1, -1]], shares[:, -1]
    # One search for all; results beyond the last class or before the first are rounding errors.
    uniform = starts[classes] + rng.random(len(stubs)) * (stops - starts)[classes]
    places = np.searchsorted(shares.ravel(), uniform, side="right") - classes * len(links)
    partners = np.clip(places, 0, len(links) - 1)
    # Stubs of class a that want b, and stubs of b that want a, are the two sides of one cell.
    upper, side = np.maximum(classes, partners), classes < partners
    cell = upper * len(links) + np.minimum(classes, partners)
    order = np.lexsort((side, cell))
    stubs, cell, side = stubs[order], cell[order], side[order]
    rank = _ranks(cell * 2 + side)
    # Where both sides are one class, every other stub is on the second side.
    same = cell // len(links) == cell % len(links)
    side, rank = np.where(same, rank % 2 == 1, side), np.where(same, rank // 2, rank)
    order = np.lexsort((side, rank, cell))
    stubs, key = stubs[order], (cell * len(cell) + rank)[order]
    opens = np.flatnonzero(key[1:] == key[:-1])
    pairs = np.stack([stubs[opens], stubs[opens + 1]], axis=1)
    single = np.ones(len(stubs), dtype=bool)
    single[opens] = single[opens + 1] = False
    rest = rng.permutation(np.flatnonzero(single))
    return np.concatenate([pairs, stubs[rest[: len(rest) // 2 * 2]].reshape(-1, 2)])


def pair_in_cells(
    stubs: NDArray[np.int64],
    classes: NDArray[np.int64],
    links: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Pair stubs by the law of :func:`pair_stubs`, one pair of classes after the other.

    How many stubs of a class want each class has a multinomial law, and which of them do is a random
    partition: stubs of a class in random order are cut into the parts that want each class.

    Args:
        stubs: Node of each stub, shape ``(S,)``.
        classes: Class of each stub, shape ``(S,)``.
        links: Wanted links between classes, as :func:`count_links` gives them, shape ``(K, K)``.
        rng: Source of the draw.

    Returns:
        Pairs of nodes, shape ``(S // 2, 2)``; a last odd stub is left over.
    """
    totals = np.bincount(classes, minlength=len(links))
    # Sorting by small integers takes linear time.
    ordered = stubs[np.argsort(classes.astype(np.int16), kind="stable")]
    return _paired(np.split(ordered, np.cumsum(totals)[:-1]), links, rng)


def pair_lacking(
    lacking: NDArray[np.int64],
    classes: NDArray[np.int64],
    links: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Pair the stubs of nodes, see :func:`pair_stubs`; many stubs take less memory this way.

    Args:
        lacking: Number of stubs of each node, shape ``(N,)``.
        classes: Class of each node, shape ``(N,)``.
        links: Wanted links between classes, as :func:`count_links` gives them, shape ``(K, K)``.
        rng: Source of the draw.

    Returns:
        Pairs of nodes, shape ``(S // 2, 2)``; a last odd stub is left over.
    """
    if lacking.sum() < MANY_STUBS:
        stubs = np.repeat(np.arange(len(lacking)), lacking)
        return pair_stubs(stubs, classes[stubs], links, rng)
    kind = np.int32 if len(lacking) < 2**31 else np.int64
    of_classes = [np.flatnonzero(classes == k) for k in range(len(links))]
    members = [np.repeat(nodes.astype(kind), lacking[nodes]) for nodes in of_classes]
    return _paired(members, links, rng)


def _paired(
    members: Sequence[NDArray[Any]], links: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Pair the stubs of each class, which are shuffled in place: shape ``(S // 2, 2)``."""
    totals = np.array([len(stubs) for stubs in members])
    parts = []
    for stubs, row in zip(members, stub_mixing(links, totals), strict=True):
        rng.shuffle(stubs)
        counts = rng.multinomial(len(stubs), row / row.sum()) if len(stubs) else 0 * totals
        parts.append(np.split(stubs, np.cumsum(counts)[:-1]))
    kind = members[0].dtype if len(members) else np.int64
    pairs, place, unpaired = np.empty((totals.sum() // 2, 2), dtype=kind), 0, []
    for a in range(len(links)):
        for b in range(a + 1):
            one, other = parts[a][b], parts[b][a]
            if a == b:
                one, other = one[::2], one[1::2]
            count = min(len(one), len(other))
            pairs[place : place + count, 0] = one[:count]
            pairs[place : place + count, 1] = other[:count]
            place += count
            unpaired += [one[count:], other[count:]]
    rest = rng.permutation(np.concatenate(unpaired))
    pairs[place:] = rest[: len(rest) // 2 * 2].reshape(-1, 2)
    return pairs


def even_stubs(
    lacking: NDArray[np.int64],
    classes: NDArray[np.int64],
    links: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Drop a random stub of an odd number, and scale links between classes to the stubs.

    Args:
        lacking: Number of stubs of each node, shape ``(N,)``.
        classes: Class of each node, integers from 0 below K, shape ``(N,)``.
        links: Wanted links between classes, as :func:`count_links` gives them, shape ``(K, K)``.
        rng: Source of the choice.

    Returns:
        Number of stubs of each node, of an even sum, and links between different classes, rounded and
        arranged as the wanted ones. Those within classes are left out: they follow.
    """
    if lacking.sum() % 2:
        lacking = lacking.copy()
        lacking[rng.choice(np.flatnonzero(lacking))] -= 1
    totals = np.bincount(classes, lacking, len(links)).astype(np.int64)
    between = np.tril(stub_mixing(links, totals), -1)
    return lacking, rounded(between.ravel()).reshape(links.shape)


def fill_links(
    stubs: NDArray[np.int64],
    classes: NDArray[np.int64],
    links: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Link random stubs to reach the wanted links between classes while there are stubs.

    Args:
        stubs: Node of each stub, shape ``(S,)``.
        classes: Class of each stub, shape ``(S,)``.
        links: Wanted links between classes, as :func:`count_links` gives them, shape ``(K, K)``.
        rng: Source of the draw.

    Returns:
        Pairs of nodes, shape ``(P, 2)``, and which stubs are in one, shape ``(S,)``.
    """
    upper, lower = np.nonzero(links)
    counts = links[upper, lower]
    # Both ends of each link, in random order, take the stubs of their class one after the other.
    ends = np.repeat(np.stack([upper, lower]), counts, axis=1).ravel()
    turn, order = (_by_class(values, rng.permutation(len(values))) for values in (ends, classes))
    place, rank = np.full(len(ends), -1), _ranks(ends[turn])
    starts = np.searchsorted(classes[order], np.arange(len(links) + 1))
    served = rank < np.diff(starts)[ends[turn]]
    place[turn[served]] = order[(starts[ends[turn]] + rank)[served]]
    placed = place.reshape(2, -1).T
    placed = placed[(placed >= 0).all(axis=1)]
    is_used = np.zeros(len(stubs), dtype=bool)
    is_used[placed] = True
    return stubs[placed], is_used


def _by_class(classes: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort an order by classes, stably."""
    return order[np.argsort(classes[order], kind="stable")]


def _ranks(ascending: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of equal values before each value."""
    return np.arange(len(ascending)) - np.searchsorted(ascending, ascending)


def stub_mixing(
    links: NDArray[Any], totals: NDArray[Any], *, two_sided: bool = False
) -> NDArray[np.float64]:
    """Return how many stubs of class a link to class b if totals take precedence over links.

    Args:
        links: Wanted links between classes, as :func:`count_links` gives them, shape ``(K, K)``.
        totals: Number of stubs of each class, shape ``(K,)``.
        two_sided: Whether classes of one half are linked to those of the other half only.

    Returns:
        Symmetric matrix of shape ``(K, K)`` with the row sums ``totals``: ``links`` with scaled
        rows and columns, after a small share of independent mixing that leaves no class cut off.
    """
    total = max(totals.sum(), 1)
    independent = _INDEPENDENT * np.outer(totals, totals) / total
    if two_sided:
        half = len(totals) // 2
        independent[:half, :half] = independent[half:, half:] = 0
    mixing = links + links.T + independent
    scale = np.ones(len(totals))
    for _ in range(_SCALINGS):
        sums = scale * (mixing @ scale)
        # Both ends are corrected, each by half.
        scale *= np.sqrt(np.divide(totals, sums, out=np.zeros(len(totals)), where=sums > 0))
    return mixing * np.outer(scale, scale)


def link_pairs(
    pairs: NDArray[np.int64],
    edges: NDArray[np.int64],
    num_nodes: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Link pairs of stubs, without loops and without edges that exist, see :func:`link_numbers`.

    Args:
        pairs: Pairs of nodes, shape ``(P, 2)``.
        edges: Edges that exist, shape ``(M, 2)``, rows ``i < j``; they stay.
        num_nodes: Number of nodes N.
        rng: Source of the draw.

    Returns:
        The added edges, rows ``i < j`` of shape ``(K, 2)``, in no order.
    """
    fixed = pair_keys(edges, num_nodes)
    return pairs_of_keys(
        link_numbers(pair_keys(pairs, num_nodes), fixed, num_nodes, rng), num_nodes
    )


def link_numbers(
    numbers: NDArray[np.int64],
    fixed: NDArray[np.int64],
    num_nodes: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Link pairs of stubs as numbers, see :func:`pair_keys`, which take half the memory.

    A pair that cannot be linked is inserted into a random added edge: from a, b and (c, d) come
    (a, c) and (b, d). All nodes keep the number of their stubs.

    Args:
        numbers: Numbers of the pairs, shape ``(P,)``; overwritten.
        fixed: Numbers of the edges that exist, shape ``(M,)``; they stay.
        num_nodes: Number of nodes N.
        rng: Source of the draw.

    Returns:
        Numbers of the added edges, shape ``(K,)``, in no order. There are fewer than P only where no
        place was found for a pair.
    """
    ascending = np.concatenate([numbers, fixed])
    ascending.sort()
    fits = are_first(numbers, fixed, ascending)
    for start in range(0, len(numbers), _BLOCK):  # a loop is a multiple of N + 1
        fits[start : start + _BLOCK] &= numbers[start : start + _BLOCK] % (num_nodes + 1) != 0
    lacking = pairs_of_keys(numbers[~fits], num_nodes)
    added = _kept(numbers, fits)
    others: list[int] = []
    # Loops among them do no harm: none is looked up.
    present = PresentNumbers(ascending)
    # NumPy's generator takes microseconds for a single number.
    draw = random.Random(int(rng.integers(2**62)))
    for a, b in lacking.tolist():
        for _ in range(_TRIES if len(added) else 0):
            place = draw.randrange(len(added) + len(others))
            is_first = place < len(added)
            old = int(added[place]) if is_first else others[place - len(added)]
            c, d = draw.sample(divmod(old, num_nodes), 2)
            new = [min(p, q) * num_nodes + max(p, q) for p, q in ((a, c), (b, d)) if p != q]
            if len({*new}) == 2 and not any(number in present for number in new):
                present.remove(old)
                for number in new:
                    present.add(number)
                if is_first:
                    added[place] = new[0]
                else:
                    others[place - len(added)] = new[0]
                others.append(new[1])
                break
    del present, ascending  # memory
    return np.concatenate([added, np.array(others, dtype=np.int64)])


def _kept(numbers: NDArray[np.int64], is_kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Move the kept numbers to the front, block by block; return these, without a copy."""
    place = 0
    for start in range(0, len(numbers), _BLOCK):
        part = numbers[start : start + _BLOCK][is_kept[start : start + _BLOCK]]
        numbers[place : place + len(part)] = part
        place += len(part)
    return numbers[:place]


class PresentNumbers:
    """A set of many numbers with few changes: an array takes a tenth of a set's memory.

    Args:
        ascending: The numbers in ascending order; repeated ones do no harm.
    """

    def __init__(self, ascending: NDArray[np.int64]) -> None:
        self._first = ascending
        self._removed: set[int] = set()
        self._added: set[int] = set()

    def __contains__(self, number: int) -> bool:
        """Return whether a number is in the set."""
        if number in self._added:
            return True
        place = int(self._first.searchsorted(number))
        is_first = place < len(self._first) and int(self._first[place]) == number
        return is_first and number not in self._removed

    def add(self, number: int) -> None:
        """Add a number that is not in the set."""
        self._added.add(number)

    def remove(self, number: int) -> None:
        """Remove a number of the set."""
        if number in self._added:
            self._added.remove(number)
        else:
            self._removed.add(number)


def untangle(
    pairs: NDArray[np.int64],
    communities: NDArray[np.int64],
    rng: np.random.Generator,
    no_pairs: NDArray[np.int64] | None = None,
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
    none = np.empty((0, 2), dtype=np.int64)
    barred = np.sort(pair_keys(none if no_pairs is None else no_pairs, len(communities)))
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
