"""DPGVAE: an autoencoder of graph sets under edge differential privacy."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from lightning_dpg.graph.edge_statistics import neighbor_sums
from lightning_dpg.interfaces import BatchRequest
from lightning_dpg.methods.base import add_public_gradient, public_backward
from lightning_dpg.methods.constraints import POSITIVE, Constraints, at_least, either
from lightning_dpg.methods.planning import check_shares
from lightning_dpg.methods.private_training import PrivateTraining
from lightning_dpg.nn.resized_buffers import resize_on_loading
from lightning_dpg.papers.yang2021.dense_batch import DenseBatch, random_pairs
from lightning_dpg.papers.yang2021.graph_vae import GraphAutoencoder
from lightning_dpg.papers.yang2021.networks import (
    CONTEXT_DIM,
    Discriminator,
    PairDecoder,
    RowEncoder,
    RowReadout,
    discriminator_loss,
    divergence_from_prior,
    generator_loss,
    prior,
    random_blocks,
    reparameterize,
    sample_adjacency,
    structure_loss,
    with_context,
)
from lightning_dpg.privacy.aggregation_perturbation import aggregation_entries, noisy_aggregation
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_gaussian
from lightning_dpg.privacy.dpsgd import ghost_clipped_gradient_sum
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource, secret_generator
from lightning_dpg.privacy.sampling import PoissonBatch
from lightning_dpg.privacy.sensitivity.fitting import edge_gradient_sensitivity
from lightning_dpg.privacy.sensitivity.neighbor_sums import aggregation_sensitivity


class NoisySums(nn.Module):
    """Sums over neighbors, released once with noise; later reads are free.

    Args:
        hops: Number of released sums, each over the previous sums of the neighbors.
        feature_dim: Width of the features that are summed up.
        share: Share of the budget (of its zCDP parameter) for all sums.

    Attributes:
        rows: All hops side by side (released), shape ``(N, hops * feature_dim)``.
        noise_multiplier: Noise of each hop.
    """

    def __init__(self, hops: int, feature_dim: int, share: float) -> None:
        super().__init__()
        self.hops = hops
        self.share = share
        self.rows: Tensor = nn.Buffer(torch.empty(0, hops * feature_dim))
        self.noise_multiplier: Tensor = nn.Buffer(torch.tensor(float("nan"), dtype=torch.float64))
        resize_on_loading(self, "rows")

    def planned(self, budget: Budget) -> list[LedgerEntry]:
        """Plan one release for each hop."""
        one_release = 0.0 if math.isinf(budget.epsilon) else calibrate_gaussian(budget)
        noise_multiplier = one_release * math.sqrt(self.hops / self.share)
        return aggregation_entries(self.hops, noise_multiplier, Relation.EDGE)

    def release(
        self,
        edges: Tensor,
        features: Tensor,
        reads: Sequence[LedgerEntry],
        *,
        ledger: PrivacyLedger,
        noise: NoiseSource,
    ) -> None:
        """Release the sums of public features of shape ``(N, d)`` over edges ``(M, 2)`` (private).

        Args:
            edges: Edges of shape ``(M, 2)`` (private).
            features: Public features of shape ``(N, d)``.
            reads: Read of each hop, see :meth:`planned`.
            ledger: Ledger that pays for each hop.
            noise: Secret source of the noise.
        """
        event = reads[0].event
        assert isinstance(event, Gaussian)
        self.noise_multiplier.fill_(event.noise_multiplier)
        sums_of = partial(neighbor_sums, edges)
        rows = noisy_aggregation(sums_of, features.cpu(), reads, ledger, noise)
        self.rows = rows.to(features.device)

    def scaled(self, rows: Tensor) -> Tensor:
        """Scale rows to entries of about 1; the scale is a function of the released rows."""
        return rows / self.rows.square().mean().sqrt()


_DIVERGENCE = "train/divergence_per_node"
"""Curve of the divergence from the prior, which reads released rows only."""
_ADVERSARIAL, _SEPARATION = "train/generator_loss", "train/discriminator_loss"
"""Curves of the losses of the GAN, which read released rows only."""


class DPGVAE(GraphAutoencoder):
    r"""Private variational autoencoder of a set of graphs, with a corrected proof (DPGVAE).

    The sums over neighbors, of which a GCN has one per layer, are released once with noise; the
    encoder is a network of these rows. The cross entropy of all pairs,
    :math:`\sum_{i<j} \log(1 + e^{l_{ij}}) - \sum_{ij \in E} l_{ij}`, reads edges in its second sum
    only; the gradient of this sum uses Poisson batches, is clipped per edge and noised. The
    gradient of the first sum is estimated from uniform pairs, linked or not; it is free, as is the
    divergence. The number of edges of each graph is released with discrete Laplace noise.

    When to use:
        To compare with the paper, or for research on deep models of sets from an epsilon of 10 on.
        For the graphs take :class:`PooledSet` within the same budget, which has no delta. At 1 and
        below :class:`ErdosRenyiSet`, which spends the whole budget on the numbers of edges, comes
        nearer to the originals on one of the two sets that were tried, and about as near on the
        other. For a single graph take :class:`BTER` or :class:`PrivGraph`.

    Privacy:
        (epsilon, delta)-DP at the level of edges: one undirected edge of one graph is added or
        removed. The guarantee has no condition; data with repeated edges are refused, and the run
        stops before the budget is exceeded. The number of graphs and their numbers of nodes are
        public.

    Cost:
        A step grows with the expected number q M of drawn edges plus ``public_pairs``, and memory
        with N times ``hops`` times ``feature_dim``. To draw a graph takes time and memory that grow
        with the square of its nodes.

    Differences from the paper:
        The paper clips the decoder's gradient per node. One edge changes the gradients of all
        nodes, at every step through an encoder without noise. Its Theorem 1 does not hold;
        :class:`DPGVAEAsPublished` follows it exactly. One model learns the whole set, and graphs
        are drawn from the prior, while the paper draws from the posterior of each private graph.

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
        learning_rate: Learning rate of Adam.
    """

    curve_names: ClassVar[tuple[str, ...]] = (_DIVERGENCE,)
    constraints: ClassVar[Constraints] = {
        "noise_multiplier": either(
            "auto", replace(POSITIVE, remedy="to train without noise set privacy.epsilon to .inf")
        ),
        "hops": at_least(1),
    }

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
        learning_rate: float = 1e-2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        check_shares(count_share=count_share, aggregation_share=aggregation_share)
        self.decoder = PairDecoder(latent_dim + CONTEXT_DIM, hidden_dim)
        self.offset = nn.Parameter(torch.zeros(()))
        self.encoder = RowEncoder(hops * feature_dim + CONTEXT_DIM, hidden_dim, latent_dim)
        self.sums = NoisySums(hops, feature_dim, aggregation_share)
        self.dpsgd = PrivateTraining(
            "edge_gradient",
            "gradient of edges",
            edge_gradient_sensitivity,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            sample_rate=sample_rate,
        )

    def batch_request(self) -> BatchRequest:
        """Poisson samples of edges."""
        return BatchRequest("poisson", self.hparams["sample_rate"])

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the numbers of edges, the sums over neighbors, and the steps."""
        first = self._first_reads(budget)
        return first + self.dpsgd.planned(budget, steps, first)

    def _first_reads(self, budget: Budget) -> list[LedgerEntry]:
        """Plan the numbers of edges, and the sums over neighbors of each hop."""
        counts = self.num_edges_entry(self.hparams["count_share"] * budget.epsilon)
        return [counts, *self.sums.planned(budget)]

    def on_fit_start(self) -> None:
        """Fix the noise of the steps, then make the releases that the steps read."""
        super().on_fit_start()
        if self.dpsgd.begin(self):
            self._release(self.records.edges, *self._first_reads(self.budget))

    def _release(self, edges: Tensor, of_counts: LedgerEntry, *of_sums: LedgerEntry) -> None:
        """Release numbers of edges, then sums over neighbors, of edges ``(M, 2)`` (private)."""
        self.release_num_edges_per_graph(edges, of_counts)
        self.sums.release(edges, self.features, of_sums, ledger=self.ledger, noise=self.noise)

    def step_entries(self) -> list[LedgerEntry]:
        """One sampled Gaussian per step."""
        return [self.dpsgd.entry]

    def training_step(self, batch: PoissonBatch, batch_idx: int) -> None:
        """Take one private step of the autoencoder, and a public one of a discriminator.

        Args:
            batch: Poisson sample of edges of shape ``(B, 2)``, B may be 0.
            batch_idx: Number of the batch.
        """
        edges = self.dpsgd.drawn(batch)
        optimizers = self._zeroed_optimizers()
        self._private_term(edges)
        self._public_terms()
        for optimizer in optimizers:
            optimizer.step()

    def _private_term(self, edges: Tensor) -> None:
        """Clipped, noised and booked gradient of the term that reads edges of shape ``(B, 2)``."""
        self.dpsgd.backward(
            self.edge_sum,
            dict(self.networks.named_parameters()),
            edges,
            ledger=self.ledger,
            noise=self.noise,
            expected_size=self.dpsgd.sample_rate * self.total_edges,
        )

    def _public_terms(self) -> None:
        """Add the gradient of all terms that read only released rows, uniform pairs and nodes."""
        total, surplus = self.drawn_sum()
        parameters = dict(self.networks.named_parameters())
        add_public_gradient(
            self,
            [*parameters.values(), self.offset],
            [*(total[name] for name in parameters), surplus],
        )
        rows = self.sums.rows
        nodes = torch.randint(len(rows), (self.hparams["public_pairs"],), device=rows.device)
        divergence = divergence_from_prior(*self.encoder(self.inputs(nodes))).mean()
        self.log_curve(_DIVERGENCE, divergence)
        per_edge = len(rows) / self.total_edges
        loss = self._annealed_weight() * divergence * per_edge
        public_backward(self, loss, self._parameters_of(discriminator=False))

    @property
    def networks(self) -> nn.ModuleDict:
        """Networks that are trained on edges."""
        return nn.ModuleDict({"encoder": self.encoder, "decoder": self.decoder})

    @property
    def total_edges(self) -> int:
        """Released number of edges of the set, at least 1."""
        return max(1, int(self.num_edges.sum()))

    def inputs(self, nodes: Tensor) -> Tensor:
        """Encoder inputs of nodes: their rows, and the context of their graphs."""
        rows = self.sums.scaled(self.sums.rows[nodes])
        return with_context(rows, self.odds.context(self.graph_of(nodes)))

    def latent(self, inputs: Tensor, normal: Tensor) -> Tensor:
        """Latent vectors of the posterior, from standard normal vectors."""
        mean, log_variance = self.encoder(inputs)
        return reparameterize(mean, log_variance, normal)

    def pair_logits(self, inputs: Tensor, normal: Tensor) -> Tensor:
        """Log odds of pairs without the offset: inputs ``(P, 2, d)`` of their ends to ``(P,)``."""
        latent = self.latent(inputs, normal)
        return self.decoder.pair_logits(with_context(latent, inputs[..., -CONTEXT_DIM:]))

    def clipped_sum(
        self, inputs: Tensor, normal: Tensor, max_grad_norm: float
    ) -> dict[str, Tensor]:
        """Sum of the clipped gradients of l over pairs whose ends have inputs ``(P, 2, d)``."""
        return ghost_clipped_gradient_sum(
            self.networks,
            self.pair_logits,
            inputs,
            max_grad_norm,
            others=(normal.to(inputs.device),),
        )

    def edge_sum(self, edges: Tensor, max_grad_norm: float) -> dict[str, Tensor]:
        """Sum of the clipped gradients of :math:`-l_{ij}` over edges of shape ``(B, 2)``."""
        width = self.hparams["latent_dim"]
        normal = torch.randn(len(edges), 2, width, generator=secret_generator())
        total = self.clipped_sum(self.inputs(edges), normal, max_grad_norm)
        return {name: -gradient for name, gradient in total.items()}

    def drawn_sum(self) -> tuple[dict[str, Tensor], Tensor]:
        r"""Gradient of :math:`\sum \log(1 + e^{l_{ij}})` over all pairs, per edge of the graphs.

        It is the mean gradient of :math:`l_{ij}` over edges that the model draws, estimated from
        uniform pairs. They are clipped as the real edges are; otherwise they would outweigh the real
        edges, and all pairs would become alike.

        Returns:
            Gradients of the networks by name, and the gradient of the offset.
        """
        odds, count = self.odds, self.hparams["public_pairs"]
        pairs = random_pairs(self.sizes, count)
        inputs = self.inputs(pairs)
        normal = torch.randn(count, 2, self.hparams["latent_dim"], device=inputs.device)
        with torch.no_grad():
            logits = self.pair_logits(inputs, normal) + odds.offsets(self.graph_of(pairs[:, 0]))
        is_drawn = torch.rand_like(logits) < logits.sigmoid()
        total = self.clipped_sum(inputs[is_drawn], normal[is_drawn], self.dpsgd.max_grad_norm)
        per_edge = int(self._num_pairs().sum()) / count / self.total_edges
        # The edges' part of the offset's gradient is the negative released number of edges.
        surplus = logits.sigmoid().sum() * per_edge - 1
        return {name: gradient * per_edge for name, gradient in total.items()}, surplus


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

    curve_names: ClassVar[tuple[str, ...]] = (_DIVERGENCE, _ADVERSARIAL, _SEPARATION)

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
        blocks = random_blocks(self.sizes, self.hparams["sample_rate"], self.trainer.world_size)
        real = self.sums.scaled(self.sums.rows[blocks.nodes])
        width = self.hparams["latent_dim"]
        latent = self.latent(self.inputs(blocks.nodes), prior(blocks, width))
        rebuilt, fake = (self._drawn_rows(blocks, z) for z in (latent, prior(blocks, width)))
        describe, mask = self.discriminator.describe, blocks.mask
        distance = structure_loss(describe(real, mask), describe(rebuilt, mask))
        loss = distance / self.total_edges + generator_loss(self.discriminator(fake, mask))
        autoencoder = self._parameters_of(discriminator=False)
        self.log_curve(_ADVERSARIAL, loss)
        public_backward(self, self.hparams["gan_weight"] * loss, autoencoder)
        separation = discriminator_loss(
            self.discriminator(real, mask), self.discriminator(fake.detach(), mask)
        )
        self.log_curve(_SEPARATION, separation)
        public_backward(self, separation, list(self.discriminator.parameters()))

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
