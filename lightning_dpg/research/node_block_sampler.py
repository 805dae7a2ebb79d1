"""NodeBlockSampler: a block sampler with noise for all edges of a node of bounded degree."""

import math
from typing import ClassVar

import torch
from torch import Tensor

from lightning_dpg.graph.statistics_source import GraphStatisticsSource
from lightning_dpg.methods.constraints import Constraints
from lightning_dpg.methods.planning import Reads, check_shares
from lightning_dpg.methods.single_graph.base import node_num_edges_entry, noisy_num_edges
from lightning_dpg.methods.single_graph.max_degree import (
    MAX_DEGREE,
    degree_assumption,
    degree_condition,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation
from lightning_dpg.privacy.guard import check_guard
from lightning_dpg.privacy.label_sampling import chain_facts
from lightning_dpg.privacy.sensitivity import (
    node_label_utility_sensitivity,
    node_pair_bit_sensitivity,
    node_partition_sensitivity,
)
from lightning_dpg.research.label_groups import (
    GUARD,
    LabelSampler,
    is_paid_by_guard,
)


class NodeBlockSampler(LabelSampler):
    r"""Graphs with communities under node-level privacy, by one draw of all labels; experimental.

    The steps are those of :class:`BlockSampler` behind its guard, with noise for D edges in place of
    one. The degrees are not released, since their noise would exceed them: all nodes count alike in
    the law of the labels, and all nodes of a drawn graph have nearly the same degree. The labels get
    94 % of the budget.

    When to use:
        For research on a few large communities under node-level privacy, if a small bound on the
        degrees is known and two conditions are acceptable. The program never recommends it.
        :class:`NodeDegrees` releases degrees at this level without a condition, and
        :class:`NodeAttributeMoments` links by public attributes under the first condition alone.

    Privacy:
        Pure epsilon-DP at the level of nodes (all edges of one node are removed; the node stays)
        under **two conditions**: **if** no node has more than ``max_degree`` edges, in the graph and
        in its neighbors ("restricted" DP), and **if** the Markov chain has come to its stationary
        law, which it is not known to. A larger degree is refused, and this refusal is not protected.
        Without the second condition the guard proves D g only, where g is ``guard_epsilon``:
        hundreds, which protects nothing. It proves g for a single edge, without any condition. Each
        is one number for all reads together. Where the budget's epsilon is D g or more, the run pays
        for the guard alone: one read of epsilon D g, under the first condition. Edges that are
        exchanged for others are two changes of this relation. The set of nodes is public.

    Cost:
        As :class:`BlockSampler`: a sweep takes time O(M + N K) for K groups, and memory is
        O(N K + M).

    Args:
        max_degree: Largest degree D (public, assumed).
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        num_communities: Number of groups K (public).
        sweeps: Number of sweeps of the chain (public).
        guard_epsilon: The g of the guard, for one edge. By default :func:`guard_epsilon` of the
            number of nodes; an infinite one is no guard.
        degree_share: Share of the budget for the number of edges.
        block_share: Share of the budget for the edges within and between groups; the labels get the
            rest.
    """

    relation = Relation.NODE

    constraints: ClassVar[Constraints] = {"max_degree": MAX_DEGREE}

    def __init__(
        self,
        max_degree: int,
        num_nodes: int | None = None,
        num_communities: int = 2,
        sweeps: int = 150,
        guard_epsilon: float | None = None,
        degree_share: float = 0.03,
        block_share: float = 0.03,
    ) -> None:
        super().__init__()
        check_shares(degree_share=degree_share, block_share=block_share)
        if guard_epsilon is not None:
            check_guard(guard_epsilon)
        self.save_hyperparameters()

    @property
    def _proved(self) -> float:
        """Epsilon of the guard, for all edges of a node."""
        return self.hparams["max_degree"] * self.guard

    def condition(self) -> str:
        """Both conditions of the guarantee, with the number that the guard proves without the chain."""
        bound, sweeps = self.hparams["max_degree"], self.hparams["sweeps"]
        degrees, proved, budget = degree_condition(bound), self._proved, self.ledger.budget
        if budget is not None and is_paid_by_guard(proved, budget.epsilon):
            return degrees
        both = (
            f"{degrees}; and the Markov chain over labels has come to its stationary law within its "
            f"{sweeps:,} sweeps, which is not proved, and not exactly so on all graphs"
        )
        if math.isinf(proved):
            return f"{both}; there is no guard, so that nothing is guaranteed without the chain"
        return (
            f"{both}; without the chain, and within the degrees, node-level ({proved:.15g}, 0)-DP "
            "only, by randomized response before all reads"
        )

    def on_fit_start(self) -> None:
        """Refuse degrees beyond the bound, and state the bound."""
        super().on_fit_start()
        bound = self.hparams["max_degree"]
        self.assumptions.append(degree_assumption(self.records.edges, bound))

    def guard_entry(self) -> LedgerEntry:
        """Cost of the guard for all edges of a node."""
        bound = self.hparams["max_degree"]
        return LedgerEntry.proved(
            GUARD,
            "edges",
            Pure(self._proved),
            node_pair_bit_sensitivity,
            bound,
            relation=self.relation,
        )

    def reads_behind(self, budget: Budget) -> list[LedgerEntry]:
        """Plan the number of edges, labels and the edges between groups."""
        degrees, blocks = self.hparams["degree_share"], self.hparams["block_share"]
        parts = budget.split(degrees=degrees, blocks=blocks, labels=1 - degrees - blocks)
        bound = self.hparams["max_degree"]
        return [
            node_num_edges_entry(parts["degrees"].epsilon, bound),
            LedgerEntry.proved(
                "block_labels",
                "labels of nodes",
                Pure(parts["labels"].epsilon),
                node_label_utility_sensitivity,
                bound,
                relation=self.relation,
                public=chain_facts(self.hparams["sweeps"], self._proved),
            ),
            LedgerEntry.proved(
                "community_links",
                "edges within and between communities",
                Pure(parts["blocks"].epsilon),
                node_partition_sensitivity,
                bound,
                relation=self.relation,
            ),
        ]

    def release_degrees(
        self, source: GraphStatisticsSource, reads: Reads
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Release the number of edges; degrees that are all the same are spread over the nodes."""
        none = torch.zeros(self.hparams["num_nodes"], dtype=torch.long)
        return noisy_num_edges(self, source, reads), none, torch.ones_like(none)

    def num_labels(self, budget: Budget) -> int:
        """Number of groups."""
        return min(self.hparams["num_communities"], self.hparams["num_nodes"])
