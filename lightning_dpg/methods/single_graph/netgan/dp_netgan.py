"""DP-NetGAN: an edge-list GAN whose critic is trained with DP-SGD (Zheng et al., 2021)."""

import math
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from lightning_dpg.methods.advice import link_hint
from lightning_dpg.methods.single_graph.netgan.base import WalkGAN
from lightning_dpg.methods.single_graph.netgan.count_plan import (
    check_counts,
    count_entries,
    step_entry,
)
from lightning_dpg.privacy.accounting import gaussian_sigma, noise_multiplier_for
from lightning_dpg.privacy.dpsgd import DPSGD, ClippedSum, Rows
from lightning_dpg.privacy.ghost import ghost_clipped_gradient_sum
from lightning_dpg.privacy.ledger import Budget, LedgerEntry, PrivacyLedger
from lightning_dpg.privacy.mechanisms import discrete_laplace, gaussian
from lightning_dpg.privacy.sampling import PoissonBatch
from lightning_dpg.privacy.sensitivity import degree_sensitivity, edge_count_sensitivity


class DPNetGAN(WalkGAN):
    r"""Edge-list GAN whose critic is trained with DP-SGD (Zheng et al., 2021, Algorithm 1).

    A walk has two tokens: it is an edge. One undirected edge is one record, drawn with Poisson
    sampling; its orientation is a coin at draw time. The generator learns from the critic alone, so
    everything it gives is post-processing.

    ``mode: corrected`` clips and noises only the term that reads a record,
    :math:`-\nabla_w D(x_e)`. Fakes and the gradient penalty read none and are free; fakes are clipped
    to the same norm, which keeps both sides of the objective in balance. The critic reads a frozen
    public random projection, so that noise falls on its few other weights. The number of edges is
    released with discrete Laplace noise, and degrees, where ``degree_share`` asks for them, with
    Gaussian noise.

    ``mode: paper`` clips the sum of all three terms per example, as printed. It takes the exact
    number of edges for public, and claims the epsilon of counting each edge as two records.

    With an infinite budget nothing is clipped or noised: the paper's row for epsilon = inf.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        mode: ``corrected`` or ``paper``.
        noise_multiplier: Noise scale sigma relative to ``max_grad_norm``; ``auto`` solves it from
            the budget and the number of steps of the run.
        max_grad_norm: Clipping norm C of one record's gradient.
        num_edges: Public number of training edges; None releases a noisy one.
        count_epsilon: Cost of the noisy number of edges.
        degree_share: Share of the budget (of its zCDP parameter) that buys noisy degrees, from
            which the generator starts; 0 buys none.
        frozen_embedding: Keep the critic's table as a public random projection.
        latent_dim: Width of the latent vector.
        generator_dim: Hidden width of the generator.
        critic_dim: Hidden width of the critic.
        embedding_dim: Width d of both embedding tables.
        batch_size: Generated edges per step.
        n_critic: Critic steps per generator step.
        gp_weight: Weight lambda of the gradient penalty.
        generator_lr: Learning rate of the generator.
        critic_lr: Learning rate of the critic.
        temperature: First temperature of the Gumbel softmax.
        min_temperature: Last temperature.
        temperature_decay: Factor per critic step.
        num_samples: Edges drawn to assemble one graph; at least ten for each edge of it are drawn.
    """

    batches: ClassVar[Literal["edges", "walks", "any"]] = "edges"

    def __init__(
        self,
        num_nodes: int | None = None,
        mode: Literal["corrected", "paper"] = "corrected",
        noise_multiplier: float | Literal["auto"] = "auto",
        max_grad_norm: float = 1.0,
        num_edges: int | None = None,
        count_epsilon: float = 0.05,
        degree_share: float = 0.0,
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
        if mode not in ("corrected", "paper"):
            raise ValueError(f"mode must be 'corrected' or 'paper', got {mode!r}")
        if not 0 <= degree_share < 1:
            raise ValueError(f"degree_share must be in [0, 1), got {degree_share}")
        if noise_multiplier != "auto" and not noise_multiplier >= 0:
            raise ValueError(f"noise_multiplier must be auto, or 0 or more, got {noise_multiplier}")
        if not (max_grad_norm > 0 and count_epsilon > 0):
            raise ValueError(
                "max_grad_norm and count_epsilon must be positive, got "
                f"{max_grad_norm} and {count_epsilon}"
            )
        self._build(2, frozen=frozen_embedding)
        self.noise_multiplier: Tensor
        self.register_buffer("noise_multiplier", torch.tensor(float("nan"), dtype=torch.float64))
        self.sample_rate = float("nan")
        self._local = torch.Generator()
        self._local.seed()

    def on_fit_start(self) -> None:
        """Settle the noise multiplier, then release the number of edges (and degrees)."""
        super().on_fit_start()
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        self.sample_rate = data.sample_rate
        if self.hparams["mode"] == "paper":
            self.assumptions.append("The exact number of edges is public, as the paper takes it.")
        elif self.hparams["num_edges"] is not None:
            self.assumptions.append("The number of edges in the configuration is public.")
        budget, sigma = self.ledger.budget, self.hparams["noise_multiplier"]
        if sigma == "auto" and budget is None:
            raise MisconfigurationException(
                "noise_multiplier: auto needs a budget: give the privacy section, "
                "or a number as noise_multiplier"
            )
        if sigma == "auto" and budget is not None and math.isinf(budget.epsilon):
            sigma = 0.0
        if sigma == 0:
            self._start_without_noise(len(data.edges))
            return
        is_new = not self.ledger.entries  # what a resumed run has released is in its checkpoint
        planned = count_entries(self.hparams, budget) if is_new else []
        if sigma != "auto":
            self.noise_multiplier.fill_(sigma)
        elif budget is not None and self.noise_multiplier.isnan():
            steps, other = self.planned_steps(), self.ledger.rdp(*planned)
            self.noise_multiplier.fill_(
                noise_multiplier_for(*budget, self.sample_rate, steps, other)
            )
        if is_new:
            if self.hparams["noise_multiplier"] != "auto":  # check_budget has, before
                check_counts(self.hparams, budget, float(self.noise_multiplier), self.sample_rate)
            self._release_counts(data.edges)
        if self.hparams["num_edges"] is not None:
            self.num_edges.fill_(self.hparams["num_edges"])

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Also refuse one that the counts leave nothing of, whatever the noise of the training."""
        super().check_budget(budget, steps)
        if self.hparams["noise_multiplier"] == "auto" and math.isfinite(budget.epsilon):
            check_counts(self.hparams, budget)

    def _start_without_noise(self, num_edges: int) -> None:
        """Book that nothing is protected, which a finite budget refuses."""
        if not self.ledger.reasons:
            self.ledger.spend(self.unprotected("training", "no noise is added"))
        self.noise_multiplier.fill_(0.0)
        self.num_edges.fill_(num_edges)

    def _release_counts(self, edges: Tensor) -> None:
        """Settle the number of edges and the degrees of records of shape ``(M, 2)`` (private)."""
        if self.hparams["mode"] == "paper":
            self.num_edges.fill_(len(edges))
        elif self.hparams["num_edges"] is None:
            self._release_num_edges(len(edges))
        if self.hparams["degree_share"]:
            self._release_degrees(edges)

    def _release_num_edges(self, num_edges: int) -> None:
        noisy = discrete_laplace(
            torch.tensor(num_edges),
            self.ledger,
            self.noise,
            key="num_edges",
            name="number of edges",
            epsilon=self.hparams["count_epsilon"],
            sensitivity=edge_count_sensitivity(),
            proof="edge_count_sensitivity",
        )
        num_pairs = math.comb(self.hparams["num_nodes"], 2)
        self.num_edges.fill_(min(max(1, int(noisy)), num_pairs))

    def _release_degrees(self, edges: Tensor) -> None:
        """Noisy degrees as the generator's prior: it starts from independent ends of edges."""
        noisy = gaussian(
            torch.bincount(edges.flatten(), minlength=self.hparams["num_nodes"]).double(),
            self.ledger,
            self.noise,
            key="degrees",
            name="degrees",
            sensitivity=degree_sensitivity(),
            noise_multiplier=gaussian_sigma(*self.budget) / self.hparams["degree_share"] ** 0.5,
            proof="degree_sensitivity",
        )
        log_degree = noisy.clamp(min=0.5).log()
        self.generator.prior.copy_(log_degree - log_degree.mean())

    def step_entries(self) -> list[LedgerEntry]:
        """One sampled Gaussian per critic step; nothing without noise."""
        sigma = float(self.noise_multiplier)
        return [] if sigma == 0 else [step_entry(self.hparams, sigma, self.sample_rate)]

    def claimed_epsilon(self, delta: float) -> float | None:
        """What the paper would print: each edge counted as two records, drawn half as often."""
        if self.hparams["mode"] != "paper" or not self.ledger.steps:
            return None
        claimed = PrivacyLedger(self.relation)
        claimed.spend(
            replace(
                self.step_entries()[0], sample_rate=self.sample_rate / 2, steps=self.ledger.steps
            )
        )
        return claimed.epsilon(delta)

    def training_step(self, batch: PoissonBatch, batch_idx: int) -> None:
        """One private critic step; a generator step after every ``n_critic`` of them.

        Args:
            batch: Poisson sample of records of shape ``(B, 2)``, B may be 0.
            batch_idx: Number of the batch.
        """
        if batch.sample_rate != self.sample_rate:
            raise ValueError(f"batch drawn at {batch.sample_rate}, booked at {self.sample_rate}")
        # Counts of draws that depend on the batch would move the public stream of seed_everything.
        flip = torch.rand(len(batch.data), 1, generator=self._local).to(self.device) < 0.5
        self._step(torch.where(flip, batch.data.flip(1), batch.data))

    def _critic_backward(self, real: Tensor) -> None:
        """Gradient of the critic on real edges of shape ``(B, 2)``, each in a random direction."""
        if float(self.noise_multiplier) == 0:
            super()._critic_backward(real)
        elif self.hparams["mode"] == "paper":
            self._private_backward(partial(self._bundle_sum, real))
        else:
            self._private_backward(partial(self._score_sum, real, sign=-1.0))
            self._public_terms()

    def _private_backward(self, clipped_sum: ClippedSum) -> None:
        """Clipped, noised and booked gradient of a sum over records."""
        DPSGD(float(self.noise_multiplier), self.hparams["max_grad_norm"]).backward(
            clipped_sum,
            self._clipped_parameters,
            ledger=self.ledger,
            entry=self.step_entries()[0],
            noise=self.noise,
            expected_size=self.sample_rate * int(self.num_edges),
        )

    def _public_terms(self) -> None:
        """Gradient of the two terms that read no record: fakes and penalty."""
        count, parameters = self._share, self._clipped_parameters
        fakes = self._fakes(count)
        total = self._score_sum(fakes, self.hparams["max_grad_norm"])
        gradients = [total[name] / count for name in parameters]
        self.public_gradient(list(parameters.values()), gradients)
        uniform = torch.randint(self.hparams["num_nodes"], (count, 2), device=self.device)
        mix = torch.rand(count, 1, 1, device=self.device)
        penalty = self._penalty(
            torch.lerp(self.critic.embed(fakes), self.critic.embed(uniform), mix)
        )
        self.public_backward(penalty, list(self._lstm_parameters.values()))
        self.log("train/gradient_penalty", penalty.detach(), batch_size=1)

    def _score_sum(
        self, tokens: Tensor, max_grad_norm: float, *, sign: float = 1.0
    ) -> dict[str, Tensor]:
        """Sum of clipped gradients of the scores of edges of shape ``(B, 2)``."""
        return ghost_clipped_gradient_sum(
            self.critic,
            lambda embedded: sign * self.critic(embedded),
            self.critic.embed(tokens),
            max_grad_norm,
            rows=self._rows(tokens),
        )

    def _bundle_sum(self, real: Tensor, max_grad_norm: float) -> dict[str, Tensor]:
        """Sum of clipped gradients of all three terms, one fake per real edge (Algorithm 1)."""
        fakes = self._fakes(max(1, len(real)), self._local)[: len(real)]
        tokens = torch.cat([real, fakes], 1)
        mix = torch.rand(len(real), 1, 1, generator=self._local).to(self.device)
        return ghost_clipped_gradient_sum(
            self.critic,
            self._bundle_losses,
            self.critic.embed(tokens),
            max_grad_norm,
            others=(mix,),
            rows=self._rows(tokens),
        )

    def _bundle_losses(self, embedded: Tensor, mix: Tensor) -> Tensor:
        """Losses of shape ``(B,)`` of embedded real and fake edges of shape ``(B, 4, d)``."""
        real, fake = embedded.chunk(2, 1)
        points = torch.lerp(fake, real, mix)
        (slope,) = torch.autograd.grad(self.critic(points).sum(), points, create_graph=True)
        norm = (slope.flatten(1).square().sum(1) + 1e-12).sqrt()
        losses: Tensor = self.critic(fake) - self.critic(real)
        return losses + self.hparams["gp_weight"] * (norm - 1).square()

    def _rows(self, tokens: Tensor) -> Rows | None:
        """The table's rows as parameters, unless it is frozen."""
        table = self.critic.table
        return Rows(table, tokens) if isinstance(table, nn.Parameter) else None

    @property
    def _clipped_parameters(self) -> dict[str, nn.Parameter]:
        """All parameters of the critic by the names of a clipped sum."""
        table = self.critic.table
        rows = {"rows": table} if isinstance(table, nn.Parameter) else {}
        return self._lstm_parameters | rows

    @property
    def _lstm_parameters(self) -> dict[str, nn.Parameter]:
        """The critic's parameters without its table, whose rows are dealt with apart."""
        return {name: p for name, p in self.critic.named_parameters() if name != "table"}

    def advice(self, epsilon: float) -> str | None:
        """Simpler methods that are known to do better at ``epsilon``, in one line."""
        if epsilon > 100:
            return None
        hint = link_hint(epsilon, self.hparams["num_nodes"])
        return f"{hint}; a DP-SGD GAN on one graph is behind these"
