"""AttributeMoments with noise for all edges of a node, for graphs of bounded degrees."""

import torch
from torch import Tensor

from lightning_dpg.methods.single_graph.attribute_encoder.attribute_moments import (
    AttributeMoments,
)
from lightning_dpg.methods.single_graph.base import noisy_num_edges
from lightning_dpg.methods.single_graph.privcom.max_degree import (
    check_max_degree,
    degree_assumption,
    degree_condition,
)
from lightning_dpg.privacy.ledger import LedgerEntry, Relation
from lightning_dpg.privacy.mechanisms import pure_entry
from lightning_dpg.privacy.sensitivity import node_moment_sensitivity
from lightning_dpg.privacy.sensitivity.matrix_products import node_edge_count_sensitivity

_RANK = 16


class NodeAttributeMoments(AttributeMoments):
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
        ("restricted" DP). A larger degree is refused, and this refusal is not protected. The set of
        nodes and the attributes are public, those of the protected node among them.

    Cost:
        Time is O(N F r + (N + M) r^2) and memory O(N F + M), with no limit on N. A graph of M edges
        takes O(M r) for each round of swaps.

    Differences from the paper:
        There is no paper. See :class:`AttributeMoments`.

    Args:
        max_degree: Largest degree D (public, assumed).
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of principal components r; by default 16.
        degree_share: Share of epsilon for the number of edges.
    """

    relation = Relation.NODE
    kinds = frozenset({"undirected"})

    def __init__(
        self,
        max_degree: int,
        num_nodes: int | None = None,
        rank: int | None = None,
        degree_share: float = 0.2,
    ) -> None:
        super(AttributeMoments, self).__init__()
        self.save_hyperparameters()
        check_max_degree(max_degree)
        self._build(rank, degree_share)

    @property
    def record(self) -> str:
        """Unit of protection in words."""
        return "edges of a node"

    def condition(self) -> str:
        """Condition of the guarantee: the bound on the degrees."""
        return degree_condition(self.hparams["max_degree"])

    def on_fit_start(self) -> None:
        """Refuse degrees beyond the bound, state the bound, and compute the public rows."""
        super().on_fit_start()
        bound = self.hparams["max_degree"]
        self.assumptions.append(degree_assumption(self.records.edges, bound))

    def planned_counts(self, epsilon: float) -> list[LedgerEntry]:
        """Plan the number of edges."""
        return [
            pure_entry(
                "num_edges",
                "number of edges",
                epsilon,
                node_edge_count_sensitivity(self.hparams["max_degree"]),
                "node_edge_count_sensitivity",
                relation=self.relation,
                record=self.record,
            )
        ]

    def release_counts(self, edges: Tensor, epsilon: float) -> None:
        """Release the number of edges ``(M, 2)`` (private), and give all nodes equal degrees."""
        self.num_edges = noisy_num_edges(
            self,
            edges,
            epsilon,
            sensitivity=node_edge_count_sensitivity(self.hparams["max_degree"]),
            proof="node_edge_count_sensitivity",
            record=self.record,
        )
        num_nodes = self.hparams["num_nodes"]
        lower, rest = divmod(2 * int(self.num_edges), num_nodes)
        self.degrees = lower + (torch.arange(num_nodes) < rest).long()

    def moment_sensitivity(self) -> tuple[float, str]:
        """Sensitivity of the moment by all edges of a node, and the name of its proof."""
        return node_moment_sensitivity(self.hparams["max_degree"]), "node_moment_sensitivity"

    def default_rank(self, epsilon: float) -> int:
        """Number of principal components; the noise of a node leaves room for few."""
        return _RANK
