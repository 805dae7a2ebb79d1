r"""Delta of composed releases by characteristic functions, without loss grids or Renyi orders.

:math:`E[(1 - e^{\epsilon - L})_+]` is inverted from its two-sided Laplace transform in epsilon, the
moments :math:`E[e^{zL}]` over z (z + 1), along a line through the saddle point, where nothing cancels.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar


def exact_delta(entries, epsilon):
    """Delta at ``epsilon`` of releases, the larger one of both directions; some must be Gaussian.

    Args:
        entries: Ledger entries: ``pure``, ``approximate`` and ``gaussian`` ones.
        epsilon: Where delta is asked for.
    """
    failure = sum(e.steps * e.event.total_delta for e in entries)
    return failure + max(_one_way(entries, epsilon, adding) for adding in (False, True))


def _one_way(entries, epsilon, adding):
    def exponent(z):
        moments = sum(e.steps * _log_moment(e, z, adding) for e in entries)
        return moments - z * epsilon - np.log(z * (z + 1))

    def real(log_theta):
        with np.errstate(over="ignore", invalid="ignore"):
            value = float(exponent(np.array([math.exp(log_theta) + 0j])).real[0])
        return value if math.isfinite(value) else math.inf

    saddle = math.exp(minimize_scalar(real, bounds=(-7, 16), method="bounded").x)
    near = saddle * (1 + np.array([-0.01, 0, 0.01]))
    bend = np.diff([real(math.log(theta)) for theta in near], 2)[0] / (0.01 * saddle) ** 2
    smooth = sum(_least_variance(e) * e.steps for e in entries)
    most = max(14 / math.sqrt(bend), 9 / math.sqrt(smooth))
    pure = sum(e.steps * e.event.pure_epsilon for e in entries)
    count = int(np.clip(most * (pure + math.sqrt(1 / bend)) * 8, 300, 20_000))
    heights = np.linspace(0, most, count)
    values = np.exp(exponent(saddle + 1j * heights)).real
    return (values.sum() - values[0] / 2) * heights[1] / math.pi


def _least_variance(entry):
    """Variance of the normal part of a loss, about."""
    if entry.event.mechanism != "gaussian":
        return 0.0
    return (entry.event.sample_rate / entry.event.noise_multiplier) ** 2


def _log_moment(entry, z, adding):
    if entry.event.mechanism != "gaussian":
        high = 1 / (1 + math.exp(-entry.event.pure_epsilon))
        return np.log(
            high * np.exp(z * entry.event.pure_epsilon)
            + (1 - high) * np.exp(-z * entry.event.pure_epsilon)
        )
    sigma, q = entry.event.noise_multiplier, entry.event.sample_rate
    if q == 1:
        return (z * z + z) / (2 * sigma**2)
    ends = np.array([-13 * sigma, 1 + min(float(z.real.max()), 60) + 14 * sigma])
    x = np.arange(*ends, min(sigma / 8, sigma**2 / 4))
    log_ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / (2 * sigma**2))
    weights = np.exp(-((x / sigma) ** 2) / 2) * (x[1] - x[0]) / (sigma * math.sqrt(2 * math.pi))
    powers = -z if adding else z + 1
    return np.concatenate(
        [
            np.log1p(np.expm1(np.multiply.outer(part, log_ratio)) @ weights)
            for part in np.array_split(powers, max(1, len(powers) // 500))
        ]
    )
