"""Epsilon once more by opacus, whose accountants share no code with those of this package.

opacus accounts for Gaussian noise on Poisson samples, and for nothing else. Renyi DP (Mironov, Talwar,
Zhang, "Renyi differential privacy of the sampled Gaussian mechanism", 2019) is an upper bound; curves
of pure reads are added to it. Privacy random variables (Gopi, Lee, Wutschitz, "Numerical composition of
differential privacy", 2021) enclose epsilon between two bounds. opacus composes them for a record that
is removed. Its lower bound is therefore one for the relation of adding or removing a record. Reads of
pure epsilon beside the Gaussian ones can only cost more, and the bound holds with them too.
"""

import math
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.privacy import composition
from lightning_dpg.privacy.accounting import ORDERS
from lightning_dpg.privacy.budget import digits_down, digits_up
from lightning_dpg.privacy.events import Gaussian, LedgerEntry

OPACUS = f"opacus {version('opacus')}"

_WIDTHS = (0.01, 0.1)  # of the bounds on both sides; the second where the first takes too long
_MOST_POINTS = 2**20  # of a distribution: a second and 100 MB
_DELTA_SHARE = 1e-3  # of delta, as error of the distributions; that of opacus' own accountant
_LEAST_DELTA = 1e-12  # below it the distributions show their rounding errors
_TOLERANCE = 1e-4  # of a stated epsilon, which is rounded up
_LEAST_NOISE, _MOST_NOISE = 1e-3, 1e9  # less protects nothing, and the square of more is too large


class SecondOpinion(NamedTuple):
    """Epsilon by opacus.

    Attributes:
        rdp: Upper bound by Renyi DP, of all reads.
        prv: Lower bound, estimate and upper bound by privacy random variables, of the Gaussian reads;
            None where their distribution takes too much memory.
        is_part: Whether there are other reads beside the Gaussian ones.
    """

    rdp: float
    prv: Sequence[float] | None
    is_part: bool

    def __str__(self) -> str:
        """Both numbers, for people; upper bounds are rounded up, and lower ones down."""
        text = f"{digits_up(self.rdp, 5)} (RDP)"
        if self.prv is None:
            return text
        lower, _, upper = self.prv
        part = ", Gaussian reads alone" if self.is_part else ""
        return f"{text}, {digits_down(lower, 4)} to {digits_up(upper, 4)} (PRV{part})"

    def remark(self, epsilon: float) -> str:
        """Return a sentence if a stated epsilon is more than opacus proves; else nothing."""
        if epsilon <= self.rdp * (1 + _TOLERANCE) + _TOLERANCE:
            return ""
        return f"Epsilon {epsilon:g} is more than opacus proves by RDP: it could be stated lower."

    def is_near(self, other: "SecondOpinion") -> bool:
        """Return whether both are equal up to rounding errors, which differ between machines."""
        ours, theirs = ([each.rdp, *(each.prv or ())] for each in (self, other))
        return len(ours) == len(theirs) and bool(
            np.allclose(ours, theirs, rtol=1e-3, atol=_TOLERANCE)
        )

    def lower_bound(self) -> float:
        """Epsilon that the reads cost at least, as far as opacus can say."""
        return 0.0 if self.prv is None else self.prv[0]


def second_opinion(entries: Sequence[LedgerEntry], delta: float) -> SecondOpinion | None:
    """Compute epsilon by opacus.

    Args:
        entries: All reads of a run.
        delta: Delta of the guarantee.

    Returns:
        Both bounds; None where opacus has no accountant: without Gaussian noise, without a delta, or
        where a read protects nothing.
    """
    rest = delta - composition.total_delta(entries)
    steps = composition.costs(entries)
    gaussian = {event: count for event, count in steps.items() if isinstance(event, Gaussian)}
    if not gaussian or not 0 < rest < 1 or not all(event.protects for event in steps):
        return None
    if min(event.noise_multiplier for event in gaussian) < _LEAST_NOISE:
        return None
    reads = [
        (min(event.noise_multiplier, _MOST_NOISE), event.sample_rate, count)
        for event, count in gaussian.items()
    ]
    others = [event.curve() * count for event, count in steps.items() if event not in gaussian]
    curve = sum(others, np.zeros_like(ORDERS))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of orders at an end of their range, and of log(0)
        rdp = _rdp(reads, curve, rest)
        prv = _prv(reads, rest) if rest >= _LEAST_DELTA else None
    return SecondOpinion(rdp, prv, bool(others))


def _rdp(
    reads: Sequence[tuple[float, float, int]], others: NDArray[np.float64], delta: float
) -> float:
    """Upper bound of noise multipliers, sample rates and steps, and of a curve of other reads."""
    # Start-up time: most methods have no Gaussian noise, and opacus takes a fifth of a second.
    from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent

    orders, curve = list(ORDERS), others
    for noise, rate, count in reads:
        curve = curve + compute_rdp(q=rate, noise_multiplier=noise, steps=count, orders=orders)
    epsilon, _ = get_privacy_spent(orders=orders, rdp=list(curve), delta=delta)
    return max(0.0, float(epsilon))


def _prv(
    reads: Sequence[tuple[float, float, int]], delta: float
) -> tuple[float, float, float] | None:
    """Lower bound, estimate and upper bound of noise multipliers, sample rates and steps."""
    # Start-up time: as above.
    from opacus.accountants.analysis.prv import (
        Domain,
        PoissonSubsampledGaussianPRV,
        TruncatedPrivacyRandomVariable,
        compose_heterogeneous,
        compute_safe_domain_size,
        discretize,
    )

    variables = [PoissonSubsampledGaussianPRV(rate, noise) for noise, rate, _ in reads]
    counts = [count for *_, count in reads]
    error = delta * _DELTA_SHARE
    for width in _WIDTHS:
        try:
            largest = compute_safe_domain_size(variables, counts, width, error)
            mesh = width / math.sqrt(sum(counts) * math.log(12 / error) / 2)
            if not 2 * largest / mesh <= _MOST_POINTS:
                continue
            domain = Domain.create_aligned(-largest, largest, mesh)
            parts = [
                TruncatedPrivacyRandomVariable(v, domain.t_min, domain.t_max) for v in variables
            ]
            total = compose_heterogeneous([discretize(part, domain) for part in parts], counts)
            bounds = total.compute_epsilon(delta, error, width)
        except (ArithmeticError, ValueError, RuntimeError):  # numbers beyond floating point
            return None
        if not all(map(math.isfinite, bounds)):
            return None
        lower, estimate, upper = (max(0.0, float(bound)) for bound in bounds)
        return lower, estimate, upper
    return None
