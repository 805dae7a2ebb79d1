"""DP-NetGAN: an edge-list GAN whose critic is trained with DP-SGD (Zheng et al., 2021)."""

import math
from functools import partial
from typing import ClassVar, Literal

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.advice import Facts, hint
from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.interfaces import BatchRequest
from lightning_dpg.methods.constraints import POSITIVE, Constraint, Constraints
from lightning_dpg.methods.planning import Reads, by_key
from lightning_dpg.methods.single_graph.base import noisy_num_edges, num_edges_entry, statistics_of
from lightning_dpg.papers.zheng2021.base import WalkGAN
from lightning_dpg.papers.zheng2021.critic_gradients import (
    clipped_parameters,
    critic_training,
    lstm_parameters,
    randomly_oriented,
    score_sum,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_gaussian
from lightning_dpg.privacy.events import Gaussian, LedgerEntry
from lightning_dpg.privacy.sampling import PoissonBatch
from lightning_dpg.privacy.sensitivity.degrees import degree_sensitivity


class DPNetGAN(WalkGAN):
    r"""GAN of edges whose critic is trained with DP-SGD, with a corrected proof (DP-NetGAN).

    A walk has two tokens: it is an edge. One undirected edge is one record, drawn with Poisson
    sampling, in a random orientation. The generator is trained through the critic only, so all its
    outputs are post-processing.

    Only the term that reads a record, :math:`-\nabla_w D(x_e)`, is clipped and noised. Fakes and
    the gradient penalty read no record and are free; fakes are clipped to the same norm, which
    balances both sides of the objective. The critic reads a frozen public random projection.
    Noise then affects its few other weights only. The number of edges is released with discrete
    Laplace noise, and degrees, with a positive ``degree_share``, with Gaussian noise.

    With an infinite budget nothing is clipped or noised: the paper's row for epsilon = inf.

    When to use:
        To study private GANs on graphs. Within a budget it learns degrees and no more. For links
        take :class:`RandomizedResponse`, :class:`PrivGraph` or :class:`ChungLu`, and for the shape
        of a graph :class:`BTER`. ``fit`` names the better method for links up to an epsilon of 100.

    Privacy:
        (epsilon, delta)-DP at the level of edges: one undirected edge is added or removed. The
        guarantee has no condition; the run stops before the budget is exceeded. The set of nodes is
        public, and so is ``num_edges`` if it is set.

    Cost:
        A private critic step grows with the expected number q M of drawn edges, and a generator
        step with ``batch_size`` times N. Drawing takes at least ten samples for each edge. Memory
        has one N x d table in each network, and there is no limit on N.

    Differences from the paper:
        The paper stores each edge in two directions, as two records, and pays for one of them.
        Here an undirected edge is one record. The paper uses the exact number of edges, the
        largest component and early stopping on private edges without paying, and stops after the
        budget is exceeded; here every read is booked and the run stops before. The gradient penalty
        acts on embedded walks and not on one-hot tokens, which trains faster.
        :class:`DPNetGANAsPublished` follows Algorithm 1.

    * Zheng et al., "Network Generation with Differential Privacy", 2021, Algorithm 1.
    * Bojchevski, Shchur, Zügner, Günnemann, "NetGAN: Generating Graphs via Random Walks", 2018.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        noise_multiplier: Noise scale sigma relative to ``max_grad_norm``; ``auto`` solves it from
            the budget and the number of steps of the run.
        max_grad_norm: Clipping norm C of one record's gradient.
        sample_rate: Probability q that a batch contains a record.
        num_edges: Public number of training edges; None releases a noisy one.
        count_epsilon: Cost of the noisy number of edges.
        degree_share: Share of the budget (of its zCDP parameter) for noisy degrees, which
            initialize the generator; 0 releases none.
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

    curve_names: ClassVar[tuple[str, ...]] = (*WalkGAN.curve_names, "train/gradient_penalty")
    constraints: ClassVar[Constraints] = {
        "count_epsilon": POSITIVE,
        "degree_share": Constraint("in [0, 1)", lambda share: 0 <= share < 1),
    }

    def __init__(
        self,
        num_nodes: int | None = None,
        noise_multiplier: float | Literal["auto"] = "auto",
        max_grad_norm: float = 1.0,
        sample_rate: float = 0.1,
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
        self._build(2, frozen=frozen_embedding)
        self.dpsgd = critic_training(noise_multiplier, max_grad_norm, sample_rate)

    def batch_request(self) -> BatchRequest:
        """Poisson samples of edges."""
        return BatchRequest("poisson", self.hparams["sample_rate"])

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the number of edges, the degrees, and the steps; without noise, unprotected."""
        if self.dpsgd.is_noiseless(budget):
            return [self.unprotected_training("no noise is added")]
        counts = self._counts(budget)
        return counts + self.dpsgd.planned(budget, steps, counts)

    def _counts(self, budget: Budget) -> list[LedgerEntry]:
        """Plan the number of edges and the degrees, as far as the settings ask for them."""
        share, counts = self.hparams["degree_share"], []
        if self.hparams["num_edges"] is None:
            counts.append(num_edges_entry(self.hparams["count_epsilon"]))
        if share:
            noise = Gaussian(calibrate_gaussian(budget) / share**0.5)
            counts.append(LedgerEntry.proved("degrees", "degrees", noise, degree_sensitivity))
        return counts

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Also refuse noise under an infinite budget, which has no shares."""
        is_noised = not self.dpsgd.is_noiseless(budget)
        if self.hparams["degree_share"] and is_noised and math.isinf(budget.epsilon):
            raise MisconfigurationException("degree_share needs a finite privacy.epsilon")
        super().check_budget(budget, steps)

    def cheaper_settings(self) -> str | None:
        """Suggest lower costs of the counts, and more noise if it is a number."""
        h = self.hparams
        counts = ["count_epsilon"] * (h["num_edges"] is None)
        counts += ["degree_share"] * (h["degree_share"] > 0)
        changes = [f"lower {name} {h[name]:g}" for name in counts]
        changes += [] if self.dpsgd.is_auto else ["raise noise_multiplier"]
        return ", or ".join(changes) or None

    def on_fit_start(self) -> None:
        """Fix the noise of the steps, then release the number of edges (and degrees)."""
        super().on_fit_start()
        setting = self.hparams["num_edges"]
        if setting is not None:
            self.assumptions.append("the number of edges in the configuration")
        is_new = self.dpsgd.begin(self)
        if self.dpsgd.adds_none:
            self._start_without_noise(len(self.records.edges))
            return
        if is_new:
            reads = by_key(self._counts(self.budget))
            self._release(statistics_of(self.records, self.space), reads)
        if setting is not None:
            self.num_edges.fill_(setting)

    def _release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the number of edges, at least 1, and degrees, as far as they are planned."""
        if "num_edges" in reads:
            num_edges = max(1, int(noisy_num_edges(self, source, reads)))
            self.num_edges.fill_(min(num_edges, self.space.num_pairs))
        if "degrees" in reads:  # the generator's prior, with independent ends of edges
            noisy = self.pay(reads["degrees"], source.degrees().double())
            log_degree = noisy.clamp(min=0.5).log()
            self.generator.prior.copy_(log_degree - log_degree.mean())

    def step_entries(self) -> list[LedgerEntry]:
        """One sampled Gaussian per critic step; nothing without noise."""
        return [] if self.dpsgd.adds_none else [self.dpsgd.entry]

    def training_step(self, batch: PoissonBatch, batch_idx: int) -> None:
        """Take one private critic step, and a generator step after every ``n_critic`` of them.

        Args:
            batch: Poisson sample of records of shape ``(B, 2)``, B may be 0.
            batch_idx: Number of the batch.
        """
        self._step(randomly_oriented(self.dpsgd.drawn(batch)))

    def _critic_backward(self, real: Tensor) -> None:
        """Gradient of the critic on real edges of shape ``(B, 2)``, each in a random direction."""
        if self.dpsgd.adds_none:
            super()._critic_backward(real)
        else:
            self._private_term(real)
            self._public_terms()

    def _private_term(self, real: Tensor) -> None:
        """Clipped, noised and booked gradient of the term that reads records."""
        self.dpsgd.backward(
            partial(score_sum, self.critic, sign=-1.0),
            clipped_parameters(self.critic),
            real,
            ledger=self.ledger,
            noise=self.noise,
            expected_size=self.dpsgd.sample_rate * max(1, int(self.num_edges)),
        )

    def _public_terms(self) -> None:
        """Gradient of the two terms that read no record: fakes and penalty."""
        count, parameters = self._share, clipped_parameters(self.critic)
        fakes = self._fakes(count)
        total = score_sum(self.critic, fakes, self.hparams["max_grad_norm"])
        gradients = [total[name] / count for name in parameters]
        self.public_gradient(list(parameters.values()), gradients)
        uniform = torch.randint(self.hparams["num_nodes"], (count, 2), device=self.device)
        mix = torch.rand(count, 1, 1, device=self.device)
        penalty = self._penalty(
            torch.lerp(self.critic.embed(fakes), self.critic.embed(uniform), mix)
        )
        self.public_backward(penalty, list(lstm_parameters(self.critic).values()))
        self.log_curve("train/gradient_penalty", penalty)

    def advice(self, facts: Facts) -> str | None:
        """Name simpler methods with better results, in one line."""
        return simpler_methods(facts)


def simpler_methods(facts: Facts) -> str | None:
    """Name methods with better results than a DP-SGD GAN; None at a large epsilon."""
    if facts.epsilon > 100:
        return None
    return f"{hint(facts)}; a DP-SGD GAN on one graph is behind these"
