"""PrivCom with noise for all edges of a node, for graphs of bounded degrees."""

from functools import partial
from typing import ClassVar

import torch
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor

from lightning_dpg.graph.low_rank_edges import degrees_by_rows
from lightning_dpg.graph.statistics_source import GraphStatisticsSource
from lightning_dpg.methods.constraints import Constraints, at_least
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.base import node_num_edges_entry, noisy_num_edges
from lightning_dpg.methods.single_graph.max_degree import (
    MAX_DEGREE,
    degree_assumption,
    degree_condition,
)
from lightning_dpg.papers.zhang2020.matrix import bounded_katz
from lightning_dpg.papers.zhang2020.power_method import (
    NoisyPowerMethod,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.sensitivity.matrix_products import (
    katz_sensitivity,
    node_product_sensitivity,
    node_rayleigh_sensitivity,
)


class NodePrivCom(NoisyPowerMethod):
    r"""Graphs with communities under node-level privacy, from noisy eigenvectors; experimental.

    All edges of a node are one record. The number of edges is released first, and the degrees
    follow from the eigenvectors; the steps are as in :class:`PrivCom`. The noise is as large as the
    largest signal, whatever the number of nodes.

    When to use:
        To study node-level privacy. The method finds nothing at an epsilon of 16 and below, for
        graphs of any size, and a run warns of it. At this level take :class:`NodeDegrees` for degrees,
        and :class:`NodeAttributeMoments` for links if attributes are public. A few large communities
        are found by :class:`NodeBlockSampler`, under one more condition. For communities take
        :class:`PrivCom` or :class:`PrivGraph`, which protect single edges.

    Privacy:
        (epsilon, delta)-DP at the level of nodes (all edges of one node are removed; the node
        stays), **if** no node has more than ``max_degree`` edges, in the graph and in its neighbors
        ("restricted" DP). A larger degree is refused, and this refusal is not protected. One
        changed link is two changes of this relation: (2 epsilon, (1 + e^epsilon) delta).

    Cost:
        Time is O(T K (2h + 1) (N + M) + T K^2 N) and memory O(N K + M), with no limit on N.

    Differences from the paper:
        The paper's sensitivity covers any two graphs at once; here it follows from the bound on
        degrees. The number of steps is a public setting, and ``hops`` is 0 by default, which is the
        adjacency matrix.

    * Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy",
      2020.
    * Hardt, Roth, "Beyond worst-case analysis in private singular vector computation", 2013.

    Args:
        max_degree: Largest degree D (public, assumed).
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        hops: Hops h of the Katz matrix :math:`\sum_{l \le 2h+1} \beta^l A^l` at :math:`\beta = 1 /
            2D`; 0 is the adjacency matrix.
        rank: Number of eigenvectors K.
        iterations: Steps T.
        momentum: Weight of the earlier steps, which averages noise.
        clip: Length to which rows of V are shortened, over that of the rows of a flat basis,
            :math:`\sqrt{K/N}`.
        degree_share: Share of epsilon for the number of edges.
        value_share: Share of the rest (of its zCDP parameter) for the eigenvalues.
    """

    relation = Relation.NODE

    constraints: ClassVar[Constraints] = {"max_degree": MAX_DEGREE, "hops": at_least(0)}

    def __init__(
        self,
        max_degree: int,
        num_nodes: int | None = None,
        hops: int = 0,
        rank: int = 4,
        iterations: int = 24,
        momentum: float = 0.85,
        clip: float = 0.5,
        degree_share: float = 0.2,
        value_share: float = 0.02,
    ) -> None:
        super().__init__(num_nodes, rank, iterations)
        self.save_hyperparameters()
        self.matrix = bounded_katz(hops, max_degree)

    def condition(self) -> str:
        """Condition of the guarantee: the bound on the degrees."""
        return degree_condition(self.hparams["max_degree"])

    def check_records(self, edges: Tensor) -> None:
        """Refuse degrees beyond the bound, and state the bound."""
        self.assumptions.append(degree_assumption(edges, self.hparams["max_degree"]))

    def announce(self) -> None:
        """Report the largest possible signal relative to the noise, if there is noise."""
        std = self.product_std()
        if not std:
            return
        size, rank = self.rows.shape
        ratio = self.matrix.signal_to_noise(self.hparams["max_degree"], size, rank, std)
        rank_zero_warn(
            f"signal-to-noise ratio of a step: at most {ratio:.2g}, whatever the graph\n"
            "NodePrivCom finds nothing at an epsilon of 16 and below, however large the graph, and "
            "protects within max_degree only (restricted node-level DP)\n"
            "NodeDegrees releases degrees at this level, NodeAttributeMoments links by public "
            "attributes,\nand NodeBlockSampler finds large groups, under one more condition"
        )

    def planned_counts(self, budget: Budget) -> list[LedgerEntry]:
        """Plan the number of edges."""
        part = budget.split(degrees=self.hparams["degree_share"])["degrees"]
        return [node_num_edges_entry(part.epsilon, self.hparams["max_degree"])]

    def release_counts(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the number of edges."""
        self.num_edges = noisy_num_edges(self, source, reads)

    def product_bound(self, block: Tensor) -> "partial[float]":
        """Bound on the change of the product by the edges of a node."""
        if self.matrix.hops:
            return self._katz_bound()
        return partial(node_product_sensitivity, block, self.hparams["max_degree"])

    def value_bound(self, basis: Tensor) -> "partial[float]":
        """Bound on the change of the two-sided product by the edges of a node."""
        if self.matrix.hops:
            return self._katz_bound()
        return partial(node_rayleigh_sensitivity, basis, self.hparams["max_degree"])

    def _katz_bound(self) -> "partial[float]":
        decay, terms, most = self.matrix.decay, self.matrix.terms, self.hparams["max_degree"]
        return partial(katz_sensitivity, decay, terms, most, changed_edges=most)

    @torch.no_grad()
    def release_values(self) -> None:
        """Release the eigenvalues, and read degrees off the estimate."""
        super().release_values()
        self.degrees = degrees_by_rows(self.rows, int(self.num_edges))
