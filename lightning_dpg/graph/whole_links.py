"""Whole numbers of links between cells of nodes, with given ends and given links between groups."""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.counts import rounded
from lightning_dpg.graph.linked_classes import fit_block
from lightning_dpg.graph.table_sums import meet_sums


def whole_links(
    found: NDArray[np.float64],
    groups: NDArray[np.int64],
    ends: NDArray[np.int64],
    totals: NDArray[np.int64],
    most: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return whole links between cells, near to found ones, with given links between groups.

    First the ends of each cell are given to groups, then those of two groups to their cells. Both are
    tables with known sums of rows and columns, which integers next to any numbers of these sums can
    have. Where cells have no room for that, they take links of others of their group, which then have
    ends for the missing links. Links are missing only where that fails, too.

    Args:
        found: Ends of links by cell and cell, symmetric, shape ``(L, L)``.
        groups: Group of each cell, ascending integers from 0 below G, shape ``(L,)``.
        ends: Ends of links by group and group, symmetric, even within a group, shape ``(G, G)``.
        totals: Ends of links of each cell, shape ``(L,)``; those of a group sum to its ends.
        most: Result of :func:`most_links` for the cells, shape ``(L, L)``.

    Returns:
        Links as :func:`count_links` gives them, shape ``(L, L)``.
    """
    in_group = np.eye(len(ends), dtype=np.int64)[groups]
    start = _rounded(found, groups)
    reached = _reached(start @ in_group, found @ in_group, groups, (totals, ends), most @ in_group)
    links = np.minimum(_shared(start, found, groups, reached, most), most)
    lacking = np.tril(ends - in_group.T @ links @ in_group)
    for a, b in zip(*np.nonzero(lacking > 0), strict=True):
        for _ in range(lacking[a, b] // (1 + int(a == b))):
            if not _add_link(links, groups, (a, b), totals, most):
                break
    return np.tril(links) - np.diag(np.diag(links) // 2)


def _rounded(found: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Round links between different cells; partial sums keep those of two groups: ``(L, L)``."""
    row, column = np.tril_indices(len(found), -1)
    order = np.lexsort((groups[column], groups[row]))
    row, column = row[order], column[order]
    links = np.zeros(found.shape, dtype=np.int64)
    links[row, column] = rounded(found[row, column])
    return links + links.T


def _reached(
    start: NDArray[np.int64],
    near: NDArray[np.float64],
    groups: NDArray[np.int64],
    sums: tuple[NDArray[np.int64], NDArray[np.int64]],
    most: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Give the ends of each cell to groups: those of the cells and of the groups, shape ``(L, G)``."""
    size, count = start.shape
    is_own = np.arange(count) == groups[:, None]
    reached = np.where(is_own, 0, start)
    reached[is_own] = sums[0] - reached.sum(axis=1)
    cell, group = np.divmod(np.arange(size * count), count)
    places = np.stack([cell, groups[cell] * count + group], axis=1)
    table = (sums[0], sums[1].ravel())
    return _with_sums(reached.ravel(), near.ravel(), places, table, most.ravel()).reshape(
        size, count
    )


def _shared(
    start: NDArray[np.int64],
    found: NDArray[np.float64],
    groups: NDArray[np.int64],
    reached: NDArray[np.int64],
    most: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Give the ends that reach each group to its cells: ends by cell and cell, shape ``(L, L)``."""
    size, count = reached.shape
    row, column = np.nonzero(groups[:, None] > groups)
    places = np.stack([row * count + groups[column], column * count + groups[row]], axis=1)
    is_row, is_column = (
        compare(np.arange(count), groups[:, None]) for compare in (np.less, np.greater)
    )
    table = ((reached * is_row).ravel(), (reached * is_column).ravel())
    links = np.zeros((size, size), dtype=np.int64)
    links[row, column] = _with_sums(
        start[row, column], found[row, column], places, table, most[row, column]
    )
    links += links.T
    for group, ends in enumerate(reached.T):
        is_cell = groups == group
        block = np.ix_(is_cell, is_cell)
        within = fit_block(start[block], ends[is_cell], most[block])
        links[block] = within + within.T
    return links


def _with_sums(
    counts: NDArray[np.int64],
    near: NDArray[np.float64],
    places: NDArray[np.int64],
    sums: tuple[NDArray[np.int64], NDArray[np.int64]],
    most: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Change counts to given sums, see :func:`meet_sums`: to integers next to others if possible.

    Where that is impossible, some sums are smaller.
    """
    least = np.minimum(np.floor(near).astype(np.int64), most)
    greatest = np.minimum(np.ceil(near).astype(np.int64), most)
    counts = meet_sums(np.clip(counts, least, greatest), places, sums, least, greatest)
    counts = meet_sums(counts, places, sums, np.zeros_like(most), most)
    for side, totals in zip(places.T, sums, strict=True):
        beyond = np.bincount(side, counts, len(totals)).astype(np.int64) - totals
        for line in np.flatnonzero(beyond > 0):
            entries = np.flatnonzero(side == line)
            left = np.maximum(np.cumsum(counts[entries]) - beyond[line], 0)
            counts[entries] = np.minimum(counts[entries], left)
    return counts


def _add_link(
    links: NDArray[np.int64],
    groups: NDArray[np.int64],
    pair: tuple[int, int],
    totals: NDArray[np.int64],
    most: NDArray[np.int64],
) -> bool:
    """Add a link between two groups, in place, and return whether there was a place.

    The cells c and d lack ends. The link is that of cells y and z of their groups, which may be c and
    d. Otherwise c takes a link of y, or d one of z.
    """
    lacking = totals - links.sum(axis=1)
    members = [np.flatnonzero(groups == group).tolist() for group in pair]
    lacks = [[cell for cell in cells if lacking[cell] > 0] for cells in members]
    for c, d in product(*lacks):
        if c == d and lacking[c] < 2:
            continue
        for y, z in product(*members):
            if most[y, z] - links[y, z] <= int(y == z):
                continue
            before = links.copy()
            if _give(links, y, c, most) and _give(links, z, d, most):
                links[y, z] += 1
                links[z, y] += 1
                if links[y, z] <= most[y, z]:
                    return True
            links[:] = before
    return False


def _give(links: NDArray[np.int64], giver: int, taker: int, most: NDArray[np.int64]) -> bool:
    """Let one cell give a link to another, in place, and return whether it had one to give."""
    if giver == taker:
        return True
    given = np.minimum(links[giver], most[taker] - links[taker])
    given[[giver, taker]] = 0
    other = int(given.argmax())
    if given[other] <= 0:
        return False
    for cell, change in ((giver, -1), (taker, 1)):
        links[cell, other] += change
        links[other, cell] += change
    return True
