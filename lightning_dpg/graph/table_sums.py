"""Tables of counts whose rows and columns get given sums."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow


def meet_sums(
    counts: NDArray[np.int64],
    places: NDArray[np.int64],
    sums: tuple[NDArray[np.int64], NDArray[np.int64]],
    least: NDArray[np.int64],
    most: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Change counts so that the rows and columns of their table have given sums.

    What a row lacks flows to columns that lack it, or by way of rows and columns that pass it on: a
    maximum flow. If no counts within the bounds have the sums, as much as can be of what is lacking
    or too much is made up for.

    Args:
        counts: Counts of the entries of a table, within their bounds, shape ``(E,)``.
        places: Row and column of each entry, no two the same, shape ``(E, 2)``.
        sums: Wanted sums of the rows, ``(R,)``, and of the columns, ``(C,)``, of one total.
        least: Smallest count of each entry, shape ``(E,)``.
        most: Largest count of each entry, shape ``(E,)``.

    Returns:
        Counts of shape ``(E,)``.
    """
    ends = places + np.array([0, len(sums[0])])
    wanted = np.concatenate([sums[0], -sums[1]])
    # Row ends give to the table, and column ends take from it.
    lacking = wanted.copy()
    np.subtract.at(lacking, ends[:, 0], counts)
    np.add.at(lacking, ends[:, 1], counts)
    source, size = len(lacking), len(lacking) + 2
    need = int(np.maximum(lacking, 0).sum())
    if not need:
        return counts
    gives, takes = np.flatnonzero(lacking > 0), np.flatnonzero(lacking < 0)
    tails = [ends[:, 0], ends[:, 1], np.full(len(gives), source), takes]
    heads = [ends[:, 1], ends[:, 0], gives, np.full(len(takes), source + 1)]
    bounds = [most - counts, counts - least, lacking[gives], -lacking[takes]]
    capacity = np.minimum(np.concatenate(bounds), need).astype(np.int32)
    arcs = (np.concatenate(tails), np.concatenate(heads))
    graph = coo_array((capacity, arcs), shape=(size, size)).tocsr()
    flow = maximum_flow(graph, source, source + 1).flow
    return counts + np.asarray(flow[ends[:, 0], ends[:, 1]]).ravel().astype(np.int64)
