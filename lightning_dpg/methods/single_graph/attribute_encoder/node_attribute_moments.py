"""Links from public node attributes with noise for all edges of a node, for bounded degrees."""

from typing import ClassVar

import torch
from torch import Tensor

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.interfaces import AttributedGraphRecords
from lightning_dpg.methods.constraints import Constraints
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.attribute_encoder.attribute_moments import (
    MOMENT_SETTINGS,
    moment_entry,
)
from lightning_dpg.methods.single_graph.attribute_encoder.moment_scores import MomentScores
from lightning_dpg.methods.single_graph.base import (
    OneShotSynthesizer,
    node_num_edges_entry,
    noisy_num_edges,
)
from lightning_dpg.methods.single_graph.max_degree import (
    MAX_DEGREE,
    degree_assumption,
    degree_condition,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.sensitivity.neighbor_sums import node_moment_sensitivity

# The noise of a node leaves room for few components.
_RANK = 16


class NodeAttributeMoments(OneShotSynthesizer):
    r"""Links from public node attributes under node-level privacy, by one noisy moment.

    All edges of a node are one record. The moment of :class:`AttributeMoments` changes by D times
    as much, so it has fewer components. The degrees are not released: all nodes of a drawn graph
    have nearly the same degree.

    When to use:
        For links under node-level privacy, if attributes of the nodes are public, linked nodes have
        similar attributes, and a small bound on the degrees is known. For the protection of single
        edges take :class:`AttributeEncoder` or :class:`AttributeMoments`.

    Privacy:
        (epsilon, delta)-DP at the level of nodes (all edges of one node are removed; the node
        stays), **if** no node has more than ``max_degree`` edges, in the graph and in its neighbors
        ("restricted" DP). A larger degree is refused, and this refusal is not protected. Leaving
        edges out, as :class:`NodeDegrees` does, would not replace the bound: one node can change
        which edges are left all over the graph, and the moment with them. The set of nodes and the
        attributes are public, those of the protected node among them.

    Cost:
        Time is O(N F r + (N + M) r^2) and memory O(N F + M), with no limit on N. A graph of M edges
        takes O(M r) for each round of swaps.

    Differences from the paper:
        There is no paper. See :class:`AttributeMoments`, also for the limits of drawn graphs.

    Args:
        max_degree: Largest degree D (public, assumed).
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of principal components r; by default 16.
        degree_share: Share of epsilon for the number of edges.
    """

    reads: ClassVar[type] = AttributedGraphRecords
    is_pure: ClassVar[bool] = False
    constraints: ClassVar[Constraints] = {**MOMENT_SETTINGS, "max_degree": MAX_DEGREE}
    records: AttributedGraphRecords
    relation = Relation.NODE

    def __init__(
        self,
        max_degree: int,
        num_nodes: int | None = None,
        rank: int | None = None,
        degree_share: float = 0.2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.scores = MomentScores()

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the number of edges and the moment; the number of steps has no effect."""
        part = budget.split(counts=self.hparams["degree_share"])["counts"]
        bound = self.hparams["max_degree"]
        count = node_num_edges_entry(part.epsilon, bound)
        return [count, moment_entry(budget, [count], node_moment_sensitivity, bound)]

    def condition(self) -> str:
        """Condition of the guarantee: the bound on the degrees."""
        return degree_condition(self.hparams["max_degree"])

    def on_fit_start(self) -> None:
        """Compute the public rows; refuse degrees beyond the bound, and state the bound."""
        super().on_fit_start()
        if not self.is_released:
            self.scores.fit(self.records.attributes, self.hparams["rank"] or _RANK)
        bound = self.hparams["max_degree"]
        self.assumptions.append(degree_assumption(self.records.edges, bound))

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the number of edges, then the moment."""
        self.num_edges = noisy_num_edges(self, source, reads)
        self.scores.release(source.edges, reads["attribute_moment"], self)

    def score(self, pairs: Tensor) -> Tensor:
        """Score pairs of shape ``(P, 2)``: shape ``(P,)``."""
        scores: Tensor = self.scores(pairs)
        return scores

    def score_attributes(self, first: Tensor, second: Tensor) -> Tensor:
        """Score pairs of new nodes with attributes of shape ``(P, F)`` each: shape ``(P,)``."""
        return self.scores.of_attributes(first, second)

    @property
    def degrees(self) -> Tensor:
        """Degrees of a drawn graph, which differ by 1 at most: shape ``(N,)``."""
        num_nodes = self.hparams["num_nodes"]
        lower, rest = divmod(2 * int(self.num_edges), num_nodes)
        return lower + (torch.arange(num_nodes) < rest).long()

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw a graph of nearly equal degrees, then swap ends in favor of high scores."""
        num_edges = int(self.num_edges)
        return self.scores.sample_edges(self.space, self.degrees, num_edges, generator)
