"""Counts of walks in each graph of a set."""

import numpy as np
import torch
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graphlets import adjacency_matrix, membership_matrix


def walk_counts(edges: Tensor, graph_of: Tensor, num_graphs: int, length: int) -> Tensor:
    r"""Count walks :math:`1^T A^l 1` of each length :math:`l = 1, \dots, L` in each graph.

    Args:
        edges: Edges of all graphs, rows ``i < j`` of shape ``(M, 2)``.
        graph_of: Graph of each node, shape ``(N,)``.
        num_graphs: Number of graphs G.
        length: Largest length L.

    Returns:
        Whole numbers of shape ``(G, L)``. Not noisy: release only through a mechanism.

    Raises:
        Refusal: If all walks of a length are more than 2^62, which 64 bits might not hold.
    """
    matrix = adjacency_matrix(edges, len(graph_of))
    members = membership_matrix(graph_of, num_graphs)
    degree = np.diff(matrix.indptr).astype(np.float64)
    counts = np.empty((num_graphs, length), dtype=np.int64)
    walks = np.ones(len(graph_of), dtype=np.int64)
    for step in range(length):
        # The sum after the step, before anything can overflow
        if degree @ walks > 2.0**62:
            raise Refusal(
                f"more than 2^62 walks of length {step + 1}: lower the length or truncate"
            )
        walks = matrix @ walks
        counts[:, step] = members @ walks
    return torch.from_numpy(counts)
