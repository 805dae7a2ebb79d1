"""Rows of categories: their counts by pairs of columns, the joint distribution that fits noisy ones, and draws."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.errors import Refusal

MOST_CELLS = 1_000_000
"""Most cells of a joint distribution, which is held as a whole."""
_STEPS = 2000
_TOLERANCE = 1e-4  # relative decrease of the misfit over a stretch of steps, at which a fit ends
_STRETCH = 50
_LEAST_RATE = 1e-6
_SMALLEST = 1e-300
# Standard deviations of its noise that the number of nodes of a category has to exceed. A category
# without a node does in one of fifteen releases, and would get hubs by noise otherwise.
_STANDS_OUT = 1.5
_SCALINGS = 50  # of rows that are spread over classes


def pairs_of_axes(num_axes: int) -> list[tuple[int, int]]:
    """Return all pairs of axes, in the order of the tables of :func:`count_pairs`."""
    return list(combinations(range(num_axes), 2))


def times_counted(num_axes: int) -> list[int]:
    """Return how often each table of :func:`count_pairs` counts a node.

    The tables with the first axis, the class of the degree, tie the private columns to the graph. They
    count a node as often as gives them half of the counts of all tables, rounded up, and the tables of
    two private columns count it once.
    """
    of_class = max(1, math.ceil((num_axes - 2) / 2))
    return [1 if one else of_class for one, _ in pairs_of_axes(num_axes)]


def count_pairs(table: NDArray[np.int64], sizes: Sequence[int]) -> NDArray[np.int64]:
    """Count nodes by the values of each pair of axes.

    Args:
        table: Value of each node on each axis, shape ``(N, A)``, from 0 to ``sizes[a] - 1`` (private).
        sizes: Number of values of each axis (public).

    Returns:
        The tables of all pairs of axes, each flattened, one behind the other (private). Each counts a
        node as often as :func:`times_counted` says.
    """
    counts = [
        times
        * np.bincount(
            table[:, one] * sizes[other] + table[:, other], minlength=sizes[one] * sizes[other]
        )
        for (one, other), times in zip(
            pairs_of_axes(len(sizes)), times_counted(len(sizes)), strict=True
        )
    ]
    return np.concatenate(counts)


def tables_of_pairs(
    counts: NDArray[np.float64], sizes: Sequence[int]
) -> dict[tuple[int, int], NDArray[np.float64]]:
    """Arrange counts of :func:`count_pairs` as a table for each pair of axes."""
    pairs = pairs_of_axes(len(sizes))
    shapes = [(sizes[one], sizes[other]) for one, other in pairs]
    ends = np.cumsum([first * second for first, second in shapes])
    parts = np.split(counts, ends[:-1])
    return {
        pair: part.reshape(shape) for pair, part, shape in zip(pairs, parts, shapes, strict=True)
    }


class Marginal(NamedTuple):
    """Counts of rows by some of the columns.

    Attributes:
        axes: Columns in ascending order.
        counts: Noisy or exact counts with one axis for each column; they may be negative.
        scale: Scale of the Laplace noise of each count; 0 if they are exact.
    """

    axes: tuple[int, ...]
    counts: NDArray[np.float64]
    scale: float


def check_cells(sizes: Sequence[int]) -> None:
    """Refuse columns whose joint distribution has too many cells.

    Args:
        sizes: Number of categories of each column.

    Raises:
        Refusal: If there are more than :data:`MOST_CELLS`.
    """
    cells = math.prod(sizes)
    if cells > MOST_CELLS:
        raise Refusal(
            f"the private columns have {cells:,} combinations of categories, more than "
            f"{MOST_CELLS:,}:\n{' x '.join(map(str, sizes))}\n"
            "merge categories in the domains, or leave out a column"
        )


def fit_joint(marginals: Sequence[Marginal], sizes: Sequence[int]) -> NDArray[np.float64]:
    r"""Fit a joint distribution to marginals by entropic mirror descent.

    It minimizes :math:`\sum_m \lVert n P_m - y_m \rVert^2 / b_m^2` over distributions P, from the
    uniform one on, where :math:`y_m` are counts with noise of scale :math:`b_m`. Of all
    distributions with the marginals that it finds, it is the one of the largest entropy. Each step
    ends with a scaling to the exact marginals. Tables of two columns are shrunk first, see
    :func:`toward_independence`, and categories that no more than noise has are left out, see
    :func:`stands_out`.

    Args:
        marginals: The marginals (noisy or public).
        sizes: Number of categories of each column.

    Returns:
        Distribution of shape ``sizes``, which sums to 1.

    Raises:
        Refusal: See :func:`check_cells`.

    References:
        McKenna, Sheldon, Miklau, "Graphical-model based estimation and inference for differential
        privacy", 2019, fits marginals so, on a graphical model in place of a dense array.
    """
    check_cells(sizes)
    exact = [marginal for marginal in marginals if marginal.scale == 0]
    noisy = [toward_independence(each) for each in marginals if 0 < each.scale < math.inf]
    joint = np.full(sizes, 1 / math.prod(sizes))
    for axis, size in enumerate(sizes):
        joint = joint * _spread(
            stands_out(marginals, axis, size).astype(float), (axis,), len(sizes)
        )
    joint = _scaled(joint, exact, sweeps=1 if noisy else _STEPS)
    if not noisy:
        return joint
    total = max(_total(exact or noisy), 1.0)
    wanted = [marginal.counts / total for marginal in noisy]
    least = min(marginal.scale for marginal in noisy)
    weights = [(least / marginal.scale) ** 2 for marginal in noisy]
    rate, misfits = 1.0, [math.inf]
    differences, misfit = _misfit(joint, noisy, wanted, weights)
    for _ in range(_STEPS):
        slope = np.zeros(sizes)
        for marginal, difference, weight in zip(noisy, differences, weights, strict=True):
            slope += weight * _spread(difference, marginal.axes, len(sizes))
        step = rate * (slope - slope.min())
        proposed = _scaled(np.maximum(joint * np.exp(-step), _SMALLEST), exact, sweeps=1)
        differences_then, misfit_then = _misfit(proposed, noisy, wanted, weights)
        if misfit_then > misfit:
            rate /= 2
            if rate < _LEAST_RATE:
                break
            continue
        joint, differences, misfit, rate = proposed, differences_then, misfit_then, 1.25 * rate
        misfits.append(misfit)
        if len(misfits) > _STRETCH and misfit > (1 - _TOLERANCE) * misfits[-_STRETCH]:
            break
    return joint


def stands_out(marginals: Sequence[Marginal], axis: int, size: int) -> NDArray[np.bool_]:
    """Say which categories of a column have more rows than noise makes up.

    Each noisy marginal with the column estimates the rows of each category; their mean by the inverse
    variances counts. All categories stand out where none does, or where an exact marginal has them.

    Args:
        marginals: The marginals.
        axis: The column.
        size: Number of its categories.
    """
    having = [marginal for marginal in marginals if axis in marginal.axes]
    noisy = [marginal for marginal in having if 0 < marginal.scale < math.inf]
    if not noisy or len(having) > len(noisy):
        return np.ones(size, dtype=bool)
    sums = [np.moveaxis(m.counts, m.axes.index(axis), 0).reshape(size, -1).sum(1) for m in noisy]
    weights = np.array([size / (2 * m.scale**2 * m.counts.size) for m in noisy])
    found = np.average(sums, axis=0, weights=weights) > _STANDS_OUT / weights.sum() ** 0.5
    return found if found.any() else np.ones(size, dtype=bool)


def toward_independence(marginal: Marginal) -> Marginal:
    r"""Shrink the association of two columns against noise after James and Stein.

    What differs from independent columns is multiplied by :math:`(1 - \sigma^2 / r^2)_+`, where r is
    its length and :math:`\sigma^2` the variance of the noise in it. Sums of rows and columns stay.

    Args:
        marginal: A marginal; one of another number of columns is returned as it is.
    """
    if len(marginal.axes) != 2:
        return marginal
    rows, columns = (np.maximum(marginal.counts.sum(axis=axis), 0) for axis in (1, 0))
    independent = np.outer(rows, columns) / max(float(marginal.counts.sum()), 1)
    rest = marginal.counts - independent
    variance = 2 * marginal.scale**2 * (len(rows) - 1) * (len(columns) - 1)
    square = float((rest**2).sum())
    kept = max(1 - variance / square, 0) if square > 0 else 0
    return marginal._replace(counts=independent + kept * rest)


def trends(
    table: Marginal, sizes: NDArray[np.float64], places: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Fit how the logarithm of the share of each value grows with the place of a group.

    A slope b with noise of variance :math:`\sigma^2` is multiplied by :math:`1 - \sigma^2 / b^2`. It is
    0 where noise makes it up, :math:`|b| \le 1.5 \sigma`.

    Args:
        table: Nodes by group and value, shape ``(G, V)``, with a positive and finite scale of noise.
        sizes: Number of nodes of each group, shape ``(G,)``.
        places: Place of each group, such as the mean class of its degrees, shape ``(G,)``.

    Returns:
        Slope of each value, shape ``(V,)``.
    """
    counts = np.maximum(table.counts, table.scale / 2)
    weights = counts**2 / (2 * table.scale**2)  # inverse variances of the logarithms
    away = places[:, None] - places @ weights / weights.sum(axis=0)
    exactness = np.maximum((weights * away**2).sum(axis=0), _SMALLEST)
    slopes = (weights * away * np.log(counts / sizes[:, None])).sum(axis=0) / exactness
    squares = exactness * slopes**2
    return np.where(squares > _STANDS_OUT**2, 1 - 1 / np.maximum(squares, 1), 0) * slopes


