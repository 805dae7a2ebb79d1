"""DP-NetGAN as published (Zheng et al., 2021, Algorithm 1): one clip for all three terms."""

from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from lightning_dpg.papers.zheng2021.dp_netgan import EdgeGAN, table_rows
from lightning_dpg.papers.zheng2021.walk_lstm import WalkCritic
from lightning_dpg.privacy.dpsgd import ghost_clipped_gradient_sum
from lightning_dpg.privacy.events import Gaussian
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import secret_generator


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
        rows=table_rows(critic, tokens),
    )


def _bundle_losses(critic: WalkCritic, gp_weight: float, embedded: Tensor, mix: Tensor) -> Tensor:
    """Losses of shape ``(B,)`` of embedded real and fake edges of shape ``(B, 4, d)``."""
    real, fake = embedded.chunk(2, 1)
    points = torch.lerp(fake, real, mix)
    (slope,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
    norm = (slope.flatten(1).square().sum(1) + 1e-12).sqrt()
    losses: Tensor = critic(fake) - critic(real)
    return losses + gp_weight * (norm - 1).square()


class DPNetGANAsPublished(EdgeGAN):
    """DP-NetGAN by the published Algorithm 1: a GAN of edges.

    The sum of the critic's three terms, on one record and one fake, is clipped per example.

    With an infinite budget nothing is clipped or noised: the paper's row for epsilon = inf.

    When to use:
        To reproduce the paper. :class:`DPNetGAN` uses the same budget better; for links and for the
        shape of a graph other methods are better than both, see there.

    Privacy:
        (epsilon, delta)-DP at the level of edges (one undirected edge is added or removed), because
        an edge is one record here. The exact number of edges is assumed public, as in the paper,
        and the set of nodes is public.

    Cost:
        As :class:`DPNetGAN`, but second derivatives are clipped per example, which takes more time
        and memory in each private step.

    Differences from the paper:
        What the paper claims and does not hold: it counts each edge as two records, drawn half as
        often, and states the cost of one of them. The run reports the epsilon of that count beside
        its own. The paper's largest component and early stopping on private edges are reads without
        payment, and are no part of this class; the run stops before the budget is exceeded.

    * Zheng et al., "Network Generation with Differential Privacy", 2021, Algorithm 1.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        noise_multiplier: Noise scale sigma relative to ``max_grad_norm``; ``auto`` solves it from
            the budget and the number of steps of the run.
        max_grad_norm: Clipping norm C of one example's gradient.
        sample_rate: Probability q that a batch contains a record.
        num_edges: Public number of training edges; None takes the exact one.
        frozen_embedding: Keep the critic's table as a public random projection.
        latent_dim: Width of the latent vector.
        generator_dim: Hidden width of the generator.
        critic_dim: Hidden width of the critic.
        embedding_dim: Width d of both embedding tables.
        batch_size: Generated edges per step of the generator.
        n_critic: Critic steps per generator step.
        gp_weight: Weight lambda of the gradient penalty.
        generator_lr: Learning rate of the generator.
        critic_lr: Learning rate of the critic.
        temperature: First temperature of the Gumbel softmax.
        min_temperature: Last temperature.
        temperature_decay: Factor per critic step.
        num_samples: Edges drawn to assemble one graph; at least ten for each edge of it are drawn.
    """

    def __init__(
        self,
        num_nodes: int | None = None,
        noise_multiplier: float | Literal["auto"] = "auto",
        max_grad_norm: float = 1.0,
        sample_rate: float = 0.1,
        num_edges: int | None = None,
        frozen_embedding: bool = True,
        latent_dim: int = 16,
        generator_dim: int = 40,
        critic_dim: int = 30,
        embedding_dim: int = 128,
        batch_size: int = 256,
        n_critic: int = 2,
        gp_weight: float = 10.0,
        generator_lr: float = 2e-3,
        critic_lr: float = 5e-3,
        temperature: float = 3.0,
        min_temperature: float = 0.5,
        temperature_decay: float = 0.9988,
        num_samples: int = 400_000,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self._build_private()

    def on_fit_start(self) -> None:
        """Fix the noise of the steps, and read the number of edges."""
        super().on_fit_start()
        exact = len(self.records.edges)
        self.assumptions.append("the exact number of edges, as the paper takes it")
        self.dpsgd.begin(self)
        if self.dpsgd.adds_none:
            self._start_without_noise("no noise is added")
            return
        setting = self.hparams["num_edges"]
        self.num_edges.fill_(exact if setting is None else setting)

    def claimed_epsilon(self, delta: float) -> float | None:
        """Epsilon of the paper: each edge counted as two records, drawn half as often."""
        if not self.ledger.steps:
            return None
        entry, claimed = self.dpsgd.entry, PrivacyLedger(self.relation)
        halved = Gaussian(float(self.dpsgd.noise_multiplier), self.dpsgd.sample_rate / 2)
        claimed.spend(replace(entry, event=halved, steps=self.ledger.steps))
        return claimed.headline(delta)[0]

    def clipped_sum(self, real: Tensor, max_grad_norm: float) -> dict[str, Tensor]:
        """Sum of clipped gradients of all three terms, one fake per real edge."""
        local, weight = secret_generator(), self.hparams["gp_weight"]
        fakes = self._fakes(max(1, len(real)), local)[: len(real)]
        mix = torch.rand(len(real), 1, 1, generator=local).to(self.device)
        return bundle_sum(self.critic, real, fakes, mix, weight, max_grad_norm)
