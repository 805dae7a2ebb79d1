r"""Privacy loss distributions: pure releases, Gaussian ones and sampled Gaussian ones, composed tightly.

The privacy loss of a pair of distributions (P, Q) is :math:`L(x) = \ln P(x) / Q(x)` for x of P. The
pair is (epsilon, delta)-indistinguishable in this direction with :math:`\delta = E[(1 - e^{\epsilon -
L})_+]`. A pair dominates a mechanism if its delta is no smaller at any epsilon. The product of
dominating pairs dominates the adaptive composition, whose losses add up (Zhu, Dong, Wang, "Optimal
accounting of differential privacy via characteristic function", 2022, Theorem 10). So delta at
epsilon is the expectation over the sum of independent losses of three kinds.

* Pure epsilon-DP: randomized response dominates all such mechanisms (Kairouz, Oh, Viswanath, "The
  composition theorem for differential privacy", 2015). Its loss is epsilon with probability
  :math:`e^\epsilon / (1 + e^\epsilon)` and minus epsilon else.
* Gaussian, all records read: the sum of losses is normal, of variance :math:`\mu^2` and mean
  :math:`\mu^2 / 2`. Its delta at each real epsilon is exact (:func:`hockey_stick`).
* Gaussian on a Poisson sample: :math:`(1 - q) N(0, \sigma^2) + q N(1, \sigma^2)` against :math:`N(0,
  \sigma^2)` where a record is removed, and the other way around where one is added. Both directions
  are composed, and the larger delta counts. Their losses are put on a grid by :func:`_on_grid` and
  added up by fast Fourier transform.

The grid is pessimistic (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, "Connect the dots: tighter
discrete approximations of privacy loss distributions", 2022): the mass between two points moves to
them such that P and Q keep theirs. That spreads the likelihood ratio Q / P without changing its mean,
and :math:`E[(1 - e^\epsilon Q/P)_+]` is convex in it, so no delta shrinks. Rounding errors are
counted where they could make delta smaller, see the functions.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

Array = npt.NDArray[np.float64]
Steps = tuple[tuple[float, float, int], ...]
"""Noise multiplier, sample rate and number of steps of each group of sampled steps."""

_POINTS_PER_DEVIATION = 16  # per standard deviation of the loss of one step
_MOST_STEP_POINTS = 2**16
_MOST_POINTS = 2**20
_STEP_TAIL = 9.0  # standard deviations of the noise that the grid of a step covers
_MOST_ATOMS = 4096
# Smaller noise has losses whose exponentials overflow, and larger deltas than are of use.
_LEAST_SIGMA = 0.15
# Relative error of distribution functions, exponentials and short sums, with room to spare.
_ROUNDING = 2.0**-48
_LEAST_MU = 1e-9
# Probability of sums outside of the grid, which delta is charged with, over delta.
_OUTSIDE = 1e-4


class Losses(NamedTuple):
    """Sum of the losses of sampled steps in one direction.

    Attributes:
        values: Grid of losses, ascending.
        masses: Their probabilities.
        lost: Probability at most that is not in ``masses``: it counts as delta.
    """

    values: Array
    masses: Array
    lost: float


def hockey_stick(mu: float, epsilon: Array) -> Array:
    r"""Exact delta of Gaussian releases of parameter :math:`\mu` at each real epsilon.

    It is :math:`\Phi(\mu / 2 - \epsilon / \mu) - e^\epsilon \Phi(-\mu / 2 - \epsilon / \mu)` (Balle and
    Wang, 2018, Theorem 8, whose proof needs no sign of epsilon), and :math:`(1 - e^\epsilon)_+` where
    nothing is released. The terms nearly cancel where there is much noise, so the rounding error
    of their logarithms is taken off the second one.
    """
    if mu == 0:
        return np.maximum(-np.expm1(np.minimum(epsilon, 0.0)), 0.0)
    mu = max(mu, _LEAST_MU)  # smaller ones would divide by next to nothing
    place = -mu / 2 - epsilon / mu
    first = log_ndtr(mu / 2 - epsilon / mu)
    second = epsilon + log_ndtr(place)
    error = _ROUNDING * (1 + np.square(np.clip(place, -1e10, 0.0)) + np.abs(epsilon))
    delta: Array = -np.exp(first) * np.expm1(np.minimum(second - first, 0.0) - error)
    return delta


def composed_delta(
    epsilon: float,
    *,
    mu: float = 0.0,
    pure: Sequence[tuple[float, int]] = (),
    sampled: Steps = (),
    resolution: float = 1e-6,
) -> float:
    """Delta at ``epsilon`` of releases together, from above.

    Args:
        epsilon: Where delta is asked for.
        mu: Gaussian-DP parameter of all Gaussian releases that read all records.
        pure: Epsilon and number of each group of pure releases.
        sampled: Groups of sampled Gaussian steps.
        resolution: Delta of interest, of which errors are to be a small part.

    Returns:
        Delta, at most 1; 1 also where the grid would need too many points.
    """
    atoms, weights = _pure_atoms(tuple(pure))
    if math.isinf(mu) or not np.isfinite(atoms).all():
        return 1.0
    if not sampled:
        return min(1.0, float(weights @ hockey_stick(mu, epsilon - atoms)))
    worst = 0.0
    for is_removed in (True, False):
        losses = _composed(sampled, is_removed, resolution)
        if losses is None:
            return 1.0
        delta = losses.lost
        for atom, weight in zip(atoms, weights, strict=True):
            delta += weight * float(
                losses.masses @ hockey_stick(mu, epsilon - atom - losses.values)
            )
        if not delta < 1:
            return 1.0
        worst = max(worst, delta)
    return worst


def _pure_atoms(pure: tuple[tuple[float, int], ...]) -> tuple[Array, Array]:
    """Sums of the losses of pure releases, and their probabilities.

    Where there are too many sums, some groups count as if they always had their largest loss, which
    makes no delta smaller.
    """
    atoms, weights = np.zeros(1), np.ones(1)
    if not pure:
        return atoms, weights
    # Start-up time: it takes a second, and most releases have reads of one kind only.
    from scipy.stats import binom

    for epsilon, count in sorted(pure, reverse=True):
        if len(atoms) * (count + 1) > _MOST_ATOMS or epsilon > 700:
            atoms = atoms + count * epsilon
            continue
        highs = np.arange(count + 1)
        chances = binom.pmf(highs, count, 1 / (1 + math.exp(-epsilon)))
        atoms = np.add.outer(atoms, epsilon * (2 * highs - count)).ravel()
        weights = np.multiply.outer(weights, chances).ravel()
    return atoms, weights


@lru_cache(maxsize=64)
def _composed(sampled: Steps, is_removed: bool, resolution: float) -> Losses | None:
    """Losses of all sampled steps together; None where they would need too many points.

    The transform adds up sums modulo the length of the grid. Sums below it come out too large, which
    makes no delta smaller; Chernoff's bound of those beyond it is ``lost``. So are masses that steps
    have beyond their own grids, and the rounding errors of the transform: each of its values is off
    by a few units in the last place, T-fold after the T-th power, and the sum over the masses of N
    points by the root of N times as much.
    """
    if min(sigma for sigma, _, _ in sampled) < _LEAST_SIGMA:
        return None
    total = sum(steps for _, _, steps in sampled)
    length = max(
        _loss_at(_STEP_TAIL, sigma, q) - _loss_at(-_STEP_TAIL, sigma, q) for sigma, q, _ in sampled
    )
    step = min(_deviation(sigma, q) for sigma, q, _ in sampled) / _POINTS_PER_DEVIATION
    step = max(step, length / _MOST_STEP_POINTS)
    grids = [(*_on_grid(sigma, q, step, is_removed), count) for sigma, q, count in sampled]
    goal = math.log(1 / (_OUTSIDE * resolution))
    low, high = (_reach(grids, step, goal, sign) for sign in (-1, 1))
    size = 2 ** math.ceil(math.log2((high - low) / step + 2))
    if size > _MOST_POINTS:
        return None
    start = math.floor(low / step)
    spectrum, offset, beyond = np.ones(size // 2 + 1, dtype=np.complex128), 0, 0.0
    for first, masses, lost, count in grids:
        folded = np.bincount(np.arange(len(masses)) % size, masses, size)
        spectrum *= _power(np.fft.rfft(folded), count)
        offset += first * count
        beyond += lost * count
    sums = np.fft.irfft(spectrum, size)
    masses = np.maximum(np.roll(sums, (offset - start) % size), 0.0)
    values = step * (start + np.arange(size))
    error = 2.0**-49 * total * math.sqrt(size)
    return Losses(values, masses, beyond + 2 * math.exp(-goal) + error)


def _power(base: npt.NDArray[np.complex128], exponent: int) -> npt.NDArray[np.complex128]:
    """Elementwise power by repeated squaring, faster than NumPy's of complex numbers."""
    power = np.ones_like(base)
    while exponent:
        if exponent % 2:
            power *= base
        base, exponent = base * base if exponent > 1 else base, exponent // 2
    return power


