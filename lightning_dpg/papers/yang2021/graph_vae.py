"""GVAE and GGAN: autoencoders of graphs without privacy, one model for a whole set."""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from lightning_dpg.papers.yang2021.base import DenseAutoencoder
from lightning_dpg.papers.yang2021.decoding import prior, with_context
from lightning_dpg.papers.yang2021.dense_batch import DenseBatch
from lightning_dpg.papers.yang2021.networks import (
    CONTEXT_DIM,
    Discriminator,
    GCNEncoder,
    GCNReadout,
    PairDecoder,
    discriminator_loss,
    divergence_from_prior,
    generator_loss,
    reparameterize,
    sample_adjacency,
    structure_loss,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry

_PER_PAIR, _PER_NODE = "nonprivate/error_per_pair", "nonprivate/divergence_per_node"


class Bound(NamedTuple):
    """The evidence lower bound of some graphs.

    Attributes:
        loss: Its negative per node, Eq. (4).
        logits: Log odds of the reconstruction, shape ``(B, n, n)``.
    """

    loss: Tensor
    logits: Tensor


class GVAE(DenseAutoencoder):
    """Variational autoencoder of a set of graphs; **not private**.

    Synthetic graphs come from the prior through the decoder; they depend on the input only through
    the numbers of edges and the weights.

    When to use:
        As the baseline without privacy of :class:`DPGVAE`. Within a budget take :class:`DPGVAE` or
        :class:`ErdosRenyiSet`.

    Privacy:
        None: training reads the exact graphs and their numbers of edges. A run needs an infinite
        epsilon, and its statement says that nothing is protected.

    Cost:
        A step takes dense matrices of a share of the graphs: time and memory grow with the square
        of their numbers of nodes, and more than 2^26 entries are refused.

    Differences from the paper:
        One model learns the whole set, while Yang et al. train one for each graph. Graphs are drawn
        from the prior, while theirs are drawn from the posterior of the private graph.

    * Kipf, Welling, "Variational Graph Auto-Encoders", 2016.
    * Yang et al., "Secure Deep Graph Generation with Link Differential Privacy", 2021, where it is
      a baseline.

    Args:
        feature_dim: Width of the public features of the nodes.
        hidden_dim: Width of the first layers and of the decoder's vectors.
        latent_dim: Width of the latent vectors.
        kl_weight: Weight of the divergence from the prior.
        learning_rate: Learning rate of Adam.
        sample_rate: Share of the graphs in a step.
    """

    curve_names: ClassVar[tuple[str, ...]] = (_PER_PAIR, _PER_NODE)

    def __init__(
        self,
        feature_dim: int = 32,
        hidden_dim: int = 32,
        latent_dim: int = 2,
        kl_weight: float = 0.3,
        learning_rate: float = 1e-2,
        sample_rate: float = 0.1,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.decoder = PairDecoder(latent_dim + CONTEXT_DIM, hidden_dim)
        self.offset = nn.Parameter(torch.zeros(()))
        self.encoder = GCNEncoder(feature_dim + CONTEXT_DIM, hidden_dim, latent_dim)

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the unprotected training."""
        return [self.unprotected("training", "training", f"{type(self).__name__} adds no noise")]

    def declare_num_edges(self) -> None:
        """Book the unprotected training, unless a resumed run has booked it."""
        if not self.ledger.entries:
            self.ledger.spend(*self.plan(self.budget, 1))

    def add_gradients(self) -> None:
        """Add the gradient of the bound."""
        bound = self._bound(*self._sampled_graphs())
        self.public_backward(bound.loss, list(self.parameters()))

    def _bound(self, blocks: DenseBatch, adjacency: Tensor) -> Bound:
        """Estimate the bound by one draw from the posterior, and log its parts.

        Args:
            blocks: Places of the graphs' nodes.
            adjacency: Their adjacency matrices (private), shape ``(B, n, n)``.
        """
        odds, pairs, mask = self.odds, blocks.pairs, blocks.mask
        context = odds.context(blocks.graphs)[:, None]
        inputs = with_context(self.features[blocks.nodes], context)
        mean, log_variance = self.encoder(inputs, adjacency)
        latent = reparameterize(mean, log_variance, torch.randn_like(mean))
        logits = odds.logits(latent, blocks.graphs)
        error = binary_cross_entropy_with_logits(logits[pairs], adjacency[pairs], reduction="sum")
        divergence = divergence_from_prior(mean, log_variance)[mask].sum()
        self.log_curve(_PER_PAIR, error / pairs.sum(), pairs.sum())
        self.log_curve(_PER_NODE, divergence / mask.sum(), mask.sum())
        return Bound((error + self._annealed_weight() * divergence) / mask.sum(), logits)


class GGAN(GVAE):
    r"""Variational autoencoder and discriminator of a set of graphs; **not private**.

    The loss of the autoencoder of :class:`GVAE` is extended by :math:`\|g'(A) - g'(A')\|^2` between
    a graph and its reconstruction, and by the loss of a GAN whose fakes are drawn from the prior.

    When to use:
        As the baseline without privacy of :class:`DPGGAN`. Within a budget take :class:`DPGVAE` or
        :class:`ErdosRenyiSet`.

    Privacy:
        None: training reads the exact graphs and their numbers of edges. A run needs an infinite
        epsilon, and its statement says that nothing is protected.

    Cost:
        As :class:`GVAE`, with about twice the work for each step.

    Differences from the paper:
        In the paper the distance replaces the cross entropy of the links; alone it does not train
        the decoder to predict links. One model learns the whole set, and graphs are drawn from the
        prior.

    * Yang et al., "Secure Deep Graph Generation with Link Differential Privacy", 2021.

    Args:
        feature_dim: Width of the public features of the nodes.
        hidden_dim: Width of the first layers and of the decoder's vectors.
        latent_dim: Width of the latent vectors.
        kl_weight: Weight lambda_1 of the divergence from the prior.
        gan_weight: Weight lambda_2 of the GAN and of the distance.
        learning_rate: Learning rate of Adam.
        sample_rate: Share of the graphs in a step.
    """

    def __init__(
        self,
        feature_dim: int = 32,
        hidden_dim: int = 32,
        latent_dim: int = 2,
        kl_weight: float = 0.3,
        gan_weight: float = 0.1,
        learning_rate: float = 1e-2,
        sample_rate: float = 0.1,
    ) -> None:
        super().__init__(feature_dim, hidden_dim, latent_dim, kl_weight, learning_rate, sample_rate)
        describer = GCNReadout(feature_dim, hidden_dim, latent_dim)
        self.discriminator = Discriminator(describer, latent_dim, hidden_dim)

    def add_gradients(self) -> None:
        """Add the gradients of the bound, of the adversarial loss, and of the discriminator."""
        blocks, adjacency = self._sampled_graphs()
        bound = self._bound(blocks, adjacency)
        fake = self.odds.logits(prior(blocks, self.hparams["latent_dim"]), blocks.graphs)
        rebuilt, fake = (sample_adjacency(logits, blocks.pairs) for logits in (bound.logits, fake))
        features, mask, discriminator = self.features[blocks.nodes], blocks.mask, self.discriminator
        described = (discriminator.describe(features, x, mask) for x in (adjacency, rebuilt))
        distance = structure_loss(*described)
        adversarial = distance / mask.sum() + generator_loss(discriminator(features, fake, mask))
        loss = bound.loss + self.hparams["gan_weight"] * adversarial
        self.public_backward(loss, self._parameters_of(judge=False))
        real = discriminator(features, adjacency, mask)
        separation = discriminator_loss(real, discriminator(features, fake.detach(), mask))
        self.public_backward(separation, list(discriminator.parameters()))
