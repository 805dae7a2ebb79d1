"""Wedges for a private estimate of clustering, few of which change with an edge."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.sorted_numbers import are_among

_ARMS = 2**22  # arms whose wedges are found at once; a center may have more
_MOST_BLOCKS = 16  # each one looks at all edges
_DEGREE_PER_SLOT = 4
_LOWER = np.uint64(2**32 - 1)
_NONE = np.uint64(2**64 - 1)  # above any hash and node


def wedge_slots(degrees: NDArray[np.int64]) -> NDArray[np.int64]:
    """Slots of nodes with released degrees of shape ``(N,)``: one for four, and one for two or three."""
    return np.where(degrees > 1, -(-degrees // _DEGREE_PER_SLOT), 0)


def count_wedges(
    edges: NDArray[np.int64],
    slots: NDArray[np.int64],
    classes: NDArray[np.int64],
    closures_per_edge: int,
    seed: int,
) -> NDArray[np.int64]:
    """Choose wedges so that an edge is an arm of at most two; count all and closed wedges.

    Node w has two bins for each of its slots. A public hash maps the other nodes into the bins of
    w; the first neighbor in a bin represents it, and where both bins of a slot hold a neighbor,
    these are the ends of a wedge with center w. A wedge is closed if its ends are linked, but a
    link counts for its first ``closures_per_edge`` wedges only, in a public random order of the
    slots. Given the slots, each wedge is a random pair of neighbors of its center.

    Args:
        edges: Edges of shape ``(M, 2)``, rows ``i < j`` (private).
        slots: Number of slots of each node, shape ``(N,)`` (public).
        classes: Class of each node, integers from 0 below K, shape ``(N,)`` (public).
        closures_per_edge: Number of wedges for which a link counts (public).
        seed: Seed of the hash and of the order of the slots (public).

    Returns:
        Numbers of wedges and of closed wedges by the class of the center, shape ``(2, K)``
        (private).
    """
    hashing = WedgeHash(slots, seed)
    parts = [_wedges_of(arms, hashing, slots) for arms in _arms(edges, slots)]
    wedge_slots, center, links = (np.concatenate(part) for part in zip(*parts, strict=True))
    keys = np.sort(edges[:, 0] * len(slots) + edges[:, 1])
    closed = np.flatnonzero(are_among(links, keys))
    is_counted = count_closed(wedge_slots[closed], links[closed], hashing.order, closures_per_edge)
    chosen, size = closed[is_counted], int(classes.max()) + 1
    by_class = [np.bincount(classes[c], minlength=size) for c in (center, center[chosen])]
    return np.stack(by_class)


def count_label_wedges(
    edges: NDArray[np.int64], slots: NDArray[np.int64], labels: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """Count the wedges of :func:`count_wedges` whose ends have equal labels, and different ones.

    Args:
        edges: Edges of shape ``(M, 2)``, rows ``i < j`` (private).
        slots: Number of slots of each node, shape ``(N,)`` (public).
        labels: Label of each node, shape ``(N,)`` (public).
        seed: Seed of the hash (public).

    Returns:
        Numbers of wedges with equal and with different labels, shape ``(2,)`` (private).
    """
    hashing, counts = WedgeHash(slots, seed), np.zeros(2, dtype=np.int64)
    for arms in _arms(edges, slots):
        one, other = np.divmod(_wedges_of(arms, hashing, slots)[2], len(slots))
        counts += np.bincount(labels[one] != labels[other], minlength=2)
    return counts


def _arms(
    edges: NDArray[np.int64], slots: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the centers and the other ends of all arms, whole centers at once, in a few blocks."""
    num_nodes = len(slots)
    ends = np.cumsum(np.bincount(edges.ravel(), minlength=num_nodes))
    size = max(_ARMS, 2 * len(edges) // _MOST_BLOCKS)
    marks = np.searchsorted(ends, np.arange(size, 2 * len(edges), size))
    starts = np.unique(np.r_[0, marks, num_nodes])
    for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        arms = []
        for side in (0, 1):
            center = edges[:, side]
            of_block = edges[(center >= start) & (center < stop)]
            arms.append(of_block if side == 0 else of_block[:, ::-1])
        centers, others = np.concatenate(arms).T
        has_slots = slots[centers] > 0
        yield centers[has_slots], others[has_slots]


def _wedges_of(
    arms: tuple[NDArray[np.int64], NDArray[np.int64]],
    hashing: "WedgeHash",
    slots: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the slot, the center and the number of the link of each wedge, by ascending slots."""
    centers, others = arms
    bins, hashes = hashing.bins(centers, others)
    start, stop = (bins.min(), bins.max() + 1) if len(bins) else (0, 0)
    # The smallest hash of a bin, and of equal hashes the smallest node: without a sort.
    least = np.full(stop - start, _NONE)
    np.minimum.at(
        least, bins - start, hashes.astype(np.uint64) << np.uint64(32) | others.astype(np.uint64)
    )
    is_full = least != _NONE
    even = np.flatnonzero(is_full[:-1] & is_full[1:])
    even = even[(even + start) % 2 == 0]
    one, other = ((least[place] & _LOWER).astype(np.int64) for place in (even, even + 1))
    wedge_slots = (even + start) // 2
    links = np.minimum(one, other) * len(slots) + np.maximum(one, other)
    return wedge_slots, hashing.centers(wedge_slots), links


class WedgeHash:
    """Public hash of the neighbors of each node into the bins of its slots.

    Args:
        slots: Number of slots of each node, shape ``(N,)`` (public).
        seed: Seed of the hash and of the order of the slots (public).

    Attributes:
        order: Public random order of the slots, shape ``(S,)``.
    """

    def __init__(self, slots: NDArray[np.int64], seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._slots, self._first = slots, 2 * (np.cumsum(slots) - slots)
        factors, self._numbers = rng.integers(2**64, size=(2, len(slots)), dtype=np.uint64)
        self._factors = factors | np.uint64(1)
        self.order = rng.permutation(int(slots.sum()))

    def bins(
        self, centers: NDArray[np.int64], others: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the bins and the hashes of neighbors ``others`` of ``centers``."""
        # Multiply-shift hashing: the upper half of a product is nearly uniform, and wraps round.
        products = self._factors[centers] * self._numbers[others]
        hashes = (products >> np.uint64(32)).astype(np.int64)
        # Bins are intervals of the hash, numbered over all nodes.
        return self._first[centers] + (hashes * 2 * self._slots[centers] >> 32), hashes

    def centers(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the node of each slot."""
        # Nodes without slots share the first bin of the next node that has one.
        return np.searchsorted(self._first, 2 * slots, side="right") - 1

    def columns(self) -> dict[str, NDArray[np.int64]]:
        """Return a column per public number of the nodes; halves of 32 bits of the large ones."""
        parts = {
            f"{name}_{half}": ((values >> np.uint64(shift)) & np.uint64(2**32 - 1)).astype(np.int64)
            for name, values in (("factor", self._factors), ("number", self._numbers))
            for half, shift in (("high", 32), ("low", 0))
        }
        nodes = np.arange(len(self._slots))
        return {"node": nodes, "slots": self._slots, "first_bin": self._first, **parts}


def count_closed(
    slots: NDArray[np.int64],
    links: NDArray[np.int64],
    order: NDArray[np.int64],
    closures_per_edge: int,
) -> NDArray[np.int64]:
    """Return the places of closed wedges that are among the first ones of their link.

    Args:
        slots: Slot of each closed wedge, shape ``(C,)``.
        links: Number of the link that closes it, shape ``(C,)``.
        order: Public random order of the slots.
        closures_per_edge: Number of wedges for which a link counts.
    """
    closed = np.lexsort([order[slots], links])
    starts = np.flatnonzero(np.diff(links[closed], prepend=-1))
    places = np.arange(len(closed)) - np.repeat(starts, np.diff(starts, append=len(closed)))
    return closed[places < closures_per_edge]
