"""DPGGAN: DPGVAE with a discriminator of whole graphs, at no further privacy cost."""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.optim import Optimizer

from lightning_dpg.advice import Facts
from lightning_dpg.graph.dense_batch import DenseBatch
from lightning_dpg.interfaces import BatchRequest
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.graph_set.graph_vae.decoding import (
    GraphOdds,
    draw_pairs,
    optimizers,
    parameters_but_of,
    prior,
    public_features,
    random_blocks,
    released_tensors,
    zeroed_optimizers,
)
from lightning_dpg.methods.graph_set.graph_vae.edge_training import (
    DIVERGENCE_CURVE,
    NoisySums,
    RowAutoencoder,
    check_shares,
    edge_training,
    num_edges_entry,
    private_half,
    public_half,
    simpler_methods,
)
from lightning_dpg.nn.graph_vae import (
    CONTEXT_DIM,
    Discriminator,
    PairDecoder,
    RowEncoder,
    RowReadout,
    discriminator_loss,
    generator_loss,
    sample_adjacency,
    structure_loss,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.ledger import LedgerEntry
from lightning_dpg.privacy.sampling import PoissonBatch
from lightning_dpg.privacy.sensitivity import aggregation_sensitivity


class DPGGAN(GraphSetSynthesizer):
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
        clipped gradients of nodes can change by far more than the clipping norm, so that its proof
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

    curve_names: ClassVar[tuple[str, ...]] = (DIVERGENCE_CURVE,)
    features: Tensor

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
        super().__init__()
        self.save_hyperparameters()
        check_shares(count_share, aggregation_share)
        self.decoder = PairDecoder(latent_dim + CONTEXT_DIM, hidden_dim)
        self.offset = nn.Parameter(torch.zeros(()))
        self.encoder = RowEncoder(hops * feature_dim + CONTEXT_DIM, hidden_dim, latent_dim)
        self.sums = NoisySums(hops, feature_dim, aggregation_share)
        self.dpsgd = edge_training(noise_multiplier, max_grad_norm, sample_rate)
        describer = RowReadout(hops * feature_dim, hidden_dim, latent_dim)
        self.discriminator = Discriminator(describer, latent_dim, hidden_dim)

    def batch_request(self) -> BatchRequest:
        """Poisson samples of edges."""
        return BatchRequest("poisson", self.hparams["sample_rate"])

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the numbers of edges, the sums over neighbors, and the steps."""
        counts = num_edges_entry(self.hparams["count_share"] * budget.epsilon)
        before = [counts, *self.sums.planned(budget)]
        return before + self.dpsgd.planned(budget, steps, before)

    def cheaper_settings(self) -> str:
        """Suggest smaller shares of the first releases, and more noise if it is a number."""
        h = self.hparams
        lower = f"lower count_share {h['count_share']:g} or aggregation_share"
        raised = "" if self.dpsgd.is_auto else ", or raise noise_multiplier or set it to auto"
        return f"{lower} {h['aggregation_share']:g}{raised}"

    def on_fit_start(self) -> None:
        """Fix the noise of the steps, then make the releases that the steps read."""
        super().on_fit_start()
        num_nodes = int(self.sizes.sum())
        self.features = public_features(num_nodes, self.hparams["feature_dim"]).to(self.device)
        if self.dpsgd.begin(self):
            self._release(self.records.edges)

    def _release(self, edges: Tensor) -> None:
        """Release numbers of edges, then sums over neighbors, of edges ``(M, 2)`` (private)."""
        budget = self.budget
        self.release_num_edges_per_graph(edges, self.hparams["count_share"] * budget.epsilon)
        self.sums.release(edges, self.features, budget, ledger=self.ledger, noise=self.noise)

    def configure_optimizers(self) -> list[Optimizer]:
        """Adam for the autoencoder, and for the discriminator."""
        autoencoder = parameters_but_of(self, "discriminator")
        return optimizers(
            self.hparams["learning_rate"], autoencoder, self.discriminator.parameters()
        )

    def step_entries(self) -> list[LedgerEntry]:
        """One sampled Gaussian per step."""
        return [self.dpsgd.entry]

    def training_step(self, batch: PoissonBatch, batch_idx: int) -> None:
        """Take one private step of the autoencoder, and one of the discriminator.

        Args:
            batch: Poisson sample of edges of shape ``(B, 2)``, B may be 0.
            batch_idx: Number of the batch.
        """
        edges = self.dpsgd.drawn(batch)
        optimizer, other = zeroed_optimizers(self)
        private_half(self, self.autoencoder, self.dpsgd, edges)
        self._public_terms()
        optimizer.step()
        other.step()

    def _public_terms(self) -> None:
        """Add the gradient of all terms that read no edge."""
        names = ("public_pairs", "max_grad_norm", "kl_weight")
        public_half(self, self.autoencoder, **{name: self.hparams[name] for name in names})
        self._adversarial_terms()

    def _adversarial_terms(self) -> None:
        """Add the gradients of the discriminator, and of the autoencoder's adversarial loss."""
        model, sums = self.autoencoder, self.sums
        blocks = random_blocks(self.sizes, self.hparams["sample_rate"], self.trainer.world_size)
        real = sums.scaled(sums.rows[blocks.nodes])
        width = self.hparams["latent_dim"]
        latent = model.latent(model.inputs(blocks.nodes), prior(blocks, width))
        rebuilt, fake = (self._drawn_rows(blocks, z) for z in (latent, prior(blocks, width)))
        describe, mask = self.discriminator.describe, blocks.mask
        distance = structure_loss(describe(real, mask), describe(rebuilt, mask))
        loss = distance / model.total_edges + generator_loss(self.discriminator(fake, mask))
        self.public_backward(
            self.hparams["gan_weight"] * loss, parameters_but_of(self, "discriminator")
        )
        judged = discriminator_loss(
            self.discriminator(real, mask), self.discriminator(fake.detach(), mask)
        )
        self.public_backward(judged, list(self.discriminator.parameters()))

    def _drawn_rows(self, blocks: DenseBatch, latent: Tensor) -> Tensor:
        """Sums over neighbors of graphs drawn from latent vectors, with noise as in real ones."""
        logits = self.autoencoder.odds.logits(latent, blocks.graphs)
        adjacency = sample_adjacency(logits, blocks.pairs)
        std = float(self.sums.noise_multiplier) * aggregation_sensitivity()
        hops, rows = [], normalize(self.features[blocks.nodes], dim=-1)
        for _ in range(self.hparams["hops"]):
            sums = adjacency @ rows
            hops.append(sums + std * torch.randn_like(sums))
            rows = normalize(hops[-1], dim=-1)
        return self.sums.scaled(torch.cat(hops, -1))

    @property
    def autoencoder(self) -> RowAutoencoder:
        """The networks trained on edges, around the released rows."""
        odds = GraphOdds(self.decoder, self.offset, self.sizes, self.num_edges)
        return RowAutoencoder(self.encoder, odds, self.sums, self.hparams["latent_dim"])

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
