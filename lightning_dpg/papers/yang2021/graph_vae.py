"""GVAE and GGAN: autoencoders of graphs without privacy, one model for a whole set."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim import Adam, Optimizer

from lightning_dpg.advice import Facts, hint
from lightning_dpg.interfaces import BatchRequest, GraphSetRecords
from lightning_dpg.methods.base import public_backward
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.papers.yang2021.dense_batch import DenseBatch, dense_adjacency
from lightning_dpg.papers.yang2021.networks import (
    CONTEXT_DIM,
    Discriminator,
    GCNEncoder,
    GCNReadout,
    GraphOdds,
    PairDecoder,
    discriminator_loss,
    divergence_from_prior,
    draw_pairs,
    generator_loss,
    prior,
    public_features,
    random_blocks,
    reparameterize,
    sample_adjacency,
    sample_prior,
    structure_loss,
    with_context,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry

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
        groups = [self._parameters_of(discriminator=each) for each in (False, True)]
        return [Adam(group, self.hparams["learning_rate"]) for group in groups if group]

    @property
    def odds(self) -> GraphOdds:
        """Decoder, and its context of the graphs."""
        return GraphOdds(self.decoder, self.offset, self.sizes, self.num_edges)

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw latent vectors from the prior, and edges by their log odds."""
        latent = sample_prior(size, self.hparams["latent_dim"], generator)
        return draw_pairs(self.decoder, self.offset, latent, num_edges, generator)

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

    def _parameters_of(self, *, discriminator: bool) -> list[nn.Parameter]:
        """Parameters of the discriminator, or all others."""
        parameters = self.named_parameters()
        return [p for name, p in parameters if name.startswith("discriminator.") == discriminator]

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

    capabilities = replace(GraphAutoencoder.capabilities, adds_noise=False)

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
        return [
            self.ledger.unprotected("training", "training", f"{type(self).__name__} adds no noise")
        ]

    def declare_num_edges(self) -> None:
        """Book the unprotected training, unless a resumed run has booked it."""
        if not self.ledger.entries:
            self.ledger.spend(*self.plan(self.budget, 1))

    def add_gradients(self) -> None:
        """Add the gradient of the bound."""
        bound = self._bound(*self._sampled_graphs())
        public_backward(self, bound.loss, list(self.parameters()))

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
        public_backward(self, loss, self._parameters_of(discriminator=False))
        real = discriminator(features, adjacency, mask)
        separation = discriminator_loss(real, discriminator(features, fake.detach(), mask))
        public_backward(self, separation, list(discriminator.parameters()))
