"""Wedges for a private estimate of clustering: one edge changes few of them."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.pair_numbers import are_among, contains

EdgeBlocks: TypeAlias = Callable[[], Iterable[NDArray[np.int64]]]
"""Edges of shape ``(P, 2)``, rows ``i < j``, in blocks and in any order that each call yields anew."""

BLOCK = 2**18
"""Edges of a block, whose arms a processor's cache holds."""
_PART = 2**20  # wedges that are looked at at once
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
    return wedges_over_blocks(_in_blocks(edges), slots, classes, closures_per_edge, seed)


def wedges_over_blocks(
    blocks: EdgeBlocks,
    slots: NDArray[np.int64],
    classes: NDArray[np.int64],
    closures_per_edge: int,
    seed: int,
) -> NDArray[np.int64]:
    """As :func:`count_wedges`, of edges that come in blocks, once for the wedges and once for links.

    Memory is linear in the slots and in the largest block.
    """
    hashing = WedgeHash(slots, seed)
    wedge_slots, links = _chosen(blocks, hashing, slots)
    ascending = np.sort(links)
    closing = [np.empty(0, dtype=np.int64)]
    for edges in blocks():
        keys = np.sort(edges[:, 0] * len(slots) + edges[:, 1])
        closing.append(keys[contains(ascending, keys)])
    del ascending  # memory
    closed = np.flatnonzero(are_among(links, np.sort(np.concatenate(closing))))
    is_counted = count_closed(wedge_slots[closed], links[closed], hashing.order, closures_per_edge)
    counted = wedge_slots[closed[is_counted]]
    class_of, size = np.repeat(classes.astype(np.int32), slots), int(classes.max()) + 1
    chosen = class_of[wedge_slots], class_of[counted]
    return np.stack([np.bincount(each, minlength=size) for each in chosen])


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
    _, links = _chosen(_in_blocks(edges), WedgeHash(slots, seed), slots)
    one, other = np.divmod(links, len(slots))
    return np.bincount(labels[one] != labels[other], minlength=2)


def _in_blocks(edges: NDArray[np.int64]) -> EdgeBlocks:
    return lambda: (edges[start : start + BLOCK] for start in range(0, len(edges), BLOCK))


def _chosen(
    blocks: EdgeBlocks, hashing: "WedgeHash", slots: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the slot and the number of the link of each wedge, by ascending slots."""
    # The smallest hash of a bin, and of equal hashes the smallest node: without a sort.
    least = np.full(2 * int(slots.sum()) + 1, _NONE)
    for edges in blocks():
        for bins, codes in hashing.arms(edges):
            np.minimum.at(least, bins, codes)
    even, odd = least[:-1:2], least[1::2]
    wedge_slots = np.flatnonzero((even != _NONE) & (odd != _NONE))
    links = np.empty(len(wedge_slots), dtype=np.int64)
    for start in range(0, len(links), _PART):
        part = slice(start, start + _PART)
        one, other = ((code[wedge_slots[part]] & _LOWER).astype(np.int64) for code in (even, odd))
        links[part] = np.minimum(one, other) * len(slots) + np.maximum(one, other)
    return wedge_slots, links


class WedgeHash:
    """Public hash of the neighbors of each node into the bins of its slots.

    Args:
        slots: Number of slots of each node, shape ``(N,)`` (public).
        seed: Seed of the hash and of the order of the slots (public).
    """

    def __init__(self, slots: NDArray[np.int64], seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._slots = slots
        factors, numbers = self._rng.integers(2**64, size=(2, len(slots)), dtype=np.uint64)
        # What is read of a node is in one place of the memory.
        twice = 2 * slots.astype(np.uint64)
        first_bins = np.cumsum(twice) - twice
        self._of_nodes = np.stack([factors | np.uint64(1), numbers, first_bins, twice], axis=1)

    @cached_property
    def order(self) -> NDArray[Any]:
        """Public random numbers of the slots, shape ``(S,)``, drawn when they are needed: memory."""
        return self._rng.integers(2**32, size=int(self._slots.sum()), dtype=np.uint32)

    def arms(
        self, edges: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """Yield the bin and the code of each edge ``(P, 2)``, of its first node and then of its second.

        Codes are ordered by the hash of the neighbor, and equal hashes by the neighbor. They are
        above all others at a node without slots.
        """
        nodes = edges.astype(np.uint64)
        one, other = (self._of_nodes.take(part, axis=0) for part in edges.T)
        for center, neighbor, numbers in ((one, other, nodes[:, 1]), (other, one, nodes[:, 0])):
            factors, _, first_bins, twice = center.T
            # Multiply-shift hashing: the upper half of a product is nearly uniform, and wraps round.
            hashes = factors * neighbor[:, 1] >> np.uint64(32)
            # Bins are intervals of the hash, numbered over all nodes.
            bins = first_bins + (hashes * twice >> np.uint64(32))
            codes = hashes << np.uint64(32) | numbers
            # The bin of a node without slots is the first one of a later node, or beyond the last.
            codes[twice == 0] = _NONE
            yield bins.view(np.int64), codes

    def columns(self) -> dict[str, NDArray[np.int64]]:
        """Return a column per public number of the nodes; halves of 32 bits of the large ones."""
        parts = {
            f"{name}_{half}": ((values >> np.uint64(shift)) & np.uint64(2**32 - 1)).astype(np.int64)
            for name, values in zip(("factor", "number"), self._of_nodes.T, strict=False)
            for half, shift in (("high", 32), ("low", 0))
        }
        nodes, first_bins = np.arange(len(self._slots)), self._of_nodes[:, 2].astype(np.int64)
        return {"node": nodes, "slots": self._slots, "first_bin": first_bins, **parts}


def count_closed(
    slots: NDArray[np.int64], links: NDArray[np.int64], order: NDArray[Any], closures_per_edge: int
) -> NDArray[np.int64]:
    """Return the places of closed wedges that are among the first ones of their link.

    Args:
        slots: Slot of each closed wedge, shape ``(C,)``.
        links: Number of the link that closes it, shape ``(C,)``.
        order: Public random numbers, by which slots are ordered, and equal ones by slot.
        closures_per_edge: Number of wedges for which a link counts.
    """
    closed = np.lexsort([slots, order[slots], links])
    starts = np.flatnonzero(np.diff(links[closed], prepend=-1))
    places = np.arange(len(closed)) - np.repeat(starts, np.diff(starts, append=len(closed)))
    return closed[places < closures_per_edge]
