r"""Smoothing of noisy curves, such as those of days and hours, as far as the noise asks for it.

Each curve has several linear smoothers S, and the one with the smallest estimated error is taken. For
noise of variance :math:`\sigma^2` in n numbers x, :math:`|x - S x|^2 + 2 \sigma^2 \mathrm{tr}(S) - n
\sigma^2` is an unbiased estimate of the squared error of S x (Stein, "Estimation of the mean of a
multivariate normal distribution", 1981; of a linear smoother it needs no more than the variance).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def smoothed_days(noisy: Floats, scale: float, first_weekday: int) -> Floats:
    """Smooth a curve of days by moving means, with or without an effect of the day of the week.

    Args:
        noisy: Noisy counts by day, shape ``(D,)``.
        scale: Scale of the Laplace noise.
        first_weekday: Day of the week of the first day.

    Returns:
        Counts of shape ``(D,)``, equal to the noisy ones if they have no noise.
    """
    weekdays = (np.arange(len(noisy)) + first_weekday) % 7
    return _best(noisy, scale, _of_days(noisy, weekdays))


def smoothed_hours(noisy: Floats, scale: float) -> Floats:
    """Smooth a curve of hours of the week by the hours of an average day.

    Args:
        noisy: Noisy counts by hour from Monday on, shape ``(168,)``.
        scale: Scale of the Laplace noise.

    Returns:
        Counts of shape ``(168,)``, equal to the noisy ones if they have no noise.
    """
    return _best(noisy, scale, _of_hours(noisy))


def smoothed_change(noisy: Floats, scale: float) -> Floats:
    """Smooth a noisy difference of two curves by moving means, or by zeros where it may be noise only.

    Args:
        noisy: Noisy differences, shape ``(B,)``.
        scale: Scale of the Laplace noise.

    Returns:
        Differences of shape ``(B,)``, equal to the noisy ones if they have no noise.
    """
    return _best(noisy, scale, _of_changes(noisy))


def _best(noisy: Floats, scale: float, smoothers: Iterator[tuple[Floats, float]]) -> Floats:
    """Return the smooth numbers of the smallest estimated error; each smoother comes with its trace."""
    best, least = noisy, 2 * scale**2 * len(noisy)
    for smooth, trace in smoothers:
        error = ((noisy - smooth) ** 2).sum() + 2 * scale**2 * (2 * trace - len(noisy))
        if error < least:
            best, least = smooth, error
    return best


def _of_days(noisy: Floats, weekdays: NDArray[np.int64]) -> Iterator[tuple[Floats, float]]:
    width = 3
    while width < 2 * len(noisy):
        trend, trace = _moving_mean(noisy, width)
        yield trend, trace
        if width >= 7 and len(noisy) >= 14:
            sizes = np.bincount(weekdays, minlength=7)
            effects = np.bincount(weekdays, noisy - trend, minlength=7) / sizes
            yield trend + effects[weekdays], trace + 7
        width = 2 * width + 1


def _moving_mean(values: Floats, width: int) -> tuple[Floats, float]:
    """Return the means of the windows of an odd width around each value, and their trace."""
    sums, places = np.append(0.0, np.cumsum(values)), np.arange(len(values))
    first = np.maximum(places - width // 2, 0)
    last = np.minimum(places + width // 2 + 1, len(values))
    return (sums[last] - sums[first]) / (last - first), float((1 / (last - first)).sum())


def _of_changes(noisy: Floats) -> Iterator[tuple[Floats, float]]:
    yield np.zeros(len(noisy)), 0.0
    for width in (3, 5, 9, 17):
        yield _moving_mean(noisy, width)


def _of_hours(noisy: Floats) -> Iterator[tuple[Floats, float]]:
    table = noisy.reshape(7, 24)
    hours, days, mean = table.mean(0), table.mean(1), table.mean()
    yield (hours[None, :] + days[:, None] - mean).ravel(), 30.0
    yield np.tile(hours, 7), 24.0
    for width in (3, 5, 7):
        around = np.mean([np.roll(hours, step - width // 2) for step in range(width)], axis=0)
        yield (around[None, :] + days[:, None] - mean).ravel(), 24 / width + 6
        yield np.tile(around, 7), 24 / width
    yield np.repeat(days, 24), 7.0
    yield np.full(168, mean), 1.0
