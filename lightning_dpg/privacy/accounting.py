r"""Privacy curves as plain functions: Renyi DP of single steps, Gaussian DP, conversions.

A curve is the array of Renyi divergences :math:`\varepsilon(\alpha)` at the orders ``ORDERS``.
Curves of successive releases add; the sum is converted to (epsilon, delta) once.

* Mironov, "Renyi differential privacy", 2017 (randomized response).
* Mironov, Talwar, Zhang, "Renyi differential privacy of the sampled Gaussian mechanism", 2019.
* Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, Prop. 12.
* Balle, Wang, "Improving the Gaussian mechanism for differential privacy", 2018, Theorem 8.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.loss_distributions import hockey_stick

Curve = npt.NDArray[np.float64]

_INTEGERS = np.unique(np.r_[2:65, np.geomspace(64, 1024, 61).round()])  # beyond 64 in steps of 5 %
_FRACTIONS = np.r_[np.arange(101, 110) / 100, [k / 10 for k in range(11, 110) if k % 10]]
ORDERS: Curve = np.r_[_FRACTIONS, _INTEGERS]
"""The orders alpha at which curves are kept."""

LEAST = float(np.finfo(np.float64).tiny)
"""Least cost and least delta of a release that costs anything: none is rounded to 0."""

_LOG_FACTORIAL: Curve = np.cumsum(np.log(np.r_[1, 1 : ORDERS.max() + 1]))
_MIN_QUADRATURE_SIGMA = 0.03
_MOST_NOISE = 1e12  # more noise on samples counts as this much, so its square is finite


def _log_moments_integer(sigma: float, q: float) -> Curve:
    r"""Log of the moments minus one at integer orders.

    Of :math:`A_\alpha = \sum_k \binom{\alpha}{k} (1-q)^{\alpha-k} q^k e^{(k^2-k)/2\sigma^2}` the
    sum of the binomial weights, which is 1, is taken off term by term: what is left is positive
    and loses no digits when q is small.
    """
    orders, k = _INTEGERS[:, None], np.arange(2.0, _INTEGERS[-1] + 1)[None]
    rest = np.maximum(orders - k, 0)
    exponent = (k * k - k) / (2 * sigma**2)
    log_terms = (
        _LOG_FACTORIAL[orders.astype(int)]
        - _LOG_FACTORIAL[k.astype(int)]
        - _LOG_FACTORIAL[rest.astype(int)]
        + rest * math.log1p(-q)
        + k * math.log(q)
        + exponent
        + np.log(-np.expm1(-exponent))
    )
    log_sum: Curve = np.logaddexp.reduce(np.where(k <= orders, log_terms, -np.inf), axis=1)
    return log_sum


def _log_moments_fraction(sigma: float, q: float) -> Curve:
    r"""Log of the moments minus one at fractional orders, by the trapezoidal rule.

    With :math:`x(z) = q(e^{(2z-1)/2\sigma^2} - 1)`, of mean 0 for z normal of variance
    :math:`\sigma^2`, :math:`A_\alpha - 1 = E[(1+x)^\alpha - 1 - \alpha x]`, where what is in the
    brackets is never negative. The integrand is analytic up to :math:`\pi\sigma^2` from the real
    line, so a step of half of :math:`\sigma^2` leaves an error of about 1e-16.
    """
    step = min(sigma / 4, sigma**2 / 2)
    z = np.arange(-14 * sigma, _FRACTIONS[-1] + 14 * sigma, step)[None]
    log_ratio = (2 * z - 1) / (2 * sigma**2)
    log_mean = np.where(  # log(1 + x), whose naive form loses digits at small and overflows
        log_ratio < 1,
        np.log1p(q * np.expm1(np.minimum(log_ratio, 1))),
        np.logaddexp(math.log1p(-q), math.log(q) + log_ratio),
    )
    power = _FRACTIONS[:, None] * log_mean
    x = np.expm1(np.minimum(log_mean, 700))
    with np.errstate(divide="ignore", over="ignore"):
        small = np.log(np.maximum(np.expm1(np.minimum(power, 1)) - _FRACTIONS[:, None] * x, 0))
        linear = np.exp(np.log1p(_FRACTIONS[:, None] * np.maximum(x, 0)) - power)
        large = power + np.log1p(-np.minimum(linear, 1))
    log_bracket = np.where(power < 1, small, large)
    log_density = -((z / sigma) ** 2) / 2 + math.log(step / (sigma * math.sqrt(2 * math.pi)))
    log_sum: Curve = np.logaddexp.reduce(log_density + log_bracket, axis=1)
    return log_sum


@lru_cache(maxsize=4096)
def rdp_gaussian(noise_multiplier: float, sample_rate: float = 1.0) -> Curve:
    """Curve of one Gaussian release on a Poisson sample, under adding or removing a record.

    Args:
        noise_multiplier: Standard deviation of the noise over the L2 sensitivity; 0 is no privacy.
        sample_rate: Probability with which the record is drawn.
    """
    if noise_multiplier < 0 or not 0 <= sample_rate <= 1:
        raise Refusal(f"no such mechanism: {noise_multiplier=}, {sample_rate=}")
    curve: Curve
    if sample_rate == 0:
        curve = np.zeros_like(ORDERS)
    elif noise_multiplier < 1e-3:  # smaller ones overflow and protect nothing
        curve = np.full_like(ORDERS, np.inf)
    elif sample_rate == 1:
        # The square of the quotient: that of a huge multiplier alone would overflow.
        curve = ORDERS / 2 * (1 / noise_multiplier) ** 2
    else:
        noise_multiplier = min(noise_multiplier, _MOST_NOISE)
        integer = np.logaddexp(0, _log_moments_integer(noise_multiplier, sample_rate))
        if noise_multiplier >= _MIN_QUADRATURE_SIGMA:
            fraction = np.logaddexp(0, _log_moments_fraction(noise_multiplier, sample_rate))
        else:  # the log moment is convex in the order: between integers the chord is above it
            chord = np.interp(_FRACTIONS, np.r_[1, _INTEGERS], np.r_[0, integer])
            unsampled = _FRACTIONS * (_FRACTIONS - 1) / (2 * noise_multiplier**2)
            fraction = np.minimum(chord, unsampled)
        curve = np.r_[fraction, integer] / (ORDERS - 1)
    if sample_rate and not math.isinf(noise_multiplier):
        curve = np.maximum(curve, LEAST)
    curve.flags.writeable = False
    return curve


@lru_cache(maxsize=4096)
def rdp_pure(epsilon: float) -> Curve:
    r"""Curve of any ``epsilon``-DP release: randomized response has the largest of them all.

    Its moment is :math:`1 + 2 \sinh(\alpha \epsilon / 2) \sinh((\alpha - 1) \epsilon / 2) /
    \cosh(\epsilon / 2)`. The sum of its two terms rounds to 1 where epsilon is small: that would be
    a release for free.
    """
    if epsilon < 0:
        raise Refusal(f"epsilon must not be negative, got {epsilon}")
    curve: Curve
    if math.isinf(epsilon):
        curve = np.full_like(ORDERS, np.inf)
    else:
        log_p = -math.log1p(math.exp(-epsilon))
        log_moment = np.logaddexp(log_p + (ORDERS - 1) * epsilon, log_p - ORDERS * epsilon)
        half = np.minimum(epsilon, 1 / ORDERS) / 2
        excess = 2 * np.sinh(ORDERS * half) * np.sinh((ORDERS - 1) * half) / np.cosh(half)
        log_moment = np.where(ORDERS * epsilon <= 1, np.log1p(excess), log_moment)
        curve = np.clip(log_moment / (ORDERS - 1), LEAST if epsilon else 0.0, epsilon)
    curve.flags.writeable = False
    return curve


def rdp_to_epsilon(curve: Curve, delta: float) -> float:
    """Smallest epsilon that ``curve`` proves for ``delta``; infinite when there is none."""
    if not 0 <= delta < 1:
        raise Refusal(f"delta must lie in [0, 1), got {delta}")
    if not curve.any():
        return 0.0
    if delta == 0:
        return math.inf
    bounds = curve + np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    return max(0.0, float(bounds.min()))


def rdp_to_delta(curve: Curve, epsilon: float) -> float:
    """Smallest delta that ``curve`` proves for ``epsilon``; at most 1, and 0 for free releases."""
    if epsilon < 0:
        raise Refusal(f"epsilon must not be negative, got {epsilon}")
    if not curve.any() or math.isinf(epsilon):
        return 0.0
    bounds = (ORDERS - 1) * (curve - epsilon + np.log1p(-1 / ORDERS)) - np.log(ORDERS)
    return max(math.exp(min(0.0, float(bounds.min()))), LEAST)


def gdp_delta(mu: float, epsilon: float) -> float:
    r"""Delta of :math:`\mu`-Gaussian DP at ``epsilon`` (Balle and Wang, Theorem 8).

    It is exact but for rounding errors, which make it larger: its two terms nearly cancel where there
    is much noise. No noise has a delta of 0, however small the delta is.
    """
    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    return max(LEAST, float(hockey_stick(mu, np.array(epsilon))))


def gdp_epsilon(mu: float, delta: float) -> float:
    r"""Smallest epsilon of :math:`\mu`-Gaussian DP at ``delta``, from above."""
    if math.isinf(mu):
        return math.inf
    if gdp_delta(mu, 0.0) <= delta:
        return 0.0
    if delta == 0:
        return math.inf
    # At this epsilon the conversion of zero-concentrated DP, which is an upper bound, holds.
    high = mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    return smallest(lambda epsilon: gdp_delta(mu, epsilon) <= delta, high, 1e-12)


def smallest(fits: Callable[[float], bool], high: float, tolerance: float) -> float:
    """Smallest positive x with ``fits(x)``, from above; ``fits(high)`` and all beyond hold."""
    low = high
    while fits(low):
        low, high = low / 2, low
        if low < 1e-12:
            return high
    while high - low > tolerance * high:
        middle = (low + high) / 2
        if fits(middle):
            high = middle
        else:
            low = middle
    return high
