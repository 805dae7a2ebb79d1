"""Random graphs with given expected degrees, drawn in pieces whose size has a bound."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.graph.stubs import numbered_pairs

PIECE = 2**21
"""Draws of a piece, which takes about 40 bytes for each of them."""
_SORTED = 2**20  # pairs of a block
_MOST_BINS = 2**16
# Deviations of the number of different pairs; a longer horizon costs one more pass in a billion.
_MARGIN = 6.0


def edge_pieces(
    weights: NDArray[np.float64], count: int, expected: float, seed: int, piece: int = PIECE
) -> Iterator[NDArray[np.int64]]:
    r"""Draw different pairs in proportion to the product of the weights of their ends.

    The law is that of draws one after the other, of which loops and repeated pairs are left out,
    until there are ``count`` pairs. If pair (i, j) is drawn at the times of a Poisson process of
    rate :math:`x_i x_j`, all draws together come in that order. The result is then the
    ``count`` pairs with the earliest first draws. Processes of different pairs are independent:
    pieces of rows i have random numbers of their own. A first pass over the pieces counts first
    draws by time and finds the time of the last pair wanted; the second one repeats the draws.

    Args:
        weights: Positive weights x, shape ``(N,)``.
        count: Number of pairs wanted, at most N (N - 1) / 2.
        expected: Expected number of different pairs until time 1; the result does not depend on it.
        seed: Seed of the draw.
        piece: Draws of a piece, unless a single row has more.

    Yields:
        Pairs of shape ``(P, 2)``, rows ``i < j`` in lexicographic order over all pieces; the last
        piece holds the few pairs about the last one in time.
    """
    if not count:
        return
    drawing = _Drawing(weights, count, expected, seed, piece)
    first_draws = drawing.first_draws_by_time()
    while first_draws.sum() < count:
        drawing.windows += 1
        first_draws = drawing.first_draws_by_time()
    last = int(np.searchsorted(np.cumsum(first_draws), count))
    parts, times = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
    for pairs, time in drawing.pieces():
        position = drawing.bins(time)
        yield pairs[position < last]
        parts.append(pairs[position == last])
        times.append(time[position == last])
    earliest = np.argsort(np.concatenate(times))[: count - int(first_draws[:last].sum())]
    yield np.concatenate(parts)[np.sort(earliest)]


class _Drawing:
    """Draws of all pairs until a horizon, which are equal whenever they are asked for."""

    def __init__(
        self, weights: NDArray[np.float64], count: int, expected: float, seed: int, piece: int
    ) -> None:
        self.seed, self.weights, self.windows = seed, weights, 1
        self.num_bins = min(count, _MOST_BINS)
        self.ends = np.cumsum(weights)
        # Row i has the pairs with all later nodes.
        self.later = np.maximum(self.ends[-1] - self.ends, 0.0)
        rates = weights * self.later
        total = float(rates.sum())
        enough = count / max(expected, 1.0) * (1 + _MARGIN / math.sqrt(count))
        self.first = min(enough, 2 * count / total)
        draws = np.cumsum(rates) * self.first
        marks = np.searchsorted(draws, np.arange(piece, draws[-1], piece))
        self.starts = np.unique(np.r_[0, marks, len(weights)])

    @property
    def horizon(self) -> float:
        """End of the last window; each window is as long as all before it."""
        return self.first * 2.0 ** (self.windows - 1)

    def bins(self, times: NDArray[np.float64]) -> NDArray[np.int64]:
        """Bins of times up to the horizon."""
        bins = (times / self.horizon * self.num_bins).astype(np.int64)
        return np.minimum(bins, self.num_bins - 1)

    def first_draws_by_time(self) -> NDArray[np.int64]:
        """Count first draws of pairs in each bin."""
        counts = np.zeros(self.num_bins, dtype=np.int64)
        for _, times in self.pieces():
            counts += np.bincount(self.bins(times), minlength=self.num_bins)
        return counts

    def pieces(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield the pairs of each piece ``(P, 2)`` and their first draws ``(P,)``."""
        for start, stop in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            windows = [self._draws(start, stop, window) for window in range(self.windows)]
            keys, times = (np.concatenate(parts) for parts in zip(*windows, strict=True))
            order = np.argsort(keys)
            keys, times = keys[order], times[order]
            begins = np.flatnonzero(np.diff(keys, prepend=-1))
            if len(begins):
                times = np.minimum.reduceat(times, begins)
            rows, columns = np.divmod(keys[begins], len(self.weights))
            yield np.stack([rows, columns], axis=1), times

    def _draws(
        self, start: int, stop: int, window: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the pairs drawn in a window, each as one number, and their times."""
        rng = np.random.default_rng((self.seed, start, window))
        begin = self.first * 2.0 ** (window - 1) if window else 0.0
        length = self.first * 2.0 ** max(window - 1, 0)
        later = self.later[start:stop]
        rows = np.repeat(
            np.arange(start, stop), rng.poisson(self.weights[start:stop] * later * length)
        )
        targets = self.ends[rows] + rng.random(len(rows)) * self.later[rows]
        # Searches for ascending numbers touch neighboring memory.
        order = np.argsort(targets)
        columns = np.empty(len(rows), dtype=np.int64)
        columns[order] = np.searchsorted(self.ends, targets[order], side="right")
        # Sums are rounded: a target may lie behind the last end.
        columns = np.clip(columns, rows + 1, len(self.weights) - 1)
        return rows * len(self.weights) + columns, begin + rng.random(len(rows)) * length


def sorted_blocks(numbers: NDArray[np.int64], num_nodes: int) -> Iterator[Tensor]:
    """Yield edges in lexicographic order and in blocks of shape ``(B, 2)``.

    Args:
        numbers: Numbers of the edges, see :func:`pair_numbers`, shape ``(M,)``; sorted in place.
        num_nodes: Number of nodes N.
    """
    numbers.sort()
    for start in range(0, len(numbers), _SORTED):
        yield torch.from_numpy(numbered_pairs(numbers[start : start + _SORTED], num_nodes))
