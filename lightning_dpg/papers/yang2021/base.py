"""Shared parts of graph autoencoders: public inputs, optimizers, draws, release, exact graphs."""

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from lightning_dpg.advice import Facts, hint
from lightning_dpg.interfaces import BatchRequest, GraphSetRecords
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.papers.yang2021.decoding import (
    GraphOdds,
    draw_pairs,
    public_features,
    random_blocks,
)
from lightning_dpg.papers.yang2021.dense_batch import DenseBatch, dense_adjacency
from lightning_dpg.papers.yang2021.networks import Discriminator, PairDecoder

_RELEASED = ("decoder.", "offset", "sizes", "num_edges")


class GraphAutoencoder(GraphSetSynthesizer):
    """An autoencoder of a set of graphs, whose decoder draws graphs from the prior.

    A subclass builds the networks, and has the settings ``feature_dim``, ``latent_dim``,
    ``kl_weight`` and ``learning_rate``.

    Attributes:
        decoder: Network of a pair's latent vectors.
        offset: Trained offset of the log odds of all pairs, a scalar.
        discriminator: Network that tells graphs from drawn ones, if there is one.
        features: Public features of the nodes of the set, shape ``(N, d)``.
    """

    decoder: PairDecoder
    offset: nn.Parameter
    discriminator: Discriminator
    features: Tensor

    def on_fit_start(self) -> None:
        """Copy the public facts of the data, and draw the public features."""
        super().on_fit_start()
        num_nodes = int(self.sizes.sum())
        self.features = public_features(num_nodes, self.hparams["feature_dim"]).to(self.device)

    def configure_optimizers(self) -> list[Optimizer]:
        """Adam for the autoencoder, and for the discriminator if there is one."""
        groups = [self._parameters_of(judge=judge) for judge in (False, True)]
        return [Adam(group, self.hparams["learning_rate"]) for group in groups if group]

    @property
    def odds(self) -> GraphOdds:
        """Decoder, and its context of the graphs."""
        return GraphOdds(self.decoder, self.offset, self.sizes, self.num_edges)

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw latent vectors from the prior, and edges by their log odds."""
        width = self.hparams["latent_dim"]
        return draw_pairs(self.decoder, self.offset, size, num_edges, generator, latent_dim=width)

    def released_state(self) -> dict[str, Tensor]:
        """The decoder, and sizes and numbers of edges of the graphs."""
        state = self.state_dict()
        return {name: tensor for name, tensor in state.items() if name.startswith(_RELEASED)}

    @staticmethod
    def advice(facts: Facts) -> str | None:
        """Name a method with better results than autoencoders; None at a large epsilon."""
        return None if facts.epsilon > 100 else hint(facts)

    def _zeroed_optimizers(self) -> list[Any]:
        """Return the optimizers after they have cleared the gradients of the last step."""
        configured = self.optimizers()
        optimizers = configured if isinstance(configured, list) else [configured]
        for optimizer in optimizers:
            optimizer.zero_grad()
        return optimizers

    def _parameters_of(self, *, judge: bool) -> list[nn.Parameter]:
        """Parameters of the discriminator, or all others."""
        parameters = self.named_parameters()
        return [p for name, p in parameters if name.startswith("discriminator.") == judge]

    def _annealed_weight(self) -> float:
        """Weight of the divergence, which rises linearly from 0 in the first half of the run.

        At a constant weight, training would first remove all information from the latent vectors.
        """
        trainer = self.trainer
        steps = trainer.global_step / len(trainer.optimizers)
        share = 2 * steps / trainer.estimated_stepping_batches
        return float(self.hparams["kl_weight"] * min(1.0, share))


class DenseAutoencoder(GraphAutoencoder):
    """An autoencoder that reads exact graphs of the set, as dense matrices; **not private**.

    A subclass also has the setting ``sample_rate``, the share of the graphs in a step.
    """

    adds_noise: ClassVar[bool] = False

    @abstractmethod
    def declare_num_edges(self) -> None:
        """Book that exact numbers of edges are read, or state that they are assumed public."""

    @abstractmethod
    def add_gradients(self) -> None:
        """Add the gradients of one step, on random graphs of the set."""

    def batch_request(self) -> BatchRequest:
        """Request all graphs at each step; the step samples a share of them."""
        return BatchRequest("all", self.hparams["sample_rate"])

    def on_fit_start(self) -> None:
        """Read the exact numbers of edges."""
        super().on_fit_start()
        self.declare_num_edges()
        self.num_edges = self._exact_num_edges(self._edges)

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> None:
        """Take one step on random graphs, sampled by a public seed."""
        optimizers = self._zeroed_optimizers()
        self.add_gradients()
        for optimizer in optimizers:
            optimizer.step()

    def _sampled_graphs(self) -> tuple[DenseBatch, Tensor]:
        """Sample graphs of the set, and their adjacency matrices ``(B, n, n)`` (private)."""
        blocks = random_blocks(self.sizes, self.hparams["sample_rate"], self.trainer.world_size)
        return blocks, dense_adjacency(self._edges, self.sizes, blocks)

    @property
    def _edges(self) -> Tensor:
        """All edges (private), shape ``(M, 2)``."""
        return self.records.edges.to(self.device)
