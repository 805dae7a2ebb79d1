"""DPGGAN: DPGVAE with a discriminator of whole graphs, at no further privacy cost."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from lightning_dpg.papers.yang2021.decoding import prior, random_blocks
from lightning_dpg.papers.yang2021.dense_batch import DenseBatch
from lightning_dpg.papers.yang2021.dp_graph_vae import DPGVAE
from lightning_dpg.papers.yang2021.networks import (
    Discriminator,
    RowReadout,
    discriminator_loss,
    generator_loss,
    sample_adjacency,
    structure_loss,
)
from lightning_dpg.privacy.sensitivity.neighbor_sums import aggregation_sensitivity


class DPGGAN(DPGVAE):
    r"""Private autoencoder and discriminator of a set of graphs, with a corrected proof (DPGGAN).

    The discriminator reads the released sums over neighbors of the real graphs, and sums over
    neighbors of synthetic graphs with noise of the same distribution. So the discriminator, its
    gradient for the decoder, and the distance :math:`\|g'(H) - g'(H')\|^2` of a graph and its
    reconstruction read no edge. The rest is as in :class:`DPGVAE`.

    When to use:
        To compare with the paper. :class:`DPGVAE` is faster and as good within a budget; at an
        epsilon of 1 and below :class:`ErdosRenyiSet` is better than both on one of the two sets
        that were tried, and about as good on the other.

    Privacy:
        (epsilon, delta)-DP at the level of edges: one undirected edge of one graph is added or
        removed. The guarantee has no condition; data with repeated edges are refused, and the run
        stops before the budget is exceeded. The number of graphs and their numbers of nodes are
        public.

    Cost:
        As :class:`DPGVAE`, and for the discriminator dense matrices of a share of the graphs in
        each step, of which more than 2^26 entries are refused.

    Differences from the paper:
        In the paper the discriminator and the encoder read the graphs without noise, and the sum of
        clipped gradients of nodes can change by far more than the clipping norm. Its proof therefore
        does not hold; :class:`DPGGANAsPublished` follows it exactly. The distance extends the cross
        entropy in place of replacing it, because alone it does not train the decoder to predict
        links.

    * Yang et al., "Secure Deep Graph Generation with Link Differential Privacy", 2021.

    Args:
        noise_multiplier: Noise scale sigma relative to ``max_grad_norm``; ``auto`` solves it from
            the budget and the number of steps of the run.
        max_grad_norm: Clipping norm C of one edge's gradient.
        sample_rate: Probability q that a batch contains an edge.
        count_share: Share of epsilon for the numbers of edges.
        aggregation_share: Share of the budget (of its zCDP parameter) for the sums.
        hops: Number of released sums, each over the previous sums of the neighbors; the paper's GCN
            has two.
        public_pairs: Uniform pairs, and nodes, per step.
        feature_dim: Width of the public random features of the nodes.
        hidden_dim: Width of the first layers and of the decoder's vectors.
        latent_dim: Width of the latent vectors.
        kl_weight: Weight lambda_1 of the divergence from the prior.
        gan_weight: Weight lambda_2 of the GAN and of the distance.
        learning_rate: Learning rate of Adam.
    """

    def __init__(
        self,
        noise_multiplier: float | Literal["auto"] = "auto",
        max_grad_norm: float = 5.0,
        sample_rate: float = 0.1,
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
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            sample_rate=sample_rate,
            count_share=count_share,
            aggregation_share=aggregation_share,
            hops=hops,
            public_pairs=public_pairs,
            feature_dim=feature_dim,
            hidden_dim=hidden_dim,
            latent_dim=latent_dim,
            kl_weight=kl_weight,
            learning_rate=learning_rate,
        )
        describer = RowReadout(hops * feature_dim, hidden_dim, latent_dim)
        self.discriminator = Discriminator(describer, latent_dim, hidden_dim)

    def _public_terms(self) -> None:
        """Also add the gradients of the discriminator, and of the adversarial loss."""
        super()._public_terms()
        self._adversarial_terms()

    def _adversarial_terms(self) -> None:
        """Add the gradients of the discriminator, and of the autoencoder's adversarial loss."""
        sums = self.sums
        blocks = random_blocks(self.sizes, self.hparams["sample_rate"], self.trainer.world_size)
        real = sums.scaled(sums.rows[blocks.nodes])
        width = self.hparams["latent_dim"]
        latent = self.latent(self.inputs(blocks.nodes), prior(blocks, width))
        rebuilt, fake = (self._drawn_rows(blocks, z) for z in (latent, prior(blocks, width)))
        describe, mask = self.discriminator.describe, blocks.mask
        distance = structure_loss(describe(real, mask), describe(rebuilt, mask))
        loss = distance / self.total_edges + generator_loss(self.discriminator(fake, mask))
        autoencoder = self._parameters_of(judge=False)
        self.public_backward(self.hparams["gan_weight"] * loss, autoencoder)
        separation = discriminator_loss(
            self.discriminator(real, mask), self.discriminator(fake.detach(), mask)
        )
        self.public_backward(separation, list(self.discriminator.parameters()))

    def _drawn_rows(self, blocks: DenseBatch, latent: Tensor) -> Tensor:
        """Sums over neighbors of graphs drawn from latent vectors, with noise as in real ones."""
        logits = self.odds.logits(latent, blocks.graphs)
        adjacency = sample_adjacency(logits, blocks.pairs)
        std = float(self.sums.noise_multiplier) * aggregation_sensitivity()
        hops, rows = [], normalize(self.features[blocks.nodes], dim=-1)
        for _ in range(self.hparams["hops"]):
            sums = adjacency @ rows
            hops.append(sums + std * torch.randn_like(sums))
            rows = normalize(hops[-1], dim=-1)
        return self.sums.scaled(torch.cat(hops, -1))
