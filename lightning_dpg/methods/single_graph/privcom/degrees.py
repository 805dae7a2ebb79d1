"""The number of edges and the degrees, as the edge-level classes of PrivCom release them."""

from torch import Tensor

from lightning_dpg.methods.single_graph.base import CountsEdges
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.privacy.ledger import LedgerEntry

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
    return degree_entries(epsilon, count_share=_COUNT_PART, sequence_share=_SEQUENCE_PART)
