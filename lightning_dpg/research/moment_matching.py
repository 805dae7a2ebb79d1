"""A decoder of graphs, trained against the pooled statistics of a set at no cost in privacy."""

from typing import ClassVar, NamedTuple

import numpy as np
import torch
from pytorch_lightning.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor
from torch.optim import Adam
from torch.optim.lr_scheduler import CosineAnnealingLR

from lightning_dpg.graph.dense_batch import DenseBatch
from lightning_dpg.interfaces import BatchRequest, GraphSetRecords
from lightning_dpg.methods.constraints import Constraints, at_least
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.graph_set.pooled_set.degree_shapes import expected_degrees
from lightning_dpg.methods.graph_set.pooled_set.pooled_statistics import (
    POOLED_SETTINGS,
    PooledStatistics,
    released_wedges,
)
from lightning_dpg.methods.graph_set.pooled_set.statistics import bin_shares
from lightning_dpg.nn.graph_moments import (
    binned_degrees,
    draw_adjacency,
    latin_normal,
    maximum_mean_discrepancy,
    num_triangles,
)
from lightning_dpg.papers.yang2021.decoding import (
    draw_pairs_of_nodes,
    random_blocks,
    with_context,
)
from lightning_dpg.papers.yang2021.networks import CONTEXT_DIM, PairDecoder, graph_context
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry


class Targets(NamedTuple):
    """Statistics that released numbers give to each graph of a set.

    Attributes:
        weights: Weight of each place of the ordered degrees in each bin, over the number of
            possible neighbors, shape ``(N, bins)`` (public).
        wedges: Number of pairs of edges that share a node, shape ``(G,)``.
        context: Scaled size and density, shape ``(G, 2)``.
        moments: Mean degrees in bins as shares of the possible neighbors, and share of the wedges
            that triangles close, shape ``(G, bins + 1)``.
    """

    weights: Tensor
    wedges: Tensor
    context: Tensor
    moments: Tensor

    def moments_of(self, adjacency: Tensor, blocks: DenseBatch) -> Tensor:
        """Return the moments of drawn graphs ``(B, n, n)``, which replace some of the set."""
        weights = self.weights[blocks.nodes] * blocks.mask[:, :, None]
        degrees = binned_degrees(adjacency.sum(-1), weights)
        closed = 3 * num_triangles(adjacency) / self.wedges[blocks.graphs].clamp(min=1)
        return torch.cat([degrees, closed[:, None]], 1)


