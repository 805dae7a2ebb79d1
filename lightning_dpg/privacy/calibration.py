"""What is left of a budget, as the noise of Gaussian releases that spend all of it."""

import math

from lightning_dpg.privacy.accounting import smallest
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.ledger import PrivacyLedger

_LARGEST = 1e12
# The solved noise is a little too large rather than the last digit too small.
_SLACK = 1 + 1e-9


def remaining_noise_multiplier(ledger: PrivacyLedger) -> float:
    r"""Smallest noise multiplier of one Gaussian release that the ledger still affords.

    Several releases with the multipliers :math:`\sigma_i` cost as much as one with :math:`\sigma`
    where :math:`\sum_i \sigma_i^{-2} = \sigma^{-2}`, in Renyi DP and in Gaussian DP alike.

    Args:
        ledger: A ledger with a budget.

    Returns:
        Noise multiplier; 0 for an infinite budget.

    Raises:
        ValueError: If no amount of noise fits, or there is no budget.
    """
    if ledger.budget is None:
        raise ValueError("a ledger without a budget has no noise that spends it")
    if math.isinf(ledger.budget.epsilon):
        return 0.0

    def fits(sigma: float) -> bool:
        return ledger.affords(
            LedgerEntry(
                name="the rest",
                relation=ledger.relation,
                mechanism="gaussian",
                sensitivity=1.0,
                proof="none: it is not released",
                noise_multiplier=sigma,
            )
        )

    high = 1.0
    while not fits(high):
        high *= 2
        if high > _LARGEST:
            raise ValueError(f"no Gaussian noise fits what is left of {ledger.budget}")
    return smallest(fits, high, 1e-6) * _SLACK
