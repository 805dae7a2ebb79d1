"""Mechanisms: noisy outputs of private values, paid for before the noise is drawn."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.ledger import LedgerEntry, PrivacyLedger, Relation
from lightning_dpg.privacy.noise import NoiseSource

# Rates of integer noise are rounded down to whole multiples of one over this: a power of two that
# leaves room for products in 64 bits.
RATE_DENOMINATOR = 2**40
_MOST_EPSILON = 1e290  # more would overflow, and adds no noise either


def gaussian(
    value: Tensor,
    ledger: PrivacyLedger,
    noise: NoiseSource,
    *,
    key: str,
    name: str,
    sensitivity: float,
    noise_multiplier: float,
    proof: str,
    record: str = "undirected edge",
) -> Tensor:
    """Add independent normal noise to each element (noisy).

    Args:
        value: Value to release, of any shape (private).
        ledger: Ledger that pays for the release.
        noise: Secret source of the noise.
        key: Name of the release for programs, which finds its ledger entry.
        name: Name of the release in the ledger.
        sensitivity: Largest L2 change of ``value`` between neighbors, finite; a value of
            sensitivity 0 is public, and released without noise.
        noise_multiplier: Standard deviation of the noise over the sensitivity.
        proof: Function whose docstring proves the sensitivity.
        record: Unit of protection in words.

    Returns:
        Noisy value of the same shape; of the same type if that is a floating-point one.
    """
    if not 0 <= sensitivity < math.inf:
        raise Refusal(f"{name}: no noise covers a sensitivity of {sensitivity}")
    ledger.spend(
        LedgerEntry(
            key=key,
            name=name,
            relation=ledger.relation,
            mechanism="gaussian",
            sensitivity=sensitivity,
            noise_multiplier=noise_multiplier,
            proof=proof,
            record=record,
        )
    )
    std = noise_multiplier * sensitivity
    draws = noise.normal(tuple(value.shape), std, dtype=torch.float64, device=value.device)
    dtype = value.dtype if value.is_floating_point() else torch.float64
    return ledger.publish(key, (value.double() + draws).to(dtype))


def discrete_laplace(
    value: Tensor,
    ledger: PrivacyLedger,
    noise: NoiseSource,
    *,
    key: str,
    name: str,
    epsilon: float,
    sensitivity: int = 1,
    scales: Tensor | None = None,
    delta: float = 0.0,
    cost: float | None = None,
    proof: str,
    record: str = "undirected edge",
) -> Tensor:
    r"""Add integer noise with :math:`P(k) \propto e^{-|k| \epsilon / \Delta}` to each element (noisy).

    It is booked as ``pure``: at sensitivity 1 its privacy loss is that of randomized response, the
    worst of all epsilon-DP mechanisms, and not the smaller one of continuous Laplace noise.

    Element i may have noise that is :math:`s_i` times as large, :math:`P(k) \propto e^{-|k| \epsilon /
    (s_i \Delta)}`. A change by :math:`t_i` of each element then changes no probability by more than
    a factor :math:`e^{\epsilon \sum_i |t_i| / (s_i \Delta)}`.

    Args:
        value: Integers to release, of any shape (private).
        ledger: Ledger that pays for the release.
        noise: Secret source of the noise.
        key: Name of the release for programs, which finds its ledger entry.
        name: Name of the release in the ledger.
        epsilon: Cost, positive; an infinite one adds no noise and protects nothing.
        sensitivity: Largest L1 change :math:`\Delta` of ``value`` between neighbors, each element
            divided by its scale. It is public or a function of earlier releases.
        scales: Positive integers :math:`s_i` of the shape of ``value``, public or functions of
            earlier releases; None is 1 for all.
        delta: Probability at most with which this value makes the sensitivity or the scales of a
            later release too small for this graph; 0 where no later one rests on it. It is booked
            here, where it is decided, and not with the release that then fails.
        cost: Booked cost in place of ``epsilon`` if ``value`` was computed from a secret sample of
            the records; ``proof`` then derives this smaller cost.
        proof: Function whose docstring proves the sensitivity.
        record: Unit of protection in words.

    Returns:
        Noisy integers of the same shape.
    """
    if not epsilon > 0 or sensitivity <= 0:
        raise Refusal(f"epsilon and sensitivity must be positive: {epsilon}, {sensitivity}")
    booked = epsilon if cost is None else cost
    if math.isinf(epsilon):  # no sample of the records makes up for missing noise
        spend_pure(ledger, key, name, epsilon, sensitivity, proof, record, delta)
        return ledger.publish(key, value.clone())
    rate = integer_rate(epsilon, sensitivity)
    rates = np.full(value.numel(), rate, dtype=np.int64)
    if scales is not None:
        rates //= scales.flatten().numpy()
    if rates.min(initial=rate) <= 0:
        raise Refusal(f"epsilon {epsilon:g} is too small for integer noise")
    spend_pure(ledger, key, name, booked, sensitivity, proof, record, delta)
    draws = torch.from_numpy(_draw_discrete_laplace(noise, rates))
    return ledger.publish(key, value + draws.view_as(value))


def integer_rate(epsilon: float, sensitivity: int) -> int:
    """Rate of integer noise in units of :math:`2^{-40}`, rounded down, which only adds noise.

    Args:
        epsilon: Cost of the noise, positive and finite.
        sensitivity: Sensitivity of what is noised.
    """
    return min(int(min(epsilon, _MOST_EPSILON) * RATE_DENOMINATOR) // sensitivity, 2**62)


def randomized_response(
    present: Tensor,
    num_bits: int,
    ledger: PrivacyLedger,
    noise: NoiseSource,
    *,
    key: str,
    name: str,
    epsilon: float,
    thinning: float = 1.0,
    proof: str,
    record: str = "undirected edge",
) -> Tensor:
    r"""Report which of ``num_bits`` bits are 1, each one flipped at random (noisy).

    A 1 is reported with probability :math:`s e^\epsilon / (1 + e^\epsilon)` and a 0 with
    :math:`s / (1 + e^\epsilon)`, independently. That is Warner's randomized response followed by
    keeping each reported bit with the probability s, without the reports that are not kept: the
    number of false ones is drawn from its binomial law and then placed, in memory for the ones.
    The places are exact; the rates are rounded to double precision, and the number follows NumPy's
    binomial law in floating point, so that the guarantee is that of the law in real numbers. Of a
    report that is nearly certain, the small probability of no report is drawn: the difference of a
    large one and 1 would have lost its digits, and from epsilon 37 on all of them.

    Args:
        present: Numbers of the bits that are 1, shape ``(M,)``, ascending and different (private).
        num_bits: Number of bits (public).
        ledger: Ledger that pays for the release.
        noise: Secret source of the flips.
        key: Name of the release for programs, which finds its ledger entry.
        name: Name of the release in the ledger.
        epsilon: Cost, positive; an infinite one flips nothing and protects nothing.
        thinning: Probability s that a reported bit is kept, a function of public values.
        proof: Function whose docstring proves that neighbors differ in one bit.
        record: Unit of protection in words.

    Returns:
        Numbers of the reported bits, shape ``(K,)``, ascending.
    """
    if not epsilon > 0 or not 0 <= thinning <= 1:
        raise Refusal(f"epsilon must be positive, thinning in [0, 1]: {epsilon}, {thinning}")
    spend_pure(ledger, key, name, epsilon, 1, proof, record)
    true_rate, false_rate = response_rates(epsilon, thinning)
    kept = present[_likely(noise, len(present), true_rate, _missing_rate(epsilon, thinning))]
    # The r-th of the zeros has as many ones before it as ones have at most r zeros before them.
    zeros = noise.bernoulli(num_bits - len(present), false_rate)
    zeros += torch.searchsorted(present - torch.arange(len(present)), zeros, right=True)
    return ledger.publish(key, torch.cat([kept, zeros]).sort().values)


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
    kept = torch.ones(n, dtype=torch.bool)
    kept[noise.bernoulli(n, rest)] = False
    return kept.nonzero().flatten()


def spend_pure(
    ledger: PrivacyLedger,
    key: str,
    name: str,
    epsilon: float,
    sensitivity: float,
    proof: str,
    record: str,
    delta: float = 0.0,
) -> None:
    """Book a release of pure epsilon, except for an event of probability ``delta``."""
    entry = pure_entry(
        key,
        name,
        epsilon,
        sensitivity,
        proof,
        relation=ledger.relation,
        record=record,
        delta=delta,
    )
    ledger.spend(entry)


def pure_entry(
    key: str,
    name: str,
    epsilon: float,
    sensitivity: float,
    proof: str,
    *,
    relation: Relation = Relation.EDGE,
    record: str = "undirected edge",
    delta: float = 0.0,
) -> LedgerEntry:
    """Entry of a release of pure epsilon, except for an event of probability ``delta``."""
    return LedgerEntry(
        key=key,
        name=name,
        relation=relation,
        mechanism="approximate" if delta else "pure",
        sensitivity=sensitivity,
        epsilon=epsilon,
        delta=delta,
        proof=proof,
        record=record,
    )


def _draw_discrete_laplace(noise: NoiseSource, rates: NDArray[np.int64]) -> NDArray[np.int64]:
    """Integers decaying as exp(-rate / 2**40) per unit, from fair integers alone, one for each rate.

    Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, Algorithm 2.
    No logarithm is taken and nothing is rounded, so that the law is exact.
    """
    drawn = np.zeros(len(rates), dtype=np.int64)
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
        drawn[missing[fits]] = np.where(negative, -magnitude, magnitude)[fits]
        missing = missing[~fits]
    return drawn


def coins_exp(noise: NoiseSource, numerators: NDArray[np.int64]) -> NDArray[np.bool_]:
    """True with probability exp(-numerator / 2**40) each, for numerators of at most 2**40.

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
