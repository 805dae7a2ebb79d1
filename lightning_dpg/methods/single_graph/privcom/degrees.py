"""The number of edges and the degrees, as the edge-level classes of PrivCom release them."""

from torch import Tensor

from lightning_dpg.methods.single_graph.base import CountsEdges
from lightning_dpg.methods.single_graph.degree_release import release_degrees
from lightning_dpg.privacy.ledger import LedgerEntry, Relation
from lightning_dpg.privacy.sensitivity import degree_l1_sensitivity, edge_count_sensitivity

# Parts of the share, as in PrivGraph.
_COUNT_PART = 0.2
_SEQUENCE_PART = 0.25


def release_counts(method: CountsEdges, edges: Tensor, epsilon: float) -> Tensor:
    """Release the number of edges and the degrees of shape ``(N,)``.

    Args:
        method: Pays and draws the noise; its ``num_edges`` is set.
        edges: Training records of shape ``(M, 2)`` (private).
        epsilon: What all releases together cost.
    """
    return release_degrees(
        method, edges, epsilon, count_share=_COUNT_PART, sequence_share=_SEQUENCE_PART
    )


def planned_counts(epsilon: float) -> list[LedgerEntry]:
    """Entries of these releases.

    Args:
        epsilon: What all releases together cost.
    """
    parts = {
        "number of edges": _COUNT_PART,
        "ordered degrees": _SEQUENCE_PART,
        "degree of each node": 1 - _COUNT_PART - _SEQUENCE_PART,
    }
    return [
        LedgerEntry(
            name=name,
            relation=Relation.EDGE,
            mechanism="pure",
            epsilon=part * epsilon,
            sensitivity=sensitivity(),
            proof=sensitivity.__name__,
            record="undirected edge",
        )
        for (name, part), sensitivity in zip(
            parts.items(),
            (edge_count_sensitivity, degree_l1_sensitivity, degree_l1_sensitivity),
            strict=True,
        )
    ]
