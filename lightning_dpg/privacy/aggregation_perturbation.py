"""Noisy sums of neighbors' rows, hop by hop: released once, with free later reads."""

import torch
from torch import Tensor

from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.mechanisms import gaussian
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity import aggregation_sensitivity


def aggregate(edges: Tensor, rows: Tensor) -> Tensor:
    """Sum of the rows of each node's neighbors, A X (private).

    Args:
        edges: Undirected edges of shape ``(M, 2)``, each once.
        rows: Rows X of shape ``(N, d)``.

    Returns:
        Sums of shape ``(N, d)``.
    """
    sums = torch.zeros_like(rows)
    sums.index_add_(0, edges[:, 0], rows[edges[:, 1]])
    return sums.index_add_(0, edges[:, 1], rows[edges[:, 0]])


def noisy_aggregation(
    edges: Tensor,
    features: Tensor,
    hops: int,
    ledger: PrivacyLedger,
    noise: NoiseSource,
    *,
    noise_multiplier: float,
) -> Tensor:
    r"""Release :math:`H_1 = A X + N` and :math:`H_k = A\,\mathrm{norm}(H_{k-1}) + N` (noisy).

    Rows are scaled to norm 1 after the noise and before the next hop, never before the noise.
    Sajadmanesh et al., "GAP: Differentially private graph neural networks with aggregation
    perturbation", 2023, Algorithm 1.

    Args:
        edges: Undirected edges of shape ``(M, 2)``, each once (private).
        features: Public rows X of shape ``(N, d)``; longer ones are scaled to norm 1.
        hops: Number of hops; each is a release of its own.
        ledger: Ledger that pays for each hop.
        noise: Secret source of the noise.
        noise_multiplier: Standard deviation of the noise over the sensitivity.

    Returns:
        All hops side by side, shape ``(N, hops * d)``.
    """
    rows = features.double()
    rows = rows / rows.norm(dim=1, keepdim=True).clamp(min=1)
    released = []
    for hop in range(1, hops + 1):
        noisy = gaussian(
            aggregate(edges, rows),
            ledger,
            noise,
            key=f"neighbor_sums_{hop}",
            name=f"sums over neighbors, hop {hop}",
            sensitivity=aggregation_sensitivity(),
            noise_multiplier=noise_multiplier,
            proof="aggregation_sensitivity",
        )
        released.append(noisy)
        rows = torch.nn.functional.normalize(noisy)
    return torch.cat(released, 1).to(features.dtype)
