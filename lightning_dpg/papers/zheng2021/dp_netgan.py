"""DP-NetGAN: an edge-list GAN whose critic is trained with DP-SGD (Zheng et al., 2021)."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pytorch_lightning.utilities import rank_zero_warn
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from lightning_dpg.advice import Facts, hint
from lightning_dpg.graph.edge_sampling import assemble
from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.interfaces import BatchRequest, GraphRecords
from lightning_dpg.methods.base import add_public_gradient, needed_num_nodes, public_backward
from lightning_dpg.methods.constraints import POSITIVE, Constraint, Constraints, at_least
from lightning_dpg.methods.planning import Reads, by_key
from lightning_dpg.methods.private_training import PrivateTraining
from lightning_dpg.methods.single_graph.base import noisy_num_edges, num_edges_entry, statistics_of
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.papers.zheng2021.walk_lstm import WalkCritic, WalkGenerator
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_gaussian
from lightning_dpg.privacy.dpsgd import Rows, ghost_clipped_gradient_sum
from lightning_dpg.privacy.events import Gaussian, LedgerEntry
from lightning_dpg.privacy.noise import secret_generator
from lightning_dpg.privacy.sampling import PoissonBatch
from lightning_dpg.privacy.sensitivity.degrees import degree_sensitivity
from lightning_dpg.privacy.sensitivity.fitting import edge_gradient_sensitivity


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
    critic: WalkCritic,
    tokens: Tensor,
    max_grad_norm: float,
    *,
    sign: float = 1.0,
    dtype: torch.dtype = torch.double,
) -> dict[str, Tensor]:
    """Sum of the clipped gradients of the scores of edges of shape ``(B, 2)``; fakes may be single."""
    return ghost_clipped_gradient_sum(
        critic,
        lambda embedded: sign * critic(embedded),
        critic.embed(tokens),
        max_grad_norm,
        rows=table_rows(critic, tokens),
        dtype=dtype,
    )


def table_rows(critic: WalkCritic, tokens: Tensor) -> Rows | None:
    """Rows of the table as parameters, or None if it is frozen."""
    return Rows(critic.table, tokens) if isinstance(critic.table, nn.Parameter) else None


SCORE_LATENTS = 96  # latent vectors per score
WALKS_PER_CHUNK = 2048
ROW_BUDGET = 2**25  # entries of a (walks, N) tensor in a generator step


class WalkGAN(Synthesizer):
    """WGAN-GP over walks; an edge is a walk of two tokens.

    The penalty applies at the input of the critic's LSTM, the embedded walk; the original applies
    it to one-hot tokens, which trains slower. Subclasses define the hyperparameters.
    """

    records: GraphRecords
    curve_names: ClassVar[tuple[str, ...]] = ("nonprivate/critic_loss", "train/generator_loss")
    constraints: ClassVar[Constraints] = {"batch_size": at_least(1), "n_critic": at_least(1)}

    def _build(self, walk_length: int, *, frozen: bool) -> None:
        h, num_nodes = self.hparams, needed_num_nodes(self.hparams["num_nodes"])
        self.generator = WalkGenerator(
            num_nodes, walk_length, h["latent_dim"], h["generator_dim"], h["embedding_dim"]
        )
        self.critic = WalkCritic(num_nodes, h["embedding_dim"], h["critic_dim"], frozen)
        self.num_edges: Tensor = nn.Buffer(torch.tensor(0))
        self.critic_steps: Tensor = nn.Buffer(torch.tensor(0))

    def configure_optimizers(self) -> list[Optimizer]:
        """Build Adam for the critic and for the generator."""
        critic = Adam(self.critic.parameters(), self.hparams["critic_lr"], betas=(0.5, 0.9))
        generator = Adam(
            self.generator.parameters(), self.hparams["generator_lr"], betas=(0.5, 0.9)
        )
        return [critic, generator]

    def on_train_start(self) -> None:
        """Replace the learning rates of a checkpoint by those of the configuration."""
        rates = (self.hparams["critic_lr"], self.hparams["generator_lr"])
        for optimizer, rate in zip(self.trainer.optimizers, rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate

    def _start_without_noise(self, reason: str) -> None:
        """Book that nothing is protected; a finite budget refuses this entry."""
        if not self.ledger.reasons:
            self.ledger.spend(self.ledger.unprotected("training", "training", reason))
        self.num_edges.fill_(len(self.records.edges))

    def _step(self, batch: Tensor) -> None:
        """Take a critic step, and a generator step after every ``n_critic`` of them."""
        critic_optimizer, generator_optimizer = self.optimizers()  # type: ignore[attr-defined]
        critic_optimizer.zero_grad()
        self._critic_backward(batch)
        critic_optimizer.step()
        self.critic_steps += 1
        if int(self.critic_steps) % self.hparams["n_critic"] == 0:
            generator_optimizer.zero_grad()
            self._generator_backward()
            generator_optimizer.step()

    def _critic_backward(self, walks: Tensor) -> None:
        """Batched WGAN-GP gradient on real walks of shape ``(B, L)``; B may be 0."""
        fake = self.critic.embed(self._fakes(max(1, len(walks))))
        real = self.critic.embed(walks) if len(walks) else fake
        mix = torch.rand(len(fake), 1, 1, device=self.device)
        loss = self.critic(fake).mean() - self.critic(real).mean()
        loss = loss + self._penalty(torch.lerp(fake, real, mix))
        public_backward(self, loss, list(self.critic.parameters()))
        self.log_curve("nonprivate/critic_loss", loss, len(walks), prog_bar=True)

    def _penalty(self, embedded: Tensor) -> Tensor:
        """Gradient penalty at embedded walks of shape ``(B, L, d)``, mean over B."""
        points = embedded.detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.critic(points).sum(), points, create_graph=True)
        norm = (slope.flatten(1).square().sum(1) + 1e-12).sqrt()
        penalty: Tensor = self.hparams["gp_weight"] * (norm - 1).square().mean()
        return penalty

    def _generator_backward(self) -> None:
        """Gradient of the generator's loss; reads the critic, no record."""
        h = self.hparams
        decay = h["temperature_decay"] ** int(self.critic_steps)
        temperature = max(h["min_temperature"], h["temperature"] * decay)
        trained = [p for p in self.generator.parameters() if p.requires_grad]
        table, size = self.critic.table.detach(), self._share
        total = torch.zeros((), device=self.device)
        for z in self._latents(size):
            loss = -self.critic(self.generator(z, temperature, table)).sum() / size
            public_backward(self, loss, trained)
            total += loss.detach()
        self.log_curve("train/generator_loss", total, prog_bar=True)

    @property
    def _num_walks(self) -> int:
        """Walks with ``num_samples`` transitions, or ten for each edge to assemble if that is more."""
        transitions = max(self.hparams["num_samples"], 10 * int(self.num_edges))
        return -(-transitions // (self.generator.walk_length - 1))

    def _latents(self, count: int, generator: torch.Generator | None = None) -> Iterator[Tensor]:
        """Latent vectors in pieces whose ``(walks, N)`` tensors stay small."""
        rows = max(1, min(WALKS_PER_CHUNK, ROW_BUDGET // self.hparams["num_nodes"]))
        for low in range(0, count, rows):
            yield self.generator.latent(min(rows, count - low), generator)

    def _fakes(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """Generated walks of shape ``(count, L)``."""
        latents = self._latents(count, generator)
        return torch.cat([self.generator.sample(z, generator) for z in latents])

    @property
    def _share(self) -> int:
        """Generated walks of this rank per step."""
        return max(1, int(self.hparams["batch_size"]) // self.trainer.world_size)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Assemble a graph from the transitions of generated walks."""
        walks = self._fakes(self._num_walks, generator).cpu()
        pairs = torch.stack([walks[:, :-1].flatten(), walks[:, 1:].flatten()], 1)
        edges = assemble(pairs, self.hparams["num_nodes"], int(self.num_edges), generator)
        if len(edges) < int(self.num_edges):
            rank_zero_warn(
                f"{len(pairs)} samples held only {len(edges)} of {int(self.num_edges)} edges: "
                "the generator repeats itself; raise num_samples"
            )
        return edges

    @torch.no_grad()
    def score(self, pairs: Tensor) -> Tensor:
        """Probability of an edge, or expected transitions of walks, summed over both orders."""
        pairs, fixed = pairs.to(self.device), torch.Generator().manual_seed(0)
        if self.generator.walk_length == 2:
            return self.generator.pair_probability(
                pairs, self.generator.latent(SCORE_LATENTS, fixed)
            )
        scores = torch.zeros(len(pairs), device=self.device)
        for z in self._latents(self._num_walks, fixed):
            scores += self.generator.transition_frequency(pairs, z, fixed)
        return scores

    def released_state(self) -> dict[str, Tensor]:
        """The generator and the number of edges to assemble."""
        state = {f"generator.{k}": v for k, v in self.generator.state_dict().items()}
        return state | {"num_edges": self.num_edges}


class EdgeGAN(WalkGAN):
    """A GAN of edges whose critic takes private steps, on Poisson samples of edges.

    A subclass also has the settings of :class:`PrivateTraining` and ``frozen_embedding``.
    """

    def _build_private(self) -> None:
        h = self.hparams
        self._build(2, frozen=h["frozen_embedding"])
        self.dpsgd = PrivateTraining(
            "critic_gradient",
            "critic gradient",
            edge_gradient_sensitivity,
            noise_multiplier=h["noise_multiplier"],
            max_grad_norm=h["max_grad_norm"],
            sample_rate=h["sample_rate"],
        )

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the counts and the steps; without noise, an unprotected entry."""
        if self.dpsgd.is_noiseless(budget):
            return [self.ledger.unprotected("training", "training", "no noise is added")]
        counts = self._counts(budget)
        return counts + self.dpsgd.planned(budget, steps, counts)

    def _counts(self, budget: Budget) -> list[LedgerEntry]:
        """Plan the reads before the steps."""
        return []

    @abstractmethod
    def clipped_sum(self, real: Tensor, max_grad_norm: float) -> dict[str, Tensor]:
        """Sum of the clipped gradients of edges of shape ``(B, 2)`` (private)."""

    def batch_request(self) -> BatchRequest:
        """Poisson samples of edges."""
        return BatchRequest("poisson", self.hparams["sample_rate"])

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
        """Clipped, noised and booked gradient of the terms that read records."""
        self.dpsgd.backward(
            self.clipped_sum,
            clipped_parameters(self.critic),
            real,
            ledger=self.ledger,
            noise=self.noise,
            expected_size=self.dpsgd.sample_rate * max(1, int(self.num_edges)),
        )

    def _public_terms(self) -> None:
        """Add the gradient of terms that read no record; there are none by default."""

    def advice(self, facts: Facts) -> str | None:
        """Name methods with better results than a DP-SGD GAN; None at a large epsilon."""
        if facts.epsilon > 100:
            return None
        return f"{hint(facts)}; a DP-SGD GAN on one graph is behind these"


class DPNetGAN(EdgeGAN):
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
        self._build_private()

    def _counts(self, budget: Budget) -> list[LedgerEntry]:
        """Plan the number of edges and the degrees, as far as the settings ask for them."""
        share, counts = self.hparams["degree_share"], []
        if self.hparams["num_edges"] is None:
            counts.append(num_edges_entry(self.hparams["count_epsilon"]))
        if share:
            noise = Gaussian(calibrate_gaussian(budget) / share**0.5)
            counts.append(LedgerEntry.proved("degrees", "degrees", noise, degree_sensitivity))
        return counts

    def _check_budget(self, budget: Budget) -> None:
        """Also refuse noise under an infinite budget, which has no shares."""
        is_noised = not self.dpsgd.is_noiseless(budget)
        if self.hparams["degree_share"] and is_noised and math.isinf(budget.epsilon):
            raise MisconfigurationException("degree_share needs a finite privacy.epsilon")
        super()._check_budget(budget)

    def on_fit_start(self) -> None:
        """Fix the noise of the steps, then release the number of edges (and degrees)."""
        super().on_fit_start()
        setting = self.hparams["num_edges"]
        if setting is not None:
            self.assumptions.append("the number of edges in the configuration")
        is_new = self.dpsgd.begin(self)
        if self.dpsgd.adds_none:
            self._start_without_noise("no noise is added")
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

    def clipped_sum(self, real: Tensor, max_grad_norm: float) -> dict[str, Tensor]:
        """Sum of the clipped gradients of the scores of real edges, negated."""
        return score_sum(self.critic, real, max_grad_norm, sign=-1.0)

    def _public_terms(self) -> None:
        """Gradient of the two terms that read no record: fakes and penalty."""
        count, parameters = self._share, clipped_parameters(self.critic)
        fakes = self._fakes(count)
        total = score_sum(self.critic, fakes, self.hparams["max_grad_norm"], dtype=torch.float)
        gradients = [total[name] / count for name in parameters]
        add_public_gradient(self, list(parameters.values()), gradients)
        uniform = torch.randint(self.hparams["num_nodes"], (count, 2), device=self.device)
        mix = torch.rand(count, 1, 1, device=self.device)
        penalty = self._penalty(
            torch.lerp(self.critic.embed(fakes), self.critic.embed(uniform), mix)
        )
        public_backward(self, penalty, list(lstm_parameters(self.critic).values()))
        self.log_curve("train/gradient_penalty", penalty)
