"""Laws of noise: each draws a released value from a private one, see :mod:`lightning_dpg.privacy.pay`."""

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.noise import NoiseSource

# Rates of integer noise are rounded down to whole multiples of one over this: a power of two that
# leaves room for products in 64 bits.
RATE_DENOMINATOR = 2**40
_MOST_EPSILON = 1e290  # more would overflow, and adds no noise either


def normal_noise(read: LedgerEntry) -> Callable[[Tensor, NoiseSource], Tensor]:
    """Law that adds independent normal noise to each element.

    The result has the type of the value if that is a floating-point one. A value of sensitivity 0 is
    public, and gets no noise.

    Args:
        read: Read with a :class:`Gaussian` event, whose sensitivity is an L2 norm.

    Raises:
        Refusal: If the sensitivity is infinite.
    """
    if math.isinf(read.sensitivity):
        raise Refusal(f"{read.name}: no noise covers a sensitivity of {read.sensitivity}")
    std = read.scale

    def draw(value: Tensor, noise: NoiseSource) -> Tensor:
        draws = noise.normal(tuple(value.shape), std, dtype=torch.float64, device=value.device)
        dtype = value.dtype if value.is_floating_point() else torch.float64
        return (value.double() + draws).to(dtype)

    return draw


def integer_noise(
    read: LedgerEntry, *, scales: Tensor | None = None, epsilon: float | None = None
) -> Callable[[Tensor, NoiseSource], Tensor]:
    r"""Law that adds integer noise with :math:`P(k) \propto e^{-|k| \epsilon / \Delta}` to each element.

    Its event is ``Pure``: at sensitivity 1 its privacy loss is that of randomized response, the
    worst of all epsilon-DP mechanisms, and not the smaller one of continuous Laplace noise.

    Element i may have noise that is :math:`s_i` times as large, :math:`P(k) \propto e^{-|k| \epsilon /
    (s_i \Delta)}`. A change by :math:`t_i` of each element then changes no probability by more than
    a factor :math:`e^{\epsilon \sum_i |t_i| / (s_i \Delta)}`.

    Where the sensitivity or the scales of a later read rest on this one, and are too small for the
    graph with the probability delta, its event is ``Approximate``: delta is booked here, where it is
    decided, and not with the read that then fails.

    Args:
        read: Read whose sensitivity :math:`\Delta` is an integer, the largest L1 change of the value
            between neighbors, each element divided by its scale. It is public or a function of
            earlier reads. An infinite epsilon adds no noise and protects nothing.
        scales: Positive integers :math:`s_i` of the shape of the value, public or functions of
            earlier reads; None is 1 for all.
        epsilon: Epsilon of the noise, if the value is computed from a secret sample of the records,
            so the read costs less; its proof derives this smaller cost.

    Raises:
        Refusal: If the noise cannot be drawn.
    """
    cost = read.event.pure_epsilon
    if not cost > 0 or read.sensitivity <= 0 or read.sensitivity % 1:  # infinity has no remainder
        raise Refusal(
            f"epsilon and sensitivity must be positive, the latter an integer: {cost}, "
            f"{read.sensitivity}"
        )
    if math.isinf(cost):
        return lambda value, noise: value.clone()
    own = cost if epsilon is None else epsilon
    if not 0 < own < math.inf:  # no sample of the records makes up for missing noise
        raise Refusal(f"the epsilon of noise must be positive and finite, got {own}")
    rate = integer_rate(own, int(read.sensitivity))
    smallest = rate if scales is None else rate // int(scales.max()) if scales.numel() else rate
    if smallest <= 0:
        raise Refusal(f"epsilon {own:g} is too small for integer noise")

    def draw(value: Tensor, noise: NoiseSource) -> Tensor:
        rates = np.full(value.numel(), rate, dtype=np.int64)
        if scales is not None:
            rates //= scales.flatten().numpy()
        return value + torch.from_numpy(_draw_discrete_laplace(noise, rates)).view_as(value)

    return draw