def _reach(
    grids: Sequence[tuple[int, Array, float, int]], step: float, goal: float, sign: int
) -> float:
    r"""Bound that the sum of losses exceeds, upwards or downwards, with chance :math:`e^{-g}` at most.

    By Chernoff, :math:`P(S \ge s) \le E[e^{tS}] e^{-ts}` for each t > 0; s is the smallest of those for
    t of a range of powers.
    """
    deviation = math.sqrt(
        sum(
            count * float(masses @ np.square(step * (first + np.arange(len(masses)))))
            for first, masses, _, count in grids
        )
    )
    occurring = []
    for first, masses, _, count in grids:
        occurs = np.flatnonzero(masses)
        occurring.append((first + occurs, masses[occurs], count))
    bound = math.inf
    for rate in np.geomspace(0.1, 20 * math.sqrt(goal), 24) / max(deviation, step):
        log_mean = 0.0
        for places, masses, count in occurring:
            exponents = rate * sign * step * places
            largest = float(exponents.max())
            mean = float(masses @ np.exp(exponents - largest))
            log_mean += count * (largest + math.log(mean))
        bound = min(bound, (goal + log_mean) / rate)
    return sign * bound


def _deviation(sigma: float, q: float) -> float:
    """Standard deviation, about, of the loss of one step: it is small where noise is large."""
    return min(q * math.sqrt(math.expm1(min(1 / sigma**2, 40.0))), 1 / sigma)


