"""BlockSampler: labels of nodes by one draw from a block model, behind a guard."""

import math

from torch import Tensor

from lightning_dpg.graph.statistics_source import GraphStatisticsSource
from lightning_dpg.methods.planning import Reads, check_shares
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure
from lightning_dpg.privacy.guard import check_guard
from lightning_dpg.privacy.label_sampling import chain_facts
from lightning_dpg.privacy.sensitivity import (
    edge_partition_sensitivity,
    label_utility_sensitivity,
    pair_bit_sensitivity,
)
from lightning_dpg.research.label_groups import (
    GUARD,
    LabelSampler,
    is_paid_by_guard,
)

_DEGREE_SHARES = {"count_share": 0.2, "sequence_share": 0.25}
# Numbers of communities, tuned on Citeseer and synthetic graphs.
_FEW, _MORE, _MANY = 8, 16, 32
_DENSE = 20.0
_LARGE_EPSILON = 4.0


class BlockSampler(LabelSampler):
    r"""Graphs from one draw of the labels of all nodes: the posterior of a block model, tempered.

    1. Flips each pair of nodes with probability :math:`1 / (1 + e^g)`: the guard. All that follows
       reads the result in place of the edges.
    2. Releases the number of edges and the degree of each node, see :func:`release_degrees`.
    3. Draws the labels of all nodes at once, by the exponential mechanism with the number of edges
       between nodes of equal labels as utility, and a Markov chain (:func:`sample_labels`).
       :class:`GroupedLabels` has the law, which expects edges in proportion to the released degrees.
    4. Releases the edges within and between groups with discrete Laplace noise, and takes off the
       false ones that the guard adds in expectation. Shrinks the rates within groups, and those
       between them, to their means by the share of noise.
    5. Draws graphs with these degrees and edges between groups, as :class:`PrivGraph`.

    A node of :class:`PrivGraph` sees its neighbors of earlier turns only. Here each node is drawn
    again and again, with all neighbors, and each edge is paid for once.

    When to use:
        For research on links and communities without attributes, where a conditional guarantee is
        enough, beside :class:`PrivGraph`, whose guarantee has no condition. The program never
        recommends it.

    Privacy:
        At the level of edges (one undirected edge is added or removed) two numbers hold, and the
        privacy statement has both. Pure epsilon-DP at the epsilon of the budget, **if** the Markov
        chain has come to its stationary law. It is not known to, and on graphs with many communities
        it does not. By exact computation on all graphs of five nodes, drawn in turn, a chain of one
        sweep loses up to 5.17 where 3 is claimed, one of two sweeps 4.08, one of ten 3.17, and one of
        the default 150 no more than 3; this says nothing of larger graphs. In any case, whatever the
        chain does, pure g-DP by the guard, at a g of 8 up to 10,000 nodes. The second number is one
        for all reads together. Where the budget's epsilon is g or more, the run pays for the guard
        alone: one read of epsilon g, without a condition. The set of nodes is public.

    Cost:
        A sweep takes time O(M + N K) for K groups, in blocks of nodes without an edge inside. Memory is
        O(N K + M). The guard takes time and memory in proportion to M and its false edges.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        num_communities: Number of groups K (public). By default 8; 16 from an epsilon of 4 on; 32
            from an epsilon of 1 and a released mean degree of 20 on.
        sweeps: Number of sweeps of the chain (public).
        guard_epsilon: The g of the guard. By default :func:`guard_epsilon` of the number of nodes; at
            most 30. An infinite one is no guard: then nothing holds unless the chain is stationary.
        degree_share: Share of the budget for the number of edges and the degrees.
        block_share: Share of the budget for the edges within and between groups; the labels get the
            rest.
    """

    def __init__(
        self,
        num_nodes: int | None = None,
        num_communities: int | None = None,
        sweeps: int = 150,
        guard_epsilon: float | None = None,
        degree_share: float = 0.3,
        block_share: float = 0.06,
    ) -> None:
        super().__init__()
        check_shares(degree_share=degree_share, block_share=block_share)
        if guard_epsilon is not None:
            check_guard(guard_epsilon)
        self.save_hyperparameters()

    def condition(self) -> str | None:
        """Condition of the guarantee, with the one that holds in any case; None if that is as good."""
        budget = self.ledger.budget
        if budget is not None and is_paid_by_guard(self.guard, budget.epsilon):
            return None
        chain = (
            "the Markov chain over labels has come to its stationary law within its "
            f"{self.hparams['sweeps']:,} sweeps, which is not proved, and not exactly so on all graphs"
        )
        if math.isinf(self.guard):
            return f"{chain}; there is no guard, so that nothing else is guaranteed"
        return (
            f"{chain}; in any case edge-level ({self.guard:.15g}, 0)-DP, by randomized response "
            "before all reads"
        )

    def epsilon_in_any_case(self) -> float | None:
        """Epsilon of the guard, which stands before all reads; None without a guard."""
        is_off = math.isinf(self.guard) or (
            self.ledger.budget is not None and math.isinf(self.ledger.budget.epsilon)
        )
        return None if is_off else self.guard

    def guard_entry(self) -> LedgerEntry:
        """Cost of the guard for one edge."""
        return LedgerEntry.proved(GUARD, "edges", Pure(self.guard), pair_bit_sensitivity)

    def reads_behind(self, budget: Budget) -> list[LedgerEntry]:
        """Plan degrees, labels and the edges between groups."""
        degrees, blocks = self.hparams["degree_share"], self.hparams["block_share"]
        parts = budget.split(degrees=degrees, blocks=blocks, labels=1 - degrees - blocks)
        return [
            *degree_entries(parts["degrees"], **_DEGREE_SHARES),
            LedgerEntry.proved(
                "block_labels",
                "labels of nodes",
                Pure(parts["labels"].epsilon),
                label_utility_sensitivity,
                public=chain_facts(self.hparams["sweeps"], self.guard),
            ),
            LedgerEntry.proved(
                "community_links",
                "edges within and between communities",
                Pure(parts["blocks"].epsilon),
                edge_partition_sensitivity,
            ),
        ]

    def release_degrees(
        self, source: GraphStatisticsSource, reads: Reads
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Release the number of edges and the degree of each node."""
        num_edges, degrees = release_degrees(self, source, reads)
        return num_edges, degrees, degrees

    def num_labels(self, budget: Budget) -> int:
        """Number of groups, by the budget of the run, public and released values."""
        number, epsilon = self.hparams["num_communities"], budget.epsilon
        if number is None:
            mean_degree = 2 * int(self.num_edges) / self.hparams["num_nodes"]
            number = _MORE if epsilon >= _LARGE_EPSILON else _FEW
            if mean_degree >= _DENSE and epsilon >= 1:
                number = _MANY
        return min(number, self.hparams["num_nodes"])
