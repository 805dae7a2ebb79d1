"""Mechanisms: a private value in, a noisy one out, paid for before the noise is drawn."""

from fractions import Fraction

import torch
from torch import Tensor

from lightning_dpg.privacy.ledger import LedgerEntry, PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource


def gaussian(
    value: Tensor,
    ledger: PrivacyLedger,
    noise: NoiseSource,
    *,
    name: str,
    sensitivity: float,
    noise_multiplier: float,
    proof: str,
    record: str = "undirected edge",
) -> Tensor:
    """Add independent normal noise to each element (noisy).

    Args:
        value: What to release, of any shape (private).
        ledger: Pays for the release.
        noise: Secret source of the noise.
        name: Name of the release in the ledger.
        sensitivity: Largest L2 change of ``value`` between neighbours.
        noise_multiplier: Standard deviation of the noise over the sensitivity.
        proof: Where the sensitivity is proved.
        record: What is one record.

    Returns:
        Noisy value of the same shape; of the same type if that is a floating-point one.
    """
    ledger.spend(
        LedgerEntry(
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
    return (value.double() + draws).to(dtype)


def discrete_laplace(
    value: int,
    ledger: PrivacyLedger,
    noise: NoiseSource,
    *,
    name: str,
    epsilon: float,
    sensitivity: int = 1,
    proof: str,
    record: str = "undirected edge",
) -> int:
    r"""Add integer noise with :math:`P(k) \propto e^{-|k| \epsilon / \Delta}` (noisy).

    It is booked as ``pure``: at sensitivity 1 its privacy loss is that of randomized response, the
    worst of all epsilon-DP mechanisms, and not the smaller one of continuous Laplace noise.

    Args:
        value: Count to release (private).
        ledger: Pays for the release.
        noise: Secret source of the noise.
        name: Name of the release in the ledger.
        epsilon: Cost, positive and finite.
        sensitivity: Largest change of ``value`` between neighbours.
        proof: Where the sensitivity is proved.
        record: What is one record.
    """
    rate = Fraction(epsilon) / sensitivity
    if rate <= 0:
        raise ValueError(f"epsilon and sensitivity must be positive: {epsilon}, {sensitivity}")
    ledger.spend(
        LedgerEntry(
            name=name,
            relation=ledger.relation,
            mechanism="pure",
            sensitivity=sensitivity,
            epsilon=epsilon,
            proof=proof,
            record=record,
        )
    )
    return value + _draw_discrete_laplace(noise, rate)


def _draw_discrete_laplace(noise: NoiseSource, rate: Fraction) -> int:
    """Integer noise decaying as exp(-rate) per unit, from fair integers alone.

    Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020, Algorithm 2.
    No logarithm is taken and nothing is rounded, so that the law is exact.
    """
    numerator, denominator = rate.numerator, rate.denominator
    while True:
        # remainder + denominator * quotient is geometric with ratio exp(-1 / denominator)
        remainder = noise.integers(denominator)
        if not _coin_exp(noise, Fraction(remainder, denominator)):
            continue
        quotient = 0
        while _coin_exp(noise, Fraction(1)):
            quotient += 1
        magnitude = (remainder + denominator * quotient) // numerator
        negative = noise.integers(2) == 1
        if negative and magnitude == 0:
            continue  # zero would come up twice as often as it should
        return -magnitude if negative else magnitude


def _coin_exp(noise: NoiseSource, exponent: Fraction) -> bool:
    """True with probability exp(-exponent), for an exponent of at most 1.

    Algorithm 1 of the same paper: the first failure of coins with probabilities exponent / k comes
    at an odd k with exactly that probability.
    """
    k = 1
    while noise.integers(exponent.denominator * k) < exponent.numerator:
        k += 1
    return k % 2 == 1
