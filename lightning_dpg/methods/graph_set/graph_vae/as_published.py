"""DPGVAE and DPGGAN as published (Yang et al., 2021, Algorithm 1). Not private."""

from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim import Optimizer

from lightning_dpg.advice import Facts
from lightning_dpg.errors import Refusal
from lightning_dpg.graph.dense_batch import DenseBatch, dense_adjacency
from lightning_dpg.interfaces import BatchRequest, GraphSetRecords
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.graph_set.graph_vae.decoding import (
    draw_pairs,
    exact_num_edges,
    optimizers,
    parameters_but_of,
    public_features,
    random_blocks,
    released_tensors,
    zeroed_optimizers,
)
from lightning_dpg.methods.graph_set.graph_vae.edge_training import simpler_methods
from lightning_dpg.methods.graph_set.graph_vae.node_clipping import (
    claimed_epsilon,
    encoder_loss,
    node_step,
    node_sum,
    posterior,
)
from lightning_dpg.nn.graph_vae import (
    Discriminator,
    GCNEncoder,
    GCNReadout,
    PairDecoder,
    discriminator_loss,
    generator_loss,
    structure_loss,
)


class DPGVAEAsPublished(GraphSetSynthesizer):
    """Variational autoencoder of a set of graphs, as published (DPGVAE); **not private**.

    Algorithm 1, on random graphs of the set with a share q of its nodes in each step.

    When to use:
        To check the claim of the paper. :class:`DPGVAE` has a proof.

    Privacy:
        None. A run needs an infinite epsilon, and its statement reports the epsilon that the paper
        claims. The exact numbers of edges are assumed public, as in the paper.

    Cost:
        A step takes dense matrices of a share of the graphs; more than 2^26 entries are refused.

    Differences from the paper:
        One model learns the whole set. What the paper claims and does not hold: one edge changes
        the gradients of many nodes, each of which is clipped alone, and the encoder has no noise.

    * Yang et al., "Secure Deep Graph Generation with Link Differential Privacy", 2021, Algorithm 1.

    Args:
        noise_multiplier: Noise scale sigma relative to ``max_grad_norm``; the paper takes 5.
        max_grad_norm: Clipping norm C of one node's gradient.
        clip_decay: Factor of C per epoch.
        sample_rate: Share q of the graphs that a step reads.
        feature_dim: Width of the public random features of the nodes.
        hidden_dim: Width of the first layers and of the decoder's vectors.
        latent_dim: Width of the latent vectors.
        kl_weight: Weight lambda_1 of the divergence from the prior.
        learning_rate: Learning rate of Adam.
    """

    adds_noise: ClassVar[bool] = False
    features: Tensor

    def __init__(
        self,
        noise_multiplier: float = 5.0,
        max_grad_norm: float = 5.0,
        clip_decay: float = 0.99,
        sample_rate: float = 0.1,
        feature_dim: int = 8,
        hidden_dim: int = 32,
        latent_dim: int = 4,
        kl_weight: float = 0.3,
        learning_rate: float = 1e-2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        if not noise_multiplier > 0:
            raise Refusal(f"noise_multiplier must be positive, got {noise_multiplier}")
        self.decoder = PairDecoder(latent_dim, hidden_dim)
        self.offset = nn.Parameter(torch.zeros(()))
        self.encoder = GCNEncoder(feature_dim, hidden_dim, latent_dim)

    def batch_request(self) -> BatchRequest:
        """Request all graphs at each step; the step samples a share of them."""
        return BatchRequest("all", self.hparams["sample_rate"])

    def on_fit_start(self) -> None:
        """Read the exact numbers of edges, as the paper does."""
        super().on_fit_start()
        self.assumptions.append("the exact numbers of edges, as the paper takes them")
        num_nodes = int(self.sizes.sum())
        self.features = public_features(num_nodes, self.hparams["feature_dim"]).to(self.device)
        self.num_edges = exact_num_edges(self._edges, self.sizes)

    @property
    def _edges(self) -> Tensor:
        """All edges (private), shape ``(M, 2)``."""
        return self.records.edges.to(self.device)

    def configure_optimizers(self) -> list[Optimizer]:
        """Adam for the autoencoder."""
        return optimizers(self.hparams["learning_rate"], self.parameters())

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> None:
        """Take one step on random graphs, sampled by a public seed."""
        (optimizer,) = zeroed_optimizers(self)
        self._autoencoder_step(*self._graphs())
        optimizer.step()

    def _node_sum(
        self, blocks: DenseBatch, adjacency: Tensor, latent: Tensor, max_grad_norm: float
    ) -> dict[str, Tensor]:
        """Sum the clipped shares of the nodes in the decoder's gradient."""
        loss = partial(self._reconstruction, blocks, adjacency)
        return node_sum(self.decoder, blocks, latent, loss, max_grad_norm)

    def _reconstruction(self, blocks: DenseBatch, adjacency: Tensor, logits: Tensor) -> Tensor:
        """L_rec: cross entropy of all pairs in both orders, Eq. (4)."""
        pairs = blocks.pairs
        return 2 * binary_cross_entropy_with_logits(
            logits[pairs], adjacency[pairs], reduction="sum"
        )

    def _graphs(self) -> tuple[DenseBatch, Tensor]:
        """Sample graphs of the set, and their adjacency matrices ``(B, n, n)`` (private)."""
        blocks = random_blocks(self.sizes, self.hparams["sample_rate"], self.trainer.world_size)
        return blocks, dense_adjacency(self._edges, self.sizes, blocks)

    def _autoencoder_step(self, blocks: DenseBatch, adjacency: Tensor) -> None:
        """Compute clipped gradients of the decoder, and unprotected gradients of the encoder."""
        h = self.hparams
        latent, mean, log_variance = posterior(self.encoder, self.features[blocks.nodes], adjacency)
        node_step(
            self,
            self.decoder,
            partial(self._node_sum, blocks, adjacency, latent.detach()),
            noise_multiplier=h["noise_multiplier"],
            max_grad_norm=h["max_grad_norm"] * h["clip_decay"] ** self.current_epoch,
            expected_size=h["sample_rate"] * int(self.sizes.sum()),
        )
        rebuilt = self._reconstruction(blocks, adjacency, self.decoder.logits(latent))
        loss = encoder_loss(rebuilt, mean, log_variance, blocks, h["kl_weight"])
        self.public_backward(loss, list(self.encoder.parameters()))

    def claimed_epsilon(self, delta: float) -> float | None:
        """Epsilon of the paper's Theorem 1, which does not hold."""
        if not self.ledger.entries:
            return None
        h, steps = self.hparams, self.ledger.entries[0].steps
        return claimed_epsilon(h["sample_rate"], steps, h["noise_multiplier"], delta)

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw latent vectors from the prior, and edges by their log odds."""
        width = self.hparams["latent_dim"]
        return draw_pairs(self.decoder, self.offset, size, num_edges, generator, latent_dim=width)

    def released_state(self) -> dict[str, Tensor]:
        """The decoder, and sizes and numbers of edges of the graphs."""
        return released_tensors(self.state_dict())

    @staticmethod
    def advice(facts: Facts) -> str | None:
        """Name a simpler method with better results, in one line."""
        return simpler_methods(facts)


class DPGGANAsPublished(GraphSetSynthesizer):
    r"""Autoencoder and discriminator of a set of graphs, as published (DPGGAN); **not private**.

    Algorithm 1: the distance :math:`\|g'(A) - g'(A')\|^2` of a graph and its reconstruction
    replaces the cross entropy, and the discriminator reads the graphs.

    When to use:
        To check the claim of the paper. :class:`DPGGAN` has a proof.

    Privacy:
        None, as for :class:`DPGVAEAsPublished`, and the claimed epsilon is reported in the same
        way.

    Cost:
        As :class:`DPGVAEAsPublished`, with a second sample of graphs in each step.

    Differences from the paper:
        As in :class:`DPGVAEAsPublished`; a loss of whole graphs has no term of one edge to clip.

    * Yang et al., "Secure Deep Graph Generation with Link Differential Privacy", 2021, Algorithm 1.

    Args:
        noise_multiplier: Noise scale sigma relative to ``max_grad_norm``; the paper takes 5.
        max_grad_norm: Clipping norm C of one node's gradient.
        clip_decay: Factor of C per epoch.
        sample_rate: Share q of the graphs that a step reads.
        feature_dim: Width of the public random features of the nodes.
        hidden_dim: Width of the first layers and of the decoder's vectors.
        latent_dim: Width of the latent vectors.
        kl_weight: Weight lambda_1 of the divergence from the prior.
        gan_weight: Weight lambda_2 of the GAN.
        learning_rate: Learning rate of Adam.
    """

    adds_noise: ClassVar[bool] = False
    features: Tensor

    def __init__(
        self,
        noise_multiplier: float = 5.0,
        max_grad_norm: float = 5.0,
        clip_decay: float = 0.99,
        sample_rate: float = 0.1,
        feature_dim: int = 8,
        hidden_dim: int = 32,
        latent_dim: int = 4,
        kl_weight: float = 0.3,
        gan_weight: float = 0.1,
        learning_rate: float = 1e-2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        if not noise_multiplier > 0:
            raise Refusal(f"noise_multiplier must be positive, got {noise_multiplier}")
        self.decoder = PairDecoder(latent_dim, hidden_dim)
        self.offset = nn.Parameter(torch.zeros(()))
        self.encoder = GCNEncoder(feature_dim, hidden_dim, latent_dim)
        describer = GCNReadout(feature_dim, hidden_dim, latent_dim)
        self.discriminator = Discriminator(describer, latent_dim, hidden_dim)

    def batch_request(self) -> BatchRequest:
        """Request all graphs at each step; the step samples a share of them."""
        return BatchRequest("all", self.hparams["sample_rate"])

    def on_fit_start(self) -> None:
        """Read the exact numbers of edges, as the paper does."""
        super().on_fit_start()
        self.assumptions.append("the exact numbers of edges, as the paper takes them")
        num_nodes = int(self.sizes.sum())
        self.features = public_features(num_nodes, self.hparams["feature_dim"]).to(self.device)
        self.num_edges = exact_num_edges(self._edges, self.sizes)

    @property
    def _edges(self) -> Tensor:
        """All edges (private), shape ``(M, 2)``."""
        return self.records.edges.to(self.device)

    def configure_optimizers(self) -> list[Optimizer]:
        """Adam for the autoencoder, and for the discriminator."""
        autoencoder = parameters_but_of(self, "discriminator")
        return optimizers(
            self.hparams["learning_rate"], autoencoder, self.discriminator.parameters()
        )

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> None:
        """Step the autoencoder, then the discriminator, on graphs sampled by a public seed."""
        optimizer, other = zeroed_optimizers(self)
        self._autoencoder_step(*self._graphs())
        self._judge_step(*self._graphs())
        optimizer.step()
        other.step()

    def _judge_step(self, blocks: DenseBatch, adjacency: Tensor) -> None:
        """Compute the discriminator's gradient on graphs and their reconstructions."""
        latent, *_ = posterior(self.encoder, self.features[blocks.nodes], adjacency)
        fake = self.decoder.logits(latent).sigmoid().detach()
        judged = discriminator_loss(
            *(self.discriminator(*self._read(blocks, x)) for x in (adjacency, fake))
        )
        self.public_backward(
            self.hparams["gan_weight"] * judged, list(self.discriminator.parameters())
        )

    def _node_sum(
        self, blocks: DenseBatch, adjacency: Tensor, latent: Tensor, max_grad_norm: float
    ) -> dict[str, Tensor]:
        """Sum the clipped shares of the nodes in the decoder's gradient."""

        def loss(logits: Tensor) -> Tensor:
            fooling = generator_loss(self.discriminator(*self._read(blocks, logits.sigmoid())))
            rebuilt = self._reconstruction(blocks, adjacency, logits)
            return rebuilt + self.hparams["gan_weight"] * fooling

        return node_sum(self.decoder, blocks, latent, loss, max_grad_norm)

    def _reconstruction(self, blocks: DenseBatch, adjacency: Tensor, logits: Tensor) -> Tensor:
        """L_rec: squared distance between readouts of graphs and reconstructions."""
        describe = self.discriminator.describe
        graphs = (adjacency, logits.sigmoid())
        return structure_loss(*(describe(*self._read(blocks, graph)) for graph in graphs))

    def _read(self, blocks: DenseBatch, adjacency: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Input of the discriminator for graphs with given edge weights, without padding."""
        real = blocks.mask[:, :, None] & blocks.mask[:, None, :]
        return self.features[blocks.nodes], adjacency * real, blocks.mask

    def _graphs(self) -> tuple[DenseBatch, Tensor]:
        """Sample graphs of the set, and their adjacency matrices ``(B, n, n)`` (private)."""
        blocks = random_blocks(self.sizes, self.hparams["sample_rate"], self.trainer.world_size)
        return blocks, dense_adjacency(self._edges, self.sizes, blocks)

    def _autoencoder_step(self, blocks: DenseBatch, adjacency: Tensor) -> None:
        """Compute clipped gradients of the decoder, and unprotected gradients of the encoder."""
        h = self.hparams
        latent, mean, log_variance = posterior(self.encoder, self.features[blocks.nodes], adjacency)
        node_step(
            self,
            self.decoder,
            partial(self._node_sum, blocks, adjacency, latent.detach()),
            noise_multiplier=h["noise_multiplier"],
            max_grad_norm=h["max_grad_norm"] * h["clip_decay"] ** self.current_epoch,
            expected_size=h["sample_rate"] * int(self.sizes.sum()),
        )
        rebuilt = self._reconstruction(blocks, adjacency, self.decoder.logits(latent))
        loss = encoder_loss(rebuilt, mean, log_variance, blocks, h["kl_weight"])
        self.public_backward(loss, list(self.encoder.parameters()))

    def claimed_epsilon(self, delta: float) -> float | None:
        """Epsilon of the paper's Theorem 1, which does not hold."""
        if not self.ledger.entries:
            return None
        h, steps = self.hparams, self.ledger.entries[0].steps
        return claimed_epsilon(h["sample_rate"], steps, h["noise_multiplier"], delta)

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw latent vectors from the prior, and edges by their log odds."""
        width = self.hparams["latent_dim"]
        return draw_pairs(self.decoder, self.offset, size, num_edges, generator, latent_dim=width)

    def released_state(self) -> dict[str, Tensor]:
        """The decoder, and sizes and numbers of edges of the graphs."""
        return released_tensors(self.state_dict())

    @staticmethod
    def advice(facts: Facts) -> str | None:
        """Name a simpler method with better results, in one line."""
        return simpler_methods(facts)
