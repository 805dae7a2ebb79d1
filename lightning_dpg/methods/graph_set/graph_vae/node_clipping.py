"""The training step of Algorithm 1 of Yang et al., 2021, as published. Not private.

The decoder uses clipped and noised gradients of nodes, the encoder gradients without protection.
One edge changes the gradients of many nodes, each of which is clipped alone.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from lightning_dpg.graph.dense_batch import DenseBatch
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.nn.graph_vae import GCNEncoder, PairDecoder, kl_divergence, reparameterize
from lightning_dpg.privacy.dpsgd import DPSGD, ClippedSum
from lightning_dpg.privacy.ghost import ghost_clipped_gradient_sum
from lightning_dpg.privacy.ledger import LedgerEntry

STEPS = "gradient of nodes"
"""Name of the steps in the ledger."""


def step_entry(method: PrivateModule) -> LedgerEntry:
    """Build the ledger entry of a step, which states that nothing is protected."""
    return method.unprotected(
        STEPS,
        "one edge moves the gradients of many nodes, each of which is clipped alone, and "
        "networks without noise remember it",
    )


def claimed_epsilon(sample_rate: float, steps: int, sigma: float, delta: float) -> float:
    r"""Compute epsilon by the paper's formula: :math:`2 q \sqrt{T \log(1 / \delta)} / \sigma`."""
    return 2 * sample_rate * math.sqrt(steps * math.log(1 / delta)) / sigma


def node_step(
    method: PrivateModule,
    decoder: PairDecoder,
    clipped_sum: ClippedSum,
    *,
    noise_multiplier: float,
    max_grad_norm: float,
    expected_size: float,
) -> None:
    """Add the noised gradient of the decoder, a sum over nodes.

    Args:
        method: The method in training.
        decoder: Its decoder.
        clipped_sum: Sum of the nodes' clipped shares of the gradient.
        noise_multiplier: Noise over the clipping norm.
        max_grad_norm: Clipping norm C of one node's share.
        expected_size: Expected number of nodes in a step.
    """
    DPSGD(noise_multiplier, max_grad_norm).backward(
        clipped_sum,
        dict(decoder.named_parameters()),
        ledger=method.ledger,
        entry=step_entry(method),
        noise=method.noise,
        expected_size=expected_size,
    )


def node_sum(
    decoder: PairDecoder,
    blocks: DenseBatch,
    latent: Tensor,
    loss: Callable[[Tensor], Tensor],
    max_grad_norm: float,
) -> dict[str, Tensor]:
    """Sum the clipped shares of the nodes in the decoder's gradient.

    The share of node i is the gradient through its vector f(z_i): the shares add up to the
    gradient, also for a loss that is one number for a graph.

    Args:
        decoder: The network f.
        blocks: Places of the nodes.
        latent: Their latent vectors, shape ``(B, n, k)``.
        loss: Function of log odds of shape ``(B, n, n)``.
        max_grad_norm: Clipping norm C.
    """
    vectors = decoder(latent).detach().requires_grad_()
    (slopes,) = torch.autograd.grad(loss(vectors @ vectors.mT), vectors)
    return ghost_clipped_gradient_sum(
        decoder,
        lambda latent, slopes: (decoder(latent) * slopes).sum(-1),
        latent[blocks.mask],
        max_grad_norm,
        others=(slopes[blocks.mask],),
    )


def posterior(
    encoder: GCNEncoder, features: Tensor, adjacency: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Latent vectors of shape ``(B, n, k)``, with their means and log variances."""
    mean, log_variance = encoder(features, adjacency)
    return reparameterize(mean, log_variance, torch.randn_like(mean)), mean, log_variance


def encoder_loss(
    reconstruction: Tensor,
    mean: Tensor,
    log_variance: Tensor,
    blocks: DenseBatch,
    kl_weight: float,
) -> Tensor:
    """Loss of the encoder per node: of the reconstruction, and of the divergence."""
    divergence = kl_divergence(mean, log_variance)[blocks.mask].sum()
    return (reconstruction + kl_weight * divergence) / blocks.mask.sum()
