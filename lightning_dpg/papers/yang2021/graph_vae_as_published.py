"""DPGVAE and DPGGAN as published (Yang et al., 2021, Algorithm 1). Not private.

The decoder uses clipped and noised gradients of nodes, the encoder gradients without protection.
One edge changes the gradients of many nodes, each of which is clipped alone.
"""

import math
from dataclasses import replace
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from lightning_dpg.methods.base import public_backward
from lightning_dpg.methods.constraints import POSITIVE, Constraints
from lightning_dpg.papers.yang2021.dense_batch import DenseBatch
from lightning_dpg.papers.yang2021.graph_vae import DenseAutoencoder
from lightning_dpg.papers.yang2021.networks import (
    Discriminator,
    GCNEncoder,
    GCNReadout,
    PairDecoder,
    discriminator_loss,
    divergence_from_prior,
    generator_loss,
    reparameterize,
    structure_loss,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.dpsgd import DPSGD, ghost_clipped_gradient_sum
from lightning_dpg.privacy.events import LedgerEntry


class DPGVAEAsPublished(DenseAutoencoder):
    """DPGVAE as published: an autoencoder of graphs; **not private**.

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

    constraints: ClassVar[Constraints] = {"noise_multiplier": POSITIVE}

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
        self.decoder = PairDecoder(latent_dim, hidden_dim)
        self.offset = nn.Parameter(torch.zeros(()))
        self.encoder = GCNEncoder(feature_dim, hidden_dim, latent_dim)

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the steps, which protect nothing."""
        return [replace(self._step_entry(), steps=steps)] if steps else []

    def declare_num_edges(self) -> None:
        """State that the exact numbers of edges are assumed public, as in the paper."""
        self.assumptions.append("the exact numbers of edges, as the paper takes them")

    def add_gradients(self) -> None:
        """Add clipped gradients of the decoder, and unprotected gradients of the encoder."""
        h = self.hparams
        blocks, adjacency = self._sampled_graphs()
        latent, mean, log_variance = self._posterior(blocks, adjacency)
        max_grad_norm = h["max_grad_norm"] * h["clip_decay"] ** self.current_epoch
        DPSGD(h["noise_multiplier"], max_grad_norm).backward(
            partial(self._node_sum, blocks, adjacency, latent.detach()),
            dict(self.decoder.named_parameters()),
            ledger=self.ledger,
            entry=self._step_entry(),
            noise=self.noise,
            expected_size=h["sample_rate"] * int(self.sizes.sum()),
        )
        rebuilt = self._reconstruction(blocks, adjacency, self.decoder.logits(latent))
        divergence = divergence_from_prior(mean, log_variance)[blocks.mask].sum()
        loss = (rebuilt + h["kl_weight"] * divergence) / blocks.mask.sum()
        public_backward(self, loss, list(self.encoder.parameters()))

    def claimed_epsilon(self, delta: float) -> float | None:
        r"""Epsilon of the paper's Theorem 1, :math:`2 q \sqrt{T \log(1 / \delta)} / \sigma`."""
        if not self.ledger.entries:
            return None
        h, steps = self.hparams, self.ledger.entries[0].steps
        root = math.sqrt(steps * math.log(1 / delta))
        return float(2 * h["sample_rate"] * root / h["noise_multiplier"])

    def _step_entry(self) -> LedgerEntry:
        """Cost of a step, which states that nothing is protected."""
        return self.ledger.unprotected(
            "node_gradient",
            "gradient of nodes",
            "one edge moves the gradients of many nodes, each of which is clipped alone, and "
            "networks without noise remember it",
        )

    def _posterior(self, blocks: DenseBatch, adjacency: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Latent vectors of shape ``(B, n, k)``, with their means and log variances."""
        mean, log_variance = self.encoder(self.features[blocks.nodes], adjacency)
        return reparameterize(mean, log_variance, torch.randn_like(mean)), mean, log_variance

    def _node_sum(
        self, blocks: DenseBatch, adjacency: Tensor, latent: Tensor, max_grad_norm: float
    ) -> dict[str, Tensor]:
        """Sum the clipped shares of the nodes in the decoder's gradient.

        The share of node i is the gradient through its vector f(z_i): the shares add up to the
        gradient, also for a loss that is one number for a graph.

        Args:
            blocks: Places of the nodes.
            adjacency: Adjacency matrices, shape ``(B, n, n)``.
            latent: Latent vectors of the nodes, shape ``(B, n, k)``.
            max_grad_norm: Clipping norm C.
        """
        decoder = self.decoder
        vectors = decoder(latent).detach().requires_grad_()
        loss = self._decoder_loss(blocks, adjacency, vectors @ vectors.mT)
        (slopes,) = torch.autograd.grad(loss, vectors)
        return ghost_clipped_gradient_sum(
            decoder,
            lambda latent, slopes: (decoder(latent) * slopes).sum(-1),
            latent[blocks.mask],
            max_grad_norm,
            others=(slopes[blocks.mask],),
        )

    def _decoder_loss(self, blocks: DenseBatch, adjacency: Tensor, logits: Tensor) -> Tensor:
        """Loss of the decoder: L_rec."""
        return self._reconstruction(blocks, adjacency, logits)

    def _reconstruction(self, blocks: DenseBatch, adjacency: Tensor, logits: Tensor) -> Tensor:
        """L_rec: cross entropy of all pairs in both orders, Eq. (4)."""
        pairs = blocks.pairs
        return 2 * binary_cross_entropy_with_logits(
            logits[pairs], adjacency[pairs], reduction="sum"
        )


class DPGGANAsPublished(DPGVAEAsPublished):
    r"""DPGGAN as published: autoencoder and discriminator; **not private**.

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
        super().__init__(
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            clip_decay=clip_decay,
            sample_rate=sample_rate,
            feature_dim=feature_dim,
            hidden_dim=hidden_dim,
            latent_dim=latent_dim,
            kl_weight=kl_weight,
            learning_rate=learning_rate,
        )
        describer = GCNReadout(feature_dim, hidden_dim, latent_dim)
        self.discriminator = Discriminator(describer, latent_dim, hidden_dim)

    def add_gradients(self) -> None:
        """Add the gradients of the autoencoder, and of the discriminator on other graphs."""
        super().add_gradients()
        self._add_discriminator_gradient(*self._sampled_graphs())

    def _add_discriminator_gradient(self, blocks: DenseBatch, adjacency: Tensor) -> None:
        """Compute the discriminator's gradient on graphs and their reconstructions."""
        latent, *_ = self._posterior(blocks, adjacency)
        fake = self.decoder.logits(latent).sigmoid().detach()
        separation = discriminator_loss(
            *(self.discriminator(*self._read(blocks, x)) for x in (adjacency, fake))
        )
        public_backward(
            self, self.hparams["gan_weight"] * separation, list(self.discriminator.parameters())
        )

    def _decoder_loss(self, blocks: DenseBatch, adjacency: Tensor, logits: Tensor) -> Tensor:
        """Loss of the decoder: L_rec, and that of the GAN."""
        fooling = generator_loss(self.discriminator(*self._read(blocks, logits.sigmoid())))
        rebuilt = self._reconstruction(blocks, adjacency, logits)
        return rebuilt + self.hparams["gan_weight"] * fooling

    def _reconstruction(self, blocks: DenseBatch, adjacency: Tensor, logits: Tensor) -> Tensor:
        """L_rec: squared distance between readouts of graphs and reconstructions."""
        describe = self.discriminator.describe
        graphs = (adjacency, logits.sigmoid())
        return structure_loss(*(describe(*self._read(blocks, graph)) for graph in graphs))

    def _read(self, blocks: DenseBatch, adjacency: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Input of the discriminator for graphs with given edge weights, without padding."""
        real = blocks.mask[:, :, None] & blocks.mask[:, None, :]
        return self.features[blocks.nodes], adjacency * real, blocks.mask