def integer_rate(epsilon: float, sensitivity: int) -> int:
    """Rate of integer noise in units of :math:`2^{-40}`, rounded down, which only adds noise.

    Args:
        epsilon: Cost of the noise, positive and finite.
        sensitivity: Sensitivity of what is noised.
    """
    return min(int(min(epsilon, _MOST_EPSILON) * RATE_DENOMINATOR) // sensitivity, 2**62)


def randomized_response(
    read: LedgerEntry, num_bits: int, thinning: float = 1.0
) -> Callable[[Tensor, NoiseSource], Tensor]:
    r"""Law that reports which of ``num_bits`` bits are 1, each one flipped at random.

    A 1 is reported with probability :math:`s e^\epsilon / (1 + e^\epsilon)` and a 0 with
    :math:`s / (1 + e^\epsilon)`, independently. That is Warner's randomized response followed by
    keeping each reported bit with the probability s, without the reports that are not kept: the
    number of false ones is drawn from its binomial law and then placed, in memory for the ones.
    The places are exact; the rates are rounded to double precision, and the number follows NumPy's
    binomial law in floating point, so the guarantee is that of the law in real numbers. Of a
    report that is nearly certain, the small probability of no report is drawn: the difference of a
    large one and 1 would have lost its digits, and from epsilon 37 on all of them.

    The private value holds the numbers of the bits that are 1, shape ``(M,)``, ascending and
    different. The released one holds those of the reported bits, shape ``(K,)``, ascending.

    Args:
        read: Read whose proof says that neighbors differ in one bit; an infinite epsilon flips
            nothing and protects nothing.
        num_bits: Number of bits (public).
        thinning: Probability s that a reported bit is kept, a function of public values.

    Raises:
        Refusal: If an argument is out of range.
    """
    epsilon = read.event.pure_epsilon
    if not epsilon > 0 or read.sensitivity != 1 or not 0 <= thinning <= 1:
        raise Refusal(
            "epsilon must be positive, the sensitivity 1, thinning in [0, 1]: "
            f"{epsilon}, {read.sensitivity}, {thinning}"
        )
    true_rate, false_rate = response_rates(epsilon, thinning)

    def draw(present: Tensor, noise: NoiseSource) -> Tensor:
        ones = present[_likely(noise, len(present), true_rate, _missing_rate(epsilon, thinning))]
        # The r-th of the zeros has as many ones before it as ones have at most r zeros before them.
        zeros = noise.bernoulli(num_bits - len(present), false_rate)
        zeros += torch.searchsorted(present - torch.arange(len(present)), zeros, right=True)
        return torch.cat([ones, zeros]).sort().values

    return draw


def response_rates(epsilon: float, thinning: float = 1.0) -> tuple[float, float]:
    """Probabilities that randomized response reports a 1 and a 0."""
    flip = 1 / (1 + math.exp(min(epsilon, 700.0))) if math.isfinite(epsilon) else 0.0
    return thinning * (1 - flip), thinning * flip


def _missing_rate(epsilon: float, thinning: float) -> float:
    """Probability that randomized response does not report a 1, with all its digits."""
    return (1 - thinning) + response_rates(epsilon, thinning)[1]


def _likely(noise: NoiseSource, n: int, p: float, rest: float) -> Tensor:
    """Indices out of ``range(n)``, each with probability p, whose difference from 1 is ``rest``."""
    if p <= rest:
        return noise.bernoulli(n, p)
    is_chosen = torch.ones(n, dtype=torch.bool)
    is_chosen[noise.bernoulli(n, rest)] = False
    return is_chosen.nonzero().flatten()


def _draw_discrete_laplace(noise: NoiseSource, rates: NDArray[np.int64]) -> NDArray[np.int64]:
    """Integers decaying as exp(-rate / 2**40) per unit, from fair integers alone, one for each rate.

    Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, Algorithm 2.
    No logarithm is taken and nothing is rounded, so the law is exact.
    """
    values = np.zeros(len(rates), dtype=np.int64)
    missing = np.arange(len(rates))
    while len(missing):
        # remainder + denominator * quotient is geometric with ratio exp(-1 / denominator)
        remainder = noise.integers(RATE_DENOMINATOR, len(missing))
        negative = noise.integers(2, len(missing)) == 1
        fits = coins_exp(noise, remainder)
        quotient = np.zeros(len(missing), dtype=np.int64)
        going = np.flatnonzero(fits)
        while len(going):
            going = going[coins_exp(noise, np.full(len(going), RATE_DENOMINATOR))]
            quotient[going] += 1
        magnitude = (remainder + RATE_DENOMINATOR * quotient) // rates[missing]
        fits &= ~(negative & (magnitude == 0))  # zero would otherwise have twice its probability
        values[missing[fits]] = np.where(negative, -magnitude, magnitude)[fits]
        missing = missing[~fits]
    return values


def coins_exp(noise: NoiseSource, numerators: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Flip coins that are true with probability exp(-numerator / 2**40), numerators up to 2**40.

    Algorithm 1 of Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020:
    the first failure of coins with probabilities exponent / k has an odd k with exactly that
    probability.
    """
    heads = np.zeros(len(numerators), dtype=bool)
    going = np.arange(len(numerators))
    k = 1
    while len(going):
        succeeds = noise.integers(RATE_DENOMINATOR * k, len(going)) < numerators[going]
        heads[going[~succeeds]] = k % 2 == 1
        going = going[succeeds]
        k += 1
    return heads
