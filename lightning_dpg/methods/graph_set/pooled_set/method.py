"""Graphs of a set with private numbers of edges and pooled private shapes."""

from random import Random
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.constraints import Constraints
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.graph_set.pooled_set.drawing import draw_edges
from lightning_dpg.methods.graph_set.pooled_set.pooled_statistics import (
    POOLED_SETTINGS,
    PooledStatistics,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry


class PooledSet(GraphSetSynthesizer):
    r"""Graphs with private numbers of edges, and with degrees and triangles pooled by class.

    The noise on a statistic of one small graph hides it. Summed over many graphs of similar size
    and density, the same noise is small. Four releases with discrete Laplace noise:

    1. The number of edges of each graph. One edge is in one graph; sensitivity 1. Posterior medians
       under a prior of densities, fitted to the noisy numbers alone, replace the noisy numbers.
       Graphs are then classes of similar public size and of similar estimated density.
    2. Degrees in descending order as shares of the possible neighbors, summed by class in ten
       bins, the largest degree in a bin of its own; see :func:`pooled_degree_sensitivity`.
    3. Triangles over n - 2, summed by class; see :func:`pooled_triangle_sensitivity`. They shrink
       to none where noise explains them, and to the mean of the set where it explains that
       classes differ; see :func:`closed_shares`.
    4. Nodes of the largest component over half the nodes, summed over the set; see
       :func:`pooled_component_sensitivity`. The graphs are taken for connected where the noise
       explains that the sum is smaller.

    A graph is drawn in four steps, all of them post-processing. The shape of the class, shifted to
    the number of edges, gives degrees. A simple graph of these degrees is drawn, shuffled by swaps
    of edges, and connected. Further swaps keep all degrees and bring the number of triangles to the
    share of closed wedges of the class.

    When to use:
        For a set of a hundred graphs or more whose triangles and degrees matter. Graphs of one class
        differ in size and number of edges only. For a set of few graphs take
        :class:`ErdosRenyiSet`, which is the baseline and should stand beside this method.

    Privacy:
        Pure epsilon-DP at the level of edges: one undirected edge of one graph is added or removed.
        If one private edge is several edges of the set, the noise covers all of them. The guarantee
        has no condition and needs no delta. The number of graphs and their numbers of nodes are
        public.

    Cost:
        Time O(M log M) to fit, and O(M) swaps to draw the set, of a few microseconds each for
        graphs of up to a thousand nodes. Where graphs have no node that is linked to all others,
        each swap also looks at all nodes of the graph.

    Args:
        degree_share: Share of the budget for the ordered degrees.
        triangle_share: Share of the budget for the triangles.
        component_share: Share of the budget for the components; the numbers of edges get the rest.
        graphs_per_class: Number of graphs that a class has in the mean (public).
        bins: Number of bins of the ordered degrees.
    """

    is_pure: ClassVar[bool] = True
    is_trained: ClassVar[bool] = False
    repeats_edges: ClassVar[bool] = True
    constraints: ClassVar[Constraints] = POOLED_SETTINGS

    def __init__(
        self,
        degree_share: float = 0.15,
        triangle_share: float = 0.15,
        component_share: float = 0.05,
        graphs_per_class: int = 100,
        bins: int = 10,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        # Lightning counts steps and keeps checkpoints under automatic optimization only.
        self.automatic_optimization = True
        self.pooled = PooledStatistics(
            degree_share, triangle_share, component_share, graphs_per_class, bins
        )

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the four releases; the number of steps has no effect."""
        return self.pooled.plan(self, budget)

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> None:
        """Release all statistics, unless a resumed run has done so."""
        if not len(self.num_edges):
            self.pooled.release(self, batch.edges, self.plan(self.budget, 1))
        self.trainer.should_stop = True

    def configure_optimizers(self) -> None:
        """Return None, since there is no gradient."""

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw a graph with the degrees, triangles and connection of its class."""
        count = num_edges or 0
        coins = Random(int(torch.randint(2**62, (), generator=generator)))
        (number,) = self.pooled.classes().of(np.array([size]), np.array([count]))
        edges = draw_edges(
            size,
            count,
            self.pooled.shape[number].cpu().numpy(),
            float(self.pooled.closed_share[number]),
            float(self.pooled.largest_share),
            coins,
        )
        return torch.tensor(edges, dtype=torch.long).view(-1, 2)

    def released_state(self) -> dict[str, Tensor]:
        """Sizes, estimated numbers of edges, and the statistics of each class."""
        return dict(self.state_dict())
