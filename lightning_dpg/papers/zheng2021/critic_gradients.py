"""Private steps of the critic of an edge-list GAN: their cost, and per-record gradients."""

from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from lightning_dpg.methods.private_training import PrivateTraining
from lightning_dpg.papers.zheng2021.walk_lstm import WalkCritic
from lightning_dpg.privacy.dpsgd import Rows, ghost_clipped_gradient_sum
from lightning_dpg.privacy.noise import secret_generator
from lightning_dpg.privacy.sensitivity.fitting import edge_gradient_sensitivity


def critic_training(
    noise_multiplier: float | Literal["auto"], max_grad_norm: float, sample_rate: float
) -> PrivateTraining:
    """Build the private steps of a critic, on Poisson samples of edges."""
    return PrivateTraining(
        "critic_gradient",
        "critic gradient",
        edge_gradient_sensitivity,
        noise_multiplier=noise_multiplier,
        max_grad_norm=max_grad_norm,
        sample_rate=sample_rate,
    )


def randomly_oriented(edges: Tensor) -> Tensor:
    """Edges of shape ``(B, 2)``, each in a random direction."""
    flip = torch.rand(len(edges), 1, generator=secret_generator()).to(edges.device) < 0.5
    return torch.where(flip, edges.flip(1), edges)


def clipped_parameters(critic: WalkCritic) -> dict[str, nn.Parameter]:
    """All parameters of a critic by the names of a clipped sum."""
    rows = {"rows": critic.table} if isinstance(critic.table, nn.Parameter) else {}
    return lstm_parameters(critic) | rows


def lstm_parameters(critic: WalkCritic) -> dict[str, nn.Parameter]:
    """The parameters without the table, whose rows are clipped as parts of an example."""
    return {name: p for name, p in critic.named_parameters() if name != "table"}


def score_sum(
    critic: WalkCritic, tokens: Tensor, max_grad_norm: float, *, sign: float = 1.0
) -> dict[str, Tensor]:
    """Sum of the clipped gradients of the scores of edges of shape ``(B, 2)``."""
    return ghost_clipped_gradient_sum(
        critic,
        lambda embedded: sign * critic(embedded),
        critic.embed(tokens),
        max_grad_norm,
        rows=_rows(critic, tokens),
    )


def bundle_sum(
    critic: WalkCritic,
    real: Tensor,
    fakes: Tensor,
    mix: Tensor,
    gp_weight: float,
    max_grad_norm: float,
) -> dict[str, Tensor]:
    """Sum of the clipped gradients of all three terms, as Algorithm 1 states it.

    Args:
        critic: The critic.
        real: Records of shape ``(B, 2)``.
        fakes: One generated edge for each of them, shape ``(B, 2)``.
        mix: Shares of the real edge in the point of the gradient penalty, shape ``(B, 1, 1)``.
        gp_weight: Weight lambda of the gradient penalty.
        max_grad_norm: Clipping norm C.
    """
    tokens = torch.cat([real, fakes], 1)
    return ghost_clipped_gradient_sum(
        critic,
        partial(_bundle_losses, critic, gp_weight),
        critic.embed(tokens),
        max_grad_norm,
        others=(mix,),
        rows=_rows(critic, tokens),
    )


def _bundle_losses(critic: WalkCritic, gp_weight: float, embedded: Tensor, mix: Tensor) -> Tensor:
    """Losses of shape ``(B,)`` of embedded real and fake edges of shape ``(B, 4, d)``."""
    real, fake = embedded.chunk(2, 1)
    points = torch.lerp(fake, real, mix)
    (slope,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
    norm = (slope.flatten(1).square().sum(1) + 1e-12).sqrt()
    losses: Tensor = critic(fake) - critic(real)
    return losses + gp_weight * (norm - 1).square()


def _rows(critic: WalkCritic, tokens: Tensor) -> Rows | None:
    """Rows of the table as parameters, or None if it is frozen."""
    return Rows(critic.table, tokens) if isinstance(critic.table, nn.Parameter) else None
