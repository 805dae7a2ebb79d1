"""Noisy sums of neighbors' rows, hop by hop: released once, with free later reads."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import pay
from lightning_dpg.privacy.sensitivity.neighbor_sums import aggregation_sensitivity


def aggregation_entries(
    hops: int, noise_multiplier: float, relation: Relation
) -> list[LedgerEntry]:
    """Entries of :func:`noisy_aggregation`, one for each hop, all with the same noise."""
    return [
        LedgerEntry.proved(
            f"neighbor_sums_{hop}",
            f"sums over neighbors, hop {hop}",
            Gaussian(noise_multiplier),
            aggregation_sensitivity,
            relation=relation,
        )
        for hop in range(1, hops + 1)
    ]


def noisy_aggregation(
    neighbor_sums: Callable[[Tensor], Tensor],
    features: Tensor,
    reads: Sequence[LedgerEntry],
    ledger: PrivacyLedger,
    noise: NoiseSource,
) -> Tensor:
    r"""Release :math:`H_1 = A X + N` and :math:`H_k = A\,\mathrm{norm}(H_{k-1}) + N` (noisy).

    Rows are scaled to norm 1 after the noise and before the next hop, never before the noise.
    Sajadmanesh et al., "GAP: Differentially private graph neural networks with aggregation
    perturbation", 2023, Algorithm 1.

    Args:
        neighbor_sums: Sum of the rows of each node's neighbors, A X, of rows X of shape ``(N, d)``
            (private).
        features: Public rows X of shape ``(N, d)``; longer ones are scaled to norm 1.
        reads: Entry of each hop, see :func:`aggregation_entries`.
        ledger: Ledger that pays for each hop.
        noise: Secret source of the noise.

    Returns:
        All hops side by side, shape ``(N, hops * d)``.
    """
    rows = features.double()
    rows = rows / rows.norm(dim=1, keepdim=True).clamp(min=1)
    released = []
    for read in reads:
        noisy = pay(read, neighbor_sums(rows), ledger, noise)
        released.append(noisy)
        rows = torch.nn.functional.normalize(noisy)
    return torch.cat(released, 1).to(features.dtype)
