"""Counts that are consistent: whole, not negative, and of given sums."""

import numpy as np
from numpy.typing import NDArray

# These halve the range of 64-bit noise to far below 1.
_HALVINGS = 100
_ROUNDING = 1e-12  # of a sum, by the sum of sizes
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def rounded(exact: NDArray[np.float64], offset: float = 0.5) -> NDArray[np.int64]:
    """Round counts of shape ``(K,)``; partial sums keep the total, and of many 2.4 two in five are 3.

    Args:
        exact: Counts of shape ``(K,)``, none of them negative.
        offset: Share from which on a partial sum is rounded up, from the other side; a uniform one
            rounds all counts without bias.
    """
    return np.diff(np.floor(np.cumsum(exact) + offset), prepend=0.0).astype(np.int64)


def fitting_counts(
    noisy: NDArray[np.float64], most: NDArray[np.int64], total: int
) -> NDArray[np.int64]:
    """Round noisy counts to counts from 0 to ``most`` of a given sum.

    Least squares subtracts the same number from all counts and cuts at both ends. Noise then does
    not add up to edges where there are none. It works for all finite numbers: noise that
    rounds in double precision costs accuracy and never fails, because a failure after a release
    would lose the budget spent on it.

    Args:
        noisy: Noisy counts of shape ``(K,)``.
        most: Largest possible counts of shape ``(K,)``.
        total: Wanted sum, from 0 to the sum of ``most``.

    Returns:
        Counts of shape ``(K,)``.
    """
    low, high = -noisy.max(), float((most - noisy).max())
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        is_less = np.clip(noisy + middle, 0, most).sum() < total
        low, high = (middle, high) if is_less else (low, middle)
    exact = np.clip(noisy + high, 0, most)
    counts = np.clip(rounded(exact), 0, most)
    # Partial sums can be off by their last digit, and full counts then be cut.
    missing = total - int(counts.sum())
    room = most - counts if missing > 0 else counts
    order = np.argsort(np.sign(missing) * (counts - exact), kind="stable")
    before = np.cumsum(room[order]) - room[order]
    counts[order] += np.sign(missing) * np.clip(abs(missing) - before, 0, room[order])
    return counts


def onto_total(values: Floats, total: float) -> Floats:
    """Return the nearest numbers of a total that are not negative: the same is taken from all.

    Args:
        values: Numbers of shape ``(B,)``.
        total: Their sum afterwards, positive.
    """
    descending = -np.sort(-values)
    surplus = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    last = np.flatnonzero(descending > surplus)[-1]
    found: Floats = np.maximum(values - surplus[last], 0)
    return found


def shares(noisy: Floats) -> Floats:
    """Return the shares of noisy counts ``(B,)``; equal ones without a sum beyond rounding."""
    total = float(noisy.sum())
    is_known = total > _ROUNDING * float(np.abs(noisy).sum())
    return onto_total(noisy, total) / total if is_known else np.full(len(noisy), 1 / len(noisy))
