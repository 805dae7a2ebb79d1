"""Rows of categories placed on the nodes of a graph, so that its edges have released mixing."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.mixing_targets import NoisyMixing, mixing_gap
from lightning_dpg.graph.sorted_numbers import are_among

# Tuned on Cora-ML and on synthetic block graphs.
_ROUNDS = 200
_FALL, _PATIENCE = 0.98, 20  # factor of the squared distance that as many rounds must reach
_KEPT = 0.5  # of the swaps of a round that gain; neighbors that all move at once would not gain


def place_rows(
    edges: NDArray[np.int64],
    rows: NDArray[np.int64],
    groups: NDArray[np.int64],
    mixing: Sequence[NoisyMixing],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Swap whole rows within groups of nodes until the edges have the released mixing.

    In each round the nodes of each group form random pairs, and some of those whose swap brings the
    mixing of all columns together nearer to its targets swap their rows. The swaps end where what
    lacks is much smaller than the noise of the release.

    Args:
        edges: Edges of shape ``(M, 2)``, rows ``i < j``.
        rows: Category of each node in each of J columns, shape ``(N, J)``.
        groups: Group of each node, such as the class of its degree, shape ``(N,)``.
        mixing: Released mixing of each column.
        rng: Source of the draws.

    Returns:
        Rows of shape ``(N, J)``; each group has the given ones in another order.
    """
    rows, num_nodes = rows.copy(), len(rows)
    # In ascending order, sums of a node touch neighboring memory.
    keys = np.sort(np.concatenate([edges, edges[:, ::-1]]) @ [num_nodes, 1])
    centers, neighbors = np.divmod(keys, num_nodes)
    least, idle = math.inf, 0
    for _ in range(_ROUNDS):
        gap = mixing_gap(edges, rows, mixing)
        idle += 1
        if gap.distance < _FALL * least:
            least, idle = gap.distance, 0
        if gap.is_close or idle == _PATIENCE:
            break
        order = np.argsort(groups + rng.random(num_nodes))
        one, other = order[: num_nodes // 2 * 2].reshape(-1, 2).T
        is_possible = (groups[one] == groups[other]) & (rows[one] != rows[other]).any(axis=1)
        is_possible &= ~are_among(one * num_nodes + other, keys)
        one, other = one[is_possible], other[is_possible]
        gains = np.zeros(len(one))
        for column, lacking in zip(rows.T, gap.lacking, strict=True):
            size = len(lacking)
            cells = centers * size + column[neighbors]
            around = np.bincount(cells, minlength=num_nodes * size).reshape(num_nodes, size)
            fits = around @ lacking
            first, second = column[one], column[other]
            gains += fits[one, second] - fits[one, first] + fits[other, first] - fits[other, second]
        moves = np.flatnonzero(gains > 0)
        moves = moves[rng.random(len(moves)) < _KEPT]
        one, other = one[moves], other[moves]
        rows[one], rows[other] = rows[other], rows[one]
    return rows
