"""Shared parts of the Wasserstein GANs of walks: networks, generator step, sampling and scores."""

from collections.abc import Iterator
from typing import ClassVar

import torch
from pytorch_lightning.utilities import rank_zero_warn
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch.optim import Adam, Optimizer

from lightning_dpg.graph.edge_sampling import assemble
from lightning_dpg.interfaces import GraphRecords
from lightning_dpg.methods.constraints import Constraints, at_least
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.papers.zheng2021.walk_lstm import WalkCritic, WalkGenerator

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
        h = self.hparams
        if h["num_nodes"] is None:
            raise MisconfigurationException(
                "num_nodes is needed: the number of (public) nodes of the graph"
            )
        self.generator = WalkGenerator(
            h["num_nodes"], walk_length, h["latent_dim"], h["generator_dim"], h["embedding_dim"]
        )
        self.critic = WalkCritic(h["num_nodes"], h["embedding_dim"], h["critic_dim"], frozen)
        self.num_edges: Tensor
        self.critic_steps: Tensor
        self.register_buffer("num_edges", torch.tensor(0))
        self.register_buffer("critic_steps", torch.tensor(0))

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

    def _start_without_noise(self, num_edges: int) -> None:
        """Book that nothing is protected; a finite budget refuses this entry."""
        if not self.ledger.reasons:
            self.ledger.spend(self.unprotected_training("no noise is added"))
        self.num_edges.fill_(num_edges)

    def _step(self, batch: Tensor) -> None:
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
        self.public_backward(loss, list(self.critic.parameters()))
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
            self.public_backward(loss, trained)
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
