"""Wedges for a private estimate of clustering, few of which change with an edge."""

import numpy as np
from numpy.typing import NDArray


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
    num_nodes, num_classes = len(slots), int(classes.max()) + 1
    hashing = WedgeHash(slots, seed)
    centers, others = np.concatenate([edges, edges[:, ::-1]]).T
    bins, hashes = hashing.bins(centers, others)
    # Bins ascend with the centers and hashes.
    rank = ordered(centers.astype(np.uint64) << np.uint64(32) | hashes.astype(np.uint64), others)
    rank = rank[slots[centers[rank]] > 0]
    first = rank[np.flatnonzero(np.diff(bins[rank], prepend=-1))]
    pairs = np.flatnonzero((bins[first][:-1] % 2 == 0) & (np.diff(bins[first]) == 1))
    wedge_slots = bins[first[pairs]] // 2
    center = centers[first[pairs]]
    ends = np.sort(np.stack([others[first[pairs]], others[first[pairs + 1]]], axis=1), axis=1)

    links = ends[:, 0] * num_nodes + ends[:, 1]
    closed = np.flatnonzero(np.isin(links, edges[:, 0] * num_nodes + edges[:, 1]))
    is_counted = count_closed(wedge_slots[closed], links[closed], hashing.order, closures_per_edge)
    counted = closed[is_counted]
    by_class = [np.bincount(classes[c], minlength=num_classes) for c in (center, center[counted])]
    return np.stack(by_class)


def ordered(keys: NDArray[np.uint64], then: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order by keys, most of which occur once, and then by other numbers.

    It is that of ``np.lexsort``, which takes several times as long.

    Args:
        keys: First numbers, shape ``(P,)``.
        then: Numbers that order equal keys, shape ``(P,)``.
    """
    order = np.argsort(keys)
    repeated = np.diff(keys[order]) == 0
    tied = np.flatnonzero(np.append(repeated, False) | np.insert(repeated, 0, False))
    places = order[tied]
    order[tied] = places[np.lexsort([then[places], keys[places]])]
    return order


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
