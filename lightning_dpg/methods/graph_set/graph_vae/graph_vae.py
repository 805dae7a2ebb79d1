"""GVAE and GGAN: autoencoders of graphs without privacy, one model for a whole set."""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim import Optimizer

from lightning_dpg.graph.dense_batch import DenseBatch, dense_adjacency
from lightning_dpg.interfaces import BatchRequest, GraphSetRecords
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.graph_set.graph_vae.decoding import (
    GraphOdds,
    annealed,
    draw_pairs,
    exact_num_edges,
    optimizers,
    parameters_but_of,
    prior,
    public_features,
    random_blocks,
    released_tensors,
    with_context,
    zeroed_optimizers,
)
from lightning_dpg.nn.graph_vae import (
    CONTEXT_DIM,
    Discriminator,
    GCNEncoder,
    GCNReadout,
    PairDecoder,
    discriminator_loss,
    generator_loss,
    kl_divergence,
    reparameterize,
    sample_adjacency,
    structure_loss,
)

_PER_PAIR, _PER_NODE = "nonprivate/error_per_pair", "nonprivate/divergence_per_node"


class Bound(NamedTuple):
    """The evidence lower bound of some graphs.

    Attributes:
        loss: Its negative, Eq. (4), a sum over the graphs.
        logits: Log odds of the reconstruction, shape ``(B, n, n)``.
        figures: Its parts per pair and per node, to be logged, each with the number of them.
    """

    loss: Tensor
    logits: Tensor
    figures: dict[str, tuple[Tensor, Tensor]]


def evidence_bound(
    encoder: GCNEncoder,
    odds: GraphOdds,
    features: Tensor,
    blocks: DenseBatch,
    adjacency: Tensor,
    kl_weight: float,
) -> Bound:
    """Estimate the evidence lower bound of graphs by one draw from the posterior.

    Args:
        encoder: Posterior of the nodes.
        odds: Decoder, and its context of the graphs.
        features: Public features of all nodes of the set, shape ``(N, d)``.
        blocks: Places of the graphs' nodes.
        adjacency: Their adjacency matrices (private), shape ``(B, n, n)``.
        kl_weight: Weight of the divergence from the prior.
    """
    inputs = with_context(features[blocks.nodes], odds.context(blocks.graphs)[:, None])
    mean, log_variance = encoder(inputs, adjacency)
    latent = reparameterize(mean, log_variance, torch.randn_like(mean))
    logits, pairs = odds.logits(latent, blocks.graphs), blocks.pairs
    error = binary_cross_entropy_with_logits(logits[pairs], adjacency[pairs], reduction="sum")
    divergence = kl_divergence(mean, log_variance)[blocks.mask].sum()
    figures = {
        _PER_PAIR: (error / pairs.sum(), pairs.sum()),
        _PER_NODE: (divergence / blocks.mask.sum(), blocks.mask.sum()),
    }
    return Bound(error + kl_weight * divergence, logits, figures)


