"""Algorithm 1 of Yang et al., 2021, as printed: steps by clipped gradients of nodes. Not private."""

from abc import ABC
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from lightning_dpg.graph.dense_batch import DenseBatch
from lightning_dpg.methods.graph_set.graph_vae.graph_vae import GraphVAE
from lightning_dpg.nn.graph_vae import kl_divergence, reparameterize
from lightning_dpg.privacy.dpsgd import DPSGD
from lightning_dpg.privacy.ghost import ghost_clipped_gradient_sum


class NodeClipping(GraphVAE, ABC):
    """What ``mode: paper`` of :class:`DPGVAE` and :class:`DPGGAN` share.

    What is booked is that nothing is protected.
    """

    encoder: nn.Module
    sample_rate: float
    noise_multiplier: Tensor

    def _node_step(self) -> None:
        """Algorithm 1: decoder by clipped gradients of nodes, all else without protection."""
        blocks = self._random_blocks()
        adjacency = self._adjacency(blocks)
        mean, log_variance = self.encoder(self.features[blocks.nodes], adjacency)
        latent = reparameterize(mean, log_variance, torch.randn_like(mean))
        max_grad_norm = self.hparams["max_grad_norm"] * self.hparams["clip_decay"] ** (
            self.current_epoch
        )
        DPSGD(float(self.noise_multiplier), max_grad_norm).backward(
            partial(self._node_sum, blocks, adjacency, latent.detach()),
            dict(self.decoder.named_parameters()),
            ledger=self.ledger,
            entry=self.unprotected(
                "gradient of nodes",
                "one edge moves the gradients of many nodes, each of which is clipped alone, and "
                "networks without noise remember it",
            ),
            noise=self.noise,
            expected_size=self.sample_rate * int(self.sizes.sum()),
        )
        loss = self._reconstruction(blocks, adjacency, self.decoder.logits(latent))
        divergence = kl_divergence(mean, log_variance)[blocks.mask].sum()
        loss = (loss + self.hparams["kl_weight"] * divergence) / blocks.mask.sum()
        self.public_backward(loss, list(self.encoder.parameters()))

    def _node_sum(
        self, blocks: DenseBatch, adjacency: Tensor, latent: Tensor, max_grad_norm: float
    ) -> dict[str, Tensor]:
        """Sum of each node's clipped share of the decoder's gradient.

        The share of node i is what reaches the weights through its vector f(z_i): the shares add
        up to the gradient, also of a loss that is one number for a graph.
        """
        vectors = self.decoder(latent).detach().requires_grad_()
        logits = vectors @ vectors.mT
        loss = self._reconstruction(blocks, adjacency, logits) + self._fooling(blocks, logits)
        (slopes,) = torch.autograd.grad(loss, vectors)
        return ghost_clipped_gradient_sum(
            self.decoder,
            lambda latent, slopes: (self.decoder(latent) * slopes).sum(-1),
            latent[blocks.mask],
            max_grad_norm,
            others=(slopes[blocks.mask],),
        )

    def _reconstruction(self, blocks: DenseBatch, adjacency: Tensor, logits: Tensor) -> Tensor:
        """L_rec: cross entropy of all pairs in both orders, Eq. (4)."""
        pairs = blocks.pairs
        return 2 * binary_cross_entropy_with_logits(
            logits[pairs], adjacency[pairs], reduction="sum"
        )

    def _fooling(self, blocks: DenseBatch, logits: Tensor) -> Tensor:
        """The generator's part of the GAN: none."""
        return logits.new_zeros(())
