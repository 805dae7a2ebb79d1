"""Noise of the Gaussian mechanism by formulas that the package does not use."""

import math

from scipy.optimize import brentq
from scipy.special import ndtr


def gaussian_sigma(epsilon, delta):
    """Noise of one Gaussian release, by Balle and Wang's closed form."""
    mu = brentq(
        lambda m: (
            ndtr(m / 2 - epsilon / m) - math.exp(epsilon) * ndtr(-m / 2 - epsilon / m) - delta
        ),
        1e-6,
        50,
        xtol=1e-14,
    )
    return 1 / mu
