"""NodeBlockSampler: a block sampler with noise for all edges of a node of bounded degree."""

import math

import numpy as np
import torch
from torch import Tensor

from lightning_dpg.graph.block_rates import fewer_degrees
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer, noisy_num_edges
from lightning_dpg.methods.single_graph.degree_release import check_shares
from lightning_dpg.methods.single_graph.label_groups import (
    check_sampler,
    group_scores,
    guard_entry,
    guard_of,
    guarded_edges,
    is_paid_by_guard,
    label_law,
    linked_groups,
    release_links,
    sampler_parts,
)
from lightning_dpg.methods.single_graph.privcom.max_degree import (
    check_max_degree,
    degree_assumption,
    degree_condition,
)
from lightning_dpg.privacy.guard import flip_rate
from lightning_dpg.privacy.label_sampling import labels_entry, sample_labels
from lightning_dpg.privacy.ledger import Budget, LedgerEntry, Relation
from lightning_dpg.privacy.mechanisms import pure_entry
from lightning_dpg.privacy.sensitivity import (
    node_label_utility_sensitivity,
    node_pair_bit_sensitivity,
    node_partition_sensitivity,
)
from lightning_dpg.privacy.sensitivity.matrix_products import node_edge_count_sensitivity

_RECORD = "edges of a node"


class NodeBlockSampler(OneShotSynthesizer):
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
        check_sampler(num_communities, sweeps, guard_epsilon)
        check_max_degree(max_degree)
        self.save_hyperparameters()
        self.degrees: Tensor
        self.communities: Tensor
        self.links: Tensor
        self.register_buffer("degrees", torch.empty(0, dtype=torch.long))
        self.register_buffer("communities", torch.empty(0, dtype=torch.long))
        self.register_buffer("links", torch.empty(0, 0, dtype=torch.long))

    @property
    def guard(self) -> float:
        """Epsilon of the guard, for one edge."""
        return guard_of(self.hparams["guard_epsilon"], self.hparams["num_nodes"])

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

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the number of edges, labels and the edges between groups, or the guard.

        The number of steps has no effect.
        """
        if is_paid_by_guard(self._proved, budget.epsilon):
            return [self._guard_entry()]
        parts = self._parts(budget.epsilon)
        count = pure_entry(
            "num_edges",
            "number of edges",
            parts["degrees"].epsilon,
            node_edge_count_sensitivity(self.hparams["max_degree"]),
            "node_edge_count_sensitivity",
            relation=self.relation,
            record=_RECORD,
        )
        return [count, self._labels(parts["labels"].epsilon), self._links(parts["blocks"].epsilon)]

    def _guard_entry(self) -> LedgerEntry:
        sensitivity = node_pair_bit_sensitivity(self.hparams["max_degree"])
        proof = "node_pair_bit_sensitivity"
        return guard_entry(self._proved, sensitivity, proof, self.relation, _RECORD)

    def _labels(self, epsilon: float) -> LedgerEntry:
        bound = self.hparams["max_degree"]
        return labels_entry(
            "block_labels",
            "labels of nodes",
            epsilon,
            "node_label_utility_sensitivity",
            sweeps=self.hparams["sweeps"],
            guard=self._proved,
            sensitivity=node_label_utility_sensitivity(bound),
            relation=self.relation,
            record=_RECORD,
        )

    def _links(self, epsilon: float) -> LedgerEntry:
        return pure_entry(
            "community_links",
            "edges within and between communities",
            epsilon,
            node_partition_sensitivity(self.hparams["max_degree"]),
            "node_partition_sensitivity",
            relation=self.relation,
            record=_RECORD,
        )

    def release(self, edges: Tensor, epsilon: float) -> None:
        """Release the number of edges, labels, and the edges between groups behind the guard."""
        guard = math.inf if math.isinf(epsilon) else self.guard
        entry = self._guard_entry() if is_paid_by_guard(self._proved, epsilon) else None
        with guarded_edges(self, edges, guard, entry) as known:
            self._release_behind(known, epsilon, flip_rate(guard))

    def _release_behind(self, known: Tensor, epsilon: float, false: float) -> None:
        """Release all from a graph behind a guard that flips pairs with the probability ``false``."""
        parts = self._parts(epsilon)
        self.num_edges = noisy_num_edges(
            self,
            known,
            parts["degrees"].epsilon,
            sensitivity=node_edge_count_sensitivity(self.hparams["max_degree"]),
            proof="node_edge_count_sensitivity",
            record=_RECORD,
        )
        self.degrees = torch.ones(self.hparams["num_nodes"], dtype=torch.long)
        self._release_labels(known, parts["labels"].epsilon)
        # Degrees that are all the same are spread evenly over the nodes.
        degrees, num_edges = fewer_degrees(
            np.zeros(self.hparams["num_nodes"], np.int64), int(self.num_edges), false
        )
        self.degrees, self.num_edges = torch.from_numpy(degrees), torch.tensor(num_edges)
        self.links = release_links(
            self,
            known,
            self._links(parts["blocks"].epsilon),
            self.communities,
            self.degrees,
            num_edges,
            false,
        )

    def _release_labels(self, edges: Tensor, epsilon: float) -> None:
        """Release the label of each node, at the cost of an edge in the law of the labels."""
        entry, count = self._labels(epsilon), int(self.num_edges)
        rate = epsilon / entry.sensitivity
        size = min(self.hparams["num_communities"], self.hparams["num_nodes"])
        model = label_law(edges.numpy(), self.degrees, size, count, rate)
        sweeps = self.hparams["sweeps"]
        self.communities = sample_labels(model, self.ledger, self.noise, entry, sweeps)

    def _parts(self, epsilon: float) -> dict[str, Budget]:
        return sampler_parts(epsilon, self.hparams["degree_share"], self.hparams["block_share"])

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Link half-edges of nearly equal degrees at random, by the edge counts of groups."""
        return linked_groups(self.space, self.communities, self.degrees, self.links, generator)

    def score(self, pairs: Tensor) -> Tensor:
        """Expected number of edges of pairs ``(P, 2)``, see :func:`group_scores`."""
        return group_scores(pairs, self.communities, self.degrees, self.links)