class GVAE(GraphSetSynthesizer):
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

    adds_noise: ClassVar[bool] = False
    curve_names: ClassVar[tuple[str, ...]] = (_PER_PAIR, _PER_NODE)
    features: Tensor

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

    def batch_request(self) -> BatchRequest:
        """Request all graphs at each step; the step samples a share of them."""
        return BatchRequest("all", self.hparams["sample_rate"])

    def on_fit_start(self) -> None:
        """Book the unprotected training, and read the exact numbers of edges."""
        super().on_fit_start()
        if not self.ledger.entries:
            self.ledger.spend(self.unprotected("training", "GVAE adds no noise"))
        num_nodes = int(self.sizes.sum())
        self.features = public_features(num_nodes, self.hparams["feature_dim"]).to(self.device)
        self.num_edges = exact_num_edges(self._edges, self.sizes)

    @property
    def _edges(self) -> Tensor:
        """All edges (private), shape ``(M, 2)``."""
        return self.records.edges.to(self.device)

    @property
    def _odds(self) -> GraphOdds:
        return GraphOdds(self.decoder, self.offset, self.sizes, self.num_edges)

    def _bound(self, blocks: DenseBatch, adjacency: Tensor) -> Bound:
        """Loss of graphs with adjacency matrices of shape ``(B, n, n)`` (private)."""
        weight = annealed(self.hparams["kl_weight"], self.trainer)
        bound = evidence_bound(self.encoder, self._odds, self.features, blocks, adjacency, weight)
        for name, (value, count) in bound.figures.items():
            self.log_curve(name, value, count)
        return bound

    def configure_optimizers(self) -> list[Optimizer]:
        """Adam for the autoencoder."""
        return optimizers(self.hparams["learning_rate"], self.parameters())

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> None:
        """Take one step on random graphs, sampled by a public seed."""
        (optimizer,) = zeroed_optimizers(self)
        blocks = random_blocks(self.sizes, self.hparams["sample_rate"], self.trainer.world_size)
        bound = self._bound(blocks, dense_adjacency(self._edges, self.sizes, blocks))
        self.public_backward(bound.loss / blocks.mask.sum(), list(self.parameters()))
        optimizer.step()

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw latent vectors from the prior, and edges by their log odds."""
        width = self.hparams["latent_dim"]
        return draw_pairs(self.decoder, self.offset, size, num_edges, generator, latent_dim=width)

    def released_state(self) -> dict[str, Tensor]:
        """The decoder, and sizes and numbers of edges of the graphs."""
        return released_tensors(self.state_dict())


class GGAN(GraphSetSynthesizer):
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

    adds_noise: ClassVar[bool] = False
    curve_names: ClassVar[tuple[str, ...]] = (_PER_PAIR, _PER_NODE)
    features: Tensor

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
        super().__init__()
        self.save_hyperparameters()
        self.decoder = PairDecoder(latent_dim + CONTEXT_DIM, hidden_dim)
        self.offset = nn.Parameter(torch.zeros(()))
        self.encoder = GCNEncoder(feature_dim + CONTEXT_DIM, hidden_dim, latent_dim)
        describer = GCNReadout(feature_dim, hidden_dim, latent_dim)
        self.discriminator = Discriminator(describer, latent_dim, hidden_dim)

    def batch_request(self) -> BatchRequest:
        """Request all graphs at each step; the step samples a share of them."""
        return BatchRequest("all", self.hparams["sample_rate"])

    def on_fit_start(self) -> None:
        """Book the unprotected training, and read the exact numbers of edges."""
        super().on_fit_start()
        if not self.ledger.entries:
            self.ledger.spend(self.unprotected("training", "GGAN adds no noise"))
        num_nodes = int(self.sizes.sum())
        self.features = public_features(num_nodes, self.hparams["feature_dim"]).to(self.device)
        self.num_edges = exact_num_edges(self._edges, self.sizes)

    @property
    def _edges(self) -> Tensor:
        """All edges (private), shape ``(M, 2)``."""
        return self.records.edges.to(self.device)

    @property
    def _odds(self) -> GraphOdds:
        return GraphOdds(self.decoder, self.offset, self.sizes, self.num_edges)

    def _bound(self, blocks: DenseBatch, adjacency: Tensor) -> Bound:
        """Loss of graphs with adjacency matrices of shape ``(B, n, n)`` (private)."""
        weight = annealed(self.hparams["kl_weight"], self.trainer)
        bound = evidence_bound(self.encoder, self._odds, self.features, blocks, adjacency, weight)
        for name, (value, count) in bound.figures.items():
            self.log_curve(name, value, count)
        return bound

    def configure_optimizers(self) -> list[Optimizer]:
        """Adam for the autoencoder, and for the discriminator."""
        autoencoder = parameters_but_of(self, "discriminator")
        return optimizers(
            self.hparams["learning_rate"], autoencoder, self.discriminator.parameters()
        )

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> None:
        """Take one step of the autoencoder and one of the discriminator."""
        optimizer, other = zeroed_optimizers(self)
        blocks = random_blocks(self.sizes, self.hparams["sample_rate"], self.trainer.world_size)
        adjacency = dense_adjacency(self._edges, self.sizes, blocks)
        bound = self._bound(blocks, adjacency)
        fake = self._odds.logits(prior(blocks, self.hparams["latent_dim"]), blocks.graphs)
        rebuilt, fake = (sample_adjacency(logits, blocks.pairs) for logits in (bound.logits, fake))
        features, mask, discriminator = self.features[blocks.nodes], blocks.mask, self.discriminator
        described = (discriminator.describe(features, x, mask) for x in (adjacency, rebuilt))
        distance = structure_loss(*described)
        adversarial = distance / mask.sum() + generator_loss(discriminator(features, fake, mask))
        loss = bound.loss / mask.sum() + self.hparams["gan_weight"] * adversarial
        self.public_backward(loss, parameters_but_of(self, "discriminator"))
        real = discriminator(features, adjacency, mask)
        judged = discriminator_loss(real, discriminator(features, fake.detach(), mask))
        self.public_backward(judged, list(discriminator.parameters()))
        optimizer.step()
        other.step()

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw latent vectors from the prior, and edges by their log odds."""
        width = self.hparams["latent_dim"]
        return draw_pairs(self.decoder, self.offset, size, num_edges, generator, latent_dim=width)

    def released_state(self) -> dict[str, Tensor]:
        """The decoder, and sizes and numbers of edges of the graphs."""
        return released_tensors(self.state_dict())
