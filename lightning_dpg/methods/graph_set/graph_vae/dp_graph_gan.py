"""DPGGAN: DPGVAE with a discriminator of whole graphs, which costs nothing."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from lightning_dpg.graph.dense_batch import DenseBatch
from lightning_dpg.methods.graph_set.graph_vae.dp_graph_vae import DPGVAE
from lightning_dpg.nn.graph_vae import (
    GCNReadout,
    RowReadout,
    discriminator_head,
    discriminator_loss,
    generator_loss,
    reparameterize,
    sample_adjacency,
    structure_loss,
)
from lightning_dpg.privacy.sensitivity import aggregation_sensitivity


class DPGGAN(DPGVAE):
    r"""Autoencoder of graphs with a discriminator, under edge differential privacy (Yang et al., 2021).

    ``mode: corrected`` shows the discriminator the released sums over neighbors of real graphs, and
    of drawn graphs the same sums with noise of the same law. So neither it, nor what the decoder
    learns from it, nor the distance :math:`\|g'(H) - g'(H')\|^2` of a graph and its reconstruction
    reads an edge. All else is as in :class:`DPGVAE`.

    ``mode: paper`` is Algorithm 1 as printed, where that distance of adjacency matrices takes the
    place of the cross entropy, and the discriminator reads the graphs themselves.

    Args:
        mode: ``corrected`` or ``paper``.
        noise_multiplier: Noise scale sigma relative to ``max_grad_norm``; ``auto`` solves it from
            the budget and the number of steps of the run.
        max_grad_norm: Clipping norm C, of one edge's gradient or of one node's.
        clip_decay: Factor of C per epoch, in ``mode: paper``.
        count_share: Share of epsilon that buys the numbers of edges.
        aggregation_share: Share of the budget (of its zCDP parameter) that buys the sums.
        hops: Sums that are released, each over the neighbors' last ones; the paper's GCN has two.
        public_pairs: Uniform pairs, and nodes, per step.
        feature_dim: Width of the public random features of the nodes.
        hidden_dim: Width of the first layers and of the decoder's vectors.
        latent_dim: Width of the latent vectors.
        kl_weight: Weight lambda_1 of the divergence from the prior.
        gan_weight: Weight lambda_2 of the GAN, in ``mode: corrected`` also of the distance.
        learning_rate: Learning rate of Adam.
    """

    def __init__(
        self,
        mode: Literal["corrected", "paper"] = "corrected",
        noise_multiplier: float | Literal["auto"] = "auto",
        max_grad_norm: float = 5.0,
        clip_decay: float = 0.99,
        count_share: float = 0.3,
        aggregation_share: float = 0.3,
        hops: int = 1,
        public_pairs: int = 4096,
        feature_dim: int = 8,
        hidden_dim: int = 32,
        latent_dim: int = 4,
        kl_weight: float = 0.3,
        gan_weight: float = 0.1,
        learning_rate: float = 1e-2,
    ) -> None:
        super().__init__(
            mode,
            noise_multiplier,
            max_grad_norm,
            clip_decay,
            count_share,
            aggregation_share,
            hops,
            public_pairs,
            feature_dim,
            hidden_dim,
            latent_dim,
            kl_weight,
            learning_rate,
        )
        self.save_hyperparameters()
        describe: RowReadout | GCNReadout
        if mode == "corrected":
            describe = RowReadout(hops * feature_dim, hidden_dim, latent_dim)
        else:
            describe = GCNReadout(feature_dim, hidden_dim, latent_dim)
        self.discriminator = nn.ModuleDict(
            {"describe": describe, "judge": discriminator_head(latent_dim, hidden_dim)}
        )

    # mode: corrected

    def _public_terms(self) -> None:
        """Also the discriminator, and what the autoencoder learns from it."""
        super()._public_terms()
        blocks = self._random_blocks()
        real = self._scaled(self.rows[blocks.nodes])
        latent = self._latent(self._inputs(blocks.nodes), self._prior(blocks))
        rebuilt, fake = (self._drawn_rows(blocks, z) for z in (latent, self._prior(blocks)))
        distance = structure_loss(*(self._describe_rows(blocks, x) for x in (real, rebuilt)))
        loss = distance / self._total_edges + generator_loss(self._judge_rows(blocks, fake))
        loss = self.hparams["gan_weight"] * loss
        self.public_backward(loss, self._autoencoder)
        judged = discriminator_loss(
            self._judge_rows(blocks, real), self._judge_rows(blocks, fake.detach())
        )
        self.public_backward(judged, list(self.discriminator.parameters()))

    def _drawn_rows(self, blocks: DenseBatch, latent: Tensor) -> Tensor:
        """Sums over neighbors of graphs drawn from latent vectors, with noise as the real ones."""
        adjacency = sample_adjacency(self._logits(latent, blocks.graphs), blocks.pairs)
        std = float(self.aggregation_noise) * aggregation_sensitivity()
        hops, rows = [], normalize(self.features[blocks.nodes], dim=-1)
        for _ in range(self.hparams["hops"]):
            sums = adjacency @ rows
            hops.append(sums + std * torch.randn_like(sums))
            rows = normalize(hops[-1], dim=-1)
        return self._scaled(torch.cat(hops, -1))

    def _describe_rows(self, blocks: DenseBatch, rows: Tensor) -> Tensor:
        described: Tensor = self.discriminator["describe"](rows, blocks.mask)
        return described

    def _judge_rows(self, blocks: DenseBatch, rows: Tensor) -> Tensor:
        judged: Tensor = self.discriminator["judge"](self._describe_rows(blocks, rows))
        return judged

    # mode: paper

    def _node_step(self) -> None:
        """Also one step of the discriminator, on graphs and their reconstructions."""
        super()._node_step()
        blocks = self._random_blocks()
        adjacency = self._adjacency(blocks)
        mean, log_variance = self.encoder(self.features[blocks.nodes], adjacency)
        latent = reparameterize(mean, log_variance, torch.randn_like(mean))
        fake = self.decoder.logits(latent).sigmoid().detach()
        judged = discriminator_loss(self._judge(blocks, adjacency), self._judge(blocks, fake))
        self.public_backward(
            self.hparams["gan_weight"] * judged, list(self.discriminator.parameters())
        )

    def _reconstruction(self, blocks: DenseBatch, adjacency: Tensor, logits: Tensor) -> Tensor:
        """L_rec: squared distance of the descriptions of graphs and reconstructions."""
        real = self._describe(blocks, adjacency)
        return structure_loss(real, self._describe(blocks, logits.sigmoid()))

    def _fooling(self, blocks: DenseBatch, logits: Tensor) -> Tensor:
        """The generator's part of the GAN."""
        loss: Tensor = self.hparams["gan_weight"] * generator_loss(
            self._judge(blocks, logits.sigmoid())
        )
        return loss

    def _judge(self, blocks: DenseBatch, adjacency: Tensor) -> Tensor:
        judged: Tensor = self.discriminator["judge"](self._describe(blocks, adjacency))
        return judged

    def _describe(self, blocks: DenseBatch, adjacency: Tensor) -> Tensor:
        """Descriptions g' of graphs with any weights, those of padding aside."""
        real = blocks.mask[:, :, None] & blocks.mask[:, None, :]
        described: Tensor = self.discriminator["describe"](
            self.features[blocks.nodes], adjacency * real, blocks.mask
        )
        return described
