"""DPGVAE: an autoencoder of graph sets under edge differential privacy."""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from lightning_dpg.advice import Facts
from lightning_dpg.interfaces import BatchRequest
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.graph_set.graph_vae.decoding import (
    GraphOdds,
    draw_pairs,
    optimizers,
    public_features,
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
from lightning_dpg.nn.graph_vae import CONTEXT_DIM, PairDecoder, RowEncoder
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.ledger import LedgerEntry
from lightning_dpg.privacy.sampling import PoissonBatch


class DPGVAE(GraphSetSynthesizer):
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
        nodes, at every step through an encoder without noise, so that its Theorem 1 does not hold;
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
        """Adam for the autoencoder."""
        return optimizers(self.hparams["learning_rate"], self.parameters())

    def step_entries(self) -> list[LedgerEntry]:
        """One sampled Gaussian per step."""
        return [self.dpsgd.entry]

    def training_step(self, batch: PoissonBatch, batch_idx: int) -> None:
        """Take one private step of the autoencoder.

        Args:
            batch: Poisson sample of edges of shape ``(B, 2)``, B may be 0.
            batch_idx: Number of the batch.
        """
        edges = self.dpsgd.drawn(batch)
        (optimizer,) = zeroed_optimizers(self)
        private_half(self, self.autoencoder, self.dpsgd, edges)
        self._public_terms()
        optimizer.step()

    def _public_terms(self) -> None:
        """Add the gradient of all terms that read no edge."""
        names = ("public_pairs", "max_grad_norm", "kl_weight")
        public_half(self, self.autoencoder, **{name: self.hparams[name] for name in names})

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