class PooledGMMN(GraphSetSynthesizer):
    r"""A generative moment matching network of graphs, trained on the release of ``PooledSet``.

    The releases are those of :class:`PooledSet`, with the same noise: numbers of edges of each
    graph, and degrees, triangles and components pooled by class. Training reads nothing else and
    costs nothing, however many steps it has: the gradients need no clipping, no noise and no
    accountant, unlike those of :class:`DPGVAE`, whose decoder this method trains.

    A step draws latent vectors and graphs of the released numbers of edges for some graphs of the
    set, with straight-through gradients. Its loss is the squared maximum mean discrepancy, with
    Gaussian kernels, between the statistics of the drawn graphs and the statistics that the
    released numbers give to the same graphs. Size and density are part of both vectors: the
    decoder learns how the statistics depend on them. Components are released and not matched: the
    gradient of what a search of components reaches did not train the decoder.

    When to use:
        As the deep baseline of :class:`PooledSet`, for sets of dense graphs. Edges are independent
        given the latent vectors. Degrees vary more than in the originals, and sparse graphs
        fall apart: for molecules and other sparse graphs take :class:`PooledSet`.

    Privacy:
        Pure epsilon-DP at the level of edges, as :class:`PooledSet`: one undirected edge of one
        graph is added or removed, and the noise covers edges that are repeated in the set. The
        guarantee has no condition and needs no delta. The number of graphs and their numbers of
        nodes are public. The loss is a function of released numbers, and may be shown.

    Cost:
        A step takes dense matrices of ``graphs_per_step`` graphs: its time grows with the cube of
        their largest number of nodes and its memory with the square. More than 2^26 entries are
        refused. For graphs of up to a hundred nodes 500 steps take a quarter of a minute; with graphs
        of 600 nodes a step takes seconds, and ``graphs_per_step`` has to be small. To draw a
        graph takes time and memory that grow with the square of its nodes.

    * Li, Swersky, Zemel, "Generative Moment Matching Networks", 2015.
    * Harder, Adamczewski, Park, "DP-MERF: Differentially Private Mean Embeddings with Random
      Features for Practical Privacy-Preserving Data Generation", 2021, where a release is made once
      and a generator is trained on it.
    * Yang et al., "Secure Deep Graph Generation with Link Differential Privacy", 2021: the decoder.

    Args:
        degree_share: Share of the budget for the ordered degrees.
        triangle_share: Share of the budget for the triangles.
        component_share: Share of the budget for the components; the numbers of edges get the rest.
        graphs_per_class: Number of graphs that a class has in the mean (public).
        bins: Number of bins of the ordered degrees.
        num_steps: Steps of the whole run, all of them in one epoch.
        graphs_per_step: Graphs that a step draws, at most as many as the set has.
        hidden_dim: Width of both layers of the decoder.
        latent_dim: Width of the latent vectors.
        learning_rate: First learning rate of Adam; it falls to 0 over the run.
    """

    is_pure: ClassVar[bool] = True
    is_trained: ClassVar[bool] = True
    repeats_edges: ClassVar[bool] = True
    curve_names: ClassVar[tuple[str, ...]] = ("train/discrepancy",)
    constraints: ClassVar[Constraints] = {
        **POOLED_SETTINGS,
        "num_steps": at_least(1),
        "graphs_per_step": at_least(2),
    }

    def __init__(
        self,
        degree_share: float = 0.15,
        triangle_share: float = 0.15,
        component_share: float = 0.05,
        graphs_per_class: int = 100,
        bins: int = 10,
        num_steps: int = 500,
        graphs_per_step: int = 64,
        hidden_dim: int = 32,
        latent_dim: int = 2,
        learning_rate: float = 2e-2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = True
        self.pooled = PooledStatistics(
            degree_share, triangle_share, component_share, graphs_per_class, bins
        )
        self.decoder = PairDecoder(latent_dim + CONTEXT_DIM, hidden_dim)
        self._targets: Targets | None = None

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the four releases of :class:`PooledSet`; the number of steps has no effect."""
        return self.pooled.plan(self, budget)

    def batch_request(self) -> BatchRequest:
        """Request the steps of the whole run; a step reads no record."""
        return BatchRequest("all", steps_per_epoch=self.hparams["num_steps"])

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """Adam for the decoder, with a learning rate that falls to 0 over the run."""
        optimizer = Adam(self.decoder.parameters(), self.hparams["learning_rate"])
        schedule = CosineAnnealingLR(optimizer, self.hparams["num_steps"])
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_fit_start(self) -> None:
        """Release all statistics, unless a resumed run has done so."""
        super().on_fit_start()
        if not len(self.num_edges):
            self.pooled.release(self, self.records.edges, self.plan(self.budget, 1))
        self._targets = self._released_targets()

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> Tensor:
        """Discrepancy of drawn graphs from the released statistics; the batch is not read."""
        assert self._targets is not None
        share = min(self.hparams["graphs_per_step"] / len(self.sizes), 1.0)
        blocks = random_blocks(self.sizes, share, self.trainer.world_size)
        context = self._targets.context[blocks.graphs]
        latent = latin_normal(blocks.mask, self.hparams["latent_dim"])
        logits = self.decoder.logits(with_context(latent, context[:, None]))
        adjacency = draw_adjacency(logits, blocks.pairs, self.num_edges[blocks.graphs])
        moments = self._targets.moments_of(adjacency, blocks)
        targets = self._targets.moments[blocks.graphs]
        loss = maximum_mean_discrepancy(
            torch.cat([moments, context], 1), torch.cat([targets, context], 1)
        )
        self.log_curve("train/discrepancy", loss, prog_bar=True)
        return loss

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw latent vectors from the prior, and edges by their log odds."""
        mask = torch.ones(1, size, dtype=torch.bool)
        (latent,) = latin_normal(mask, self.hparams["latent_dim"], generator)
        offset = torch.zeros((), device=self.device)
        return draw_pairs_of_nodes(self.decoder, offset, latent, num_edges, generator)

    def released_state(self) -> dict[str, Tensor]:
        """Sizes, estimated numbers of edges, the statistics of each class, and the decoder."""
        return dict(self.state_dict())

    def _released_targets(self) -> Targets:
        """Targets of each graph: a function of released tensors alone."""
        sizes, counts = self.sizes.cpu().numpy(), self.num_edges.cpu().numpy()
        classes = self.pooled.classes().of(sizes, counts)
        graph_of = np.repeat(np.arange(len(sizes)), sizes)
        shape, bins = self.pooled.shape.cpu().numpy(), self.hparams["bins"]
        degrees = [
            expected_degrees(int(size), int(count), shape[k])
            for size, count, k in zip(sizes, counts, classes, strict=True)
        ]
        wedges = released_wedges(sizes, counts, shape[classes])
        weights = bin_shares(sizes, bins) / np.maximum(sizes - 1, 1)[graph_of, None]
        totals, means = np.zeros((len(sizes), bins)), np.zeros((len(sizes), bins))
        np.add.at(totals, graph_of, bin_shares(sizes, bins))
        weights /= np.maximum(totals[graph_of], 1e-9)
        np.add.at(means, graph_of, weights * np.concatenate(degrees)[:, None])
        closed = self.pooled.closed_share.cpu().numpy()[classes, None]
        moments = np.concatenate([means, closed], 1)
        return Targets(
            torch.from_numpy(weights).float().to(self.device),
            torch.tensor(wedges, device=self.device).float(),
            graph_context(self.sizes, self.num_edges),
            torch.from_numpy(moments).float().to(self.device),
        )