def _loss_at(deviations: float, sigma: float, q: float) -> float:
    """Loss of one step where the noise is so many standard deviations from the nearer mean."""
    place = deviations * sigma + max(math.copysign(1, deviations), 0)
    exponent = (2 * place - 1) / (2 * sigma**2)
    return float(np.logaddexp(math.log1p(-q), math.log(q) + exponent))


def _on_grid(sigma: float, q: float, step: float, is_removed: bool) -> tuple[int, Array, float]:
    r"""Loss of one step on a grid of multiples of ``step``, made no smaller.

    An interval from l to l' holds the probability a of P and b of Q. Its lower end gets :math:`p =
    (b - a e^{-l'}) / (e^{-l} - e^{-l'})` of a, its upper end the rest: then both ends together have the
    probabilities a and b. An error of p that is negative moves mass to the upper end, which makes the
    loss larger; so what rounding can have added to p is taken off it.

    Args:
        sigma: Noise multiplier.
        q: Sample rate, below 1.
        step: Distance of the grid's points.
        is_removed: Whether P is the mixture, with the record, or the other one.

    Returns:
        Number of the first point, masses of all points from there on, and the mass beyond the last.
    """
    # In the direction in which a record is removed; the other one is its mirror image.
    first = math.floor(_loss_at(-_STEP_TAIL, sigma, q) / step)
    last = math.ceil(_loss_at(_STEP_TAIL, sigma, q) / step)
    points: Array = step * np.arange(first, last + 1, dtype=np.float64)
    # Places x of the noise where the loss is as large as at the points; none below the smallest loss.
    growth = np.maximum(np.expm1(points) / q, -1.0)
    with np.errstate(divide="ignore"):
        places = sigma**2 * np.log1p(growth) + 0.5
    without, error = _interval_masses(places / sigma)
    with_record, other_error = _interval_masses((places - 1) / sigma)
    mixture, mixture_error = (
        (1 - q) * x + q * y for x, y in ((without, with_record), (error, other_error))
    )
    if is_removed:
        masses = _split(mixture, without, (mixture_error, error), points)
        ends = _tails(places, 0, sigma), _tails(places, 1, sigma)
        below, above = ((1 - q) * x + q * y for x, y in zip(*ends, strict=True))
    else:
        errors = error[::-1], mixture_error[::-1]
        masses = _split(without[::-1], mixture[::-1], errors, -points[::-1])
        first, (above, below) = -last, _tails(places, 0, sigma)
    masses[0] += below  # losses below the grid, which are made larger
    return first, masses, above


def _tails(places: Array, mean: float, sigma: float) -> tuple[float, float]:
    """Probabilities of noise below the first place, and above the last one."""
    return float(ndtr((places[0] - mean) / sigma)), float(ndtr((mean - places[-1]) / sigma))


def _interval_masses(places: Array) -> tuple[Array, Array]:
    """Probabilities that a standard normal number lies between successive places, and their errors.

    Above 0 they are differences of upper tails, and errors are relative to the tails.
    """
    is_upper = places[:-1] > 0
    ends = (
        np.where(is_upper, -places[:-1], places[1:]),
        np.where(is_upper, -places[1:], places[:-1]),
    )
    larger, smaller = ndtr(ends[0]), ndtr(ends[1])
    return np.maximum(larger - smaller, 0.0), _ROUNDING * larger


def _split(p: Array, q: Array, errors: tuple[Array, Array], points: Array) -> Array:
    """Masses of the points, from those of P and of Q in the intervals between them."""
    width = np.diff(points)
    grown = np.exp(points[:-1])
    # What rounding can have added: to the masses, and to the sum and the exponentials below.
    error = errors[1] * grown + errors[0] + _ROUNDING * (q * grown + p)
    lower = (q * grown - p * np.exp(-width) - error) / -np.expm1(-width)
    lower = np.clip(lower, 0.0, p)
    masses = np.zeros(len(points))
    masses[:-1] += lower
    masses[1:] += p + errors[0] - lower
    return masses