def spread_over_classes(
    joint: NDArray[np.float64],
    of_class: NDArray[np.int64],
    sizes: NDArray[np.float64],
    slopes: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Spread the rows of groups over their classes by the trends of the values.

    Rows of a group and nodes of a class stay as many as they are.

    Args:
        joint: Distribution of groups and rows, shape ``(G, K1, ..., KJ)``.
        of_class: Group of each class, shape ``(C,)``.
        sizes: Number of nodes of each class, positive, shape ``(C,)``.
        slopes: Slopes of the values of each column, see :func:`trends`.

    Returns:
        Distribution of classes and rows, shape ``(C, K1, ..., KJ)``.
    """
    tilt = np.zeros(joint.shape[1:])
    for axis, each in enumerate(slopes):
        tilt = tilt + _spread(each, (axis,), len(slopes))
    found, columns = np.empty((len(sizes), *joint.shape[1:])), tuple(range(1, joint.ndim))
    for group, rows in enumerate(joint):
        classes = np.flatnonzero(of_class == group)
        exact = [
            Marginal(columns, rows / rows.sum(), 0.0),
            Marginal((0,), sizes[classes], 0.0),
        ]
        tilted = np.exp(np.multiply.outer(classes, tilt))
        found[classes] = rows.sum() * _scaled(tilted, exact, _SCALINGS)
    return found


def draw_rows(
    joint: NDArray[np.float64], given: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the other columns of rows whose first column is given.

    Args:
        joint: Distribution of rows, shape ``(C, K1, ..., KJ)``.
        given: First column of each row, shape ``(N,)``.
        rng: Source of the draws.

    Returns:
        The other columns, shape ``(N, J)``.
    """
    cells = np.cumsum(joint.reshape(len(joint), -1), axis=1)
    order = np.argsort(given, kind="stable")
    drawn = np.empty(len(given), dtype=np.int64)
    ends = np.cumsum(np.bincount(given, minlength=len(joint)))
    for ascending, nodes in zip(cells, np.split(order, ends[:-1]), strict=True):
        places = np.searchsorted(ascending, ascending[-1] * rng.random(len(nodes)), side="right")
        drawn[nodes] = np.minimum(places, len(ascending) - 1)
    return np.stack(np.unravel_index(drawn, joint.shape[1:]), axis=1).astype(np.int64)


def _total(marginals: Sequence[Marginal]) -> float:
    """Sum of the counts, as all marginals together estimate it."""
    weights = [1 / (marginal.counts.size * max(marginal.scale, 1) ** 2) for marginal in marginals]
    sums = [float(marginal.counts.sum()) for marginal in marginals]
    return float(np.average(sums, weights=weights))


def _misfit(
    joint: NDArray[np.float64],
    marginals: Sequence[Marginal],
    wanted: Sequence[NDArray[np.float64]],
    weights: Sequence[float],
) -> tuple[list[NDArray[np.float64]], float]:
    """Differences of the marginals of a distribution to the wanted ones, and half their square."""
    differences = [
        _summed(joint, marginal.axes) - share
        for marginal, share in zip(marginals, wanted, strict=True)
    ]
    squares = [float((difference**2).sum()) for difference in differences]
    return differences, float(np.dot(weights, squares)) / 2


def _scaled(
    joint: NDArray[np.float64], exact: Sequence[Marginal], sweeps: int
) -> NDArray[np.float64]:
    """Scale a distribution to exact marginals, one after the other."""
    for _ in range(sweeps):
        largest = 0.0
        for marginal in exact:
            share = marginal.counts / max(float(marginal.counts.sum()), 1.0)
            ratio = share / np.maximum(_summed(joint, marginal.axes), _SMALLEST)
            joint = joint * _spread(ratio, marginal.axes, joint.ndim)
            largest = max(largest, float(np.abs(ratio - 1)[share > 0].max(initial=0.0)))
        if largest < _TOLERANCE**2:
            break
    return joint / joint.sum()


def _summed(joint: NDArray[np.float64], axes: tuple[int, ...]) -> NDArray[np.float64]:
    """Marginal of a distribution."""
    others = tuple(axis for axis in range(joint.ndim) if axis not in axes)
    return np.asarray(joint.sum(axis=others))


def _spread(values: NDArray[np.float64], axes: tuple[int, ...], ndim: int) -> NDArray[np.float64]:
    """Give values of a marginal the axes of the joint distribution, for broadcasting."""
    shape = [1] * ndim
    for axis, size in zip(axes, values.shape, strict=True):
        shape[axis] = size
    return values.reshape(shape)
