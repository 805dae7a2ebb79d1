"""Dense batches of graphs of a set, in the manner of PyG's ``to_dense_batch``, without a loop."""

from typing import NamedTuple

import torch
from torch import Tensor


class DenseBatch(NamedTuple):
    """Places of the nodes of B graphs, padded to the largest graph. Reads sizes, no edge.

    Attributes:
        graphs: Numbers of the graphs in their set, shape ``(B,)``.
        nodes: Numbers of their nodes in the union of all graphs, shape ``(B, n)``; 0 in padding.
        mask: Mask of the places that hold a node, shape ``(B, n)``.
    """

    graphs: Tensor
    nodes: Tensor
    mask: Tensor

    @property
    def pairs(self) -> Tensor:
        """Mask of the pairs of nodes i < j of one graph, shape ``(B, n, n)``."""
        return (self.mask[:, :, None] & self.mask[:, None, :]).triu(1)


def dense_batch(sizes: Tensor, graphs: Tensor) -> DenseBatch:
    """Lay out the nodes of some graphs of a set.

    Args:
        sizes: Number of nodes of each graph of the set, shape ``(G,)``.
        graphs: Different numbers of graphs, shape ``(B,)``.
    """
    starts = (sizes.cumsum(0) - sizes)[graphs]
    places = torch.arange(int(sizes[graphs].max()), device=sizes.device)
    mask = places < sizes[graphs, None]
    return DenseBatch(graphs, torch.where(mask, starts[:, None] + places, 0), mask)


def dense_adjacency(edges: Tensor, sizes: Tensor, batch: DenseBatch) -> Tensor:
    """Return the symmetric 0/1 adjacency matrices of a dense batch, shape ``(B, n, n)``.

    Args:
        edges: Edges of all graphs of the set, shape ``(M, 2)``, in the numbers of all nodes.
        sizes: Number of nodes of each graph of the set, shape ``(G,)``.
        batch: Dense batch of some graphs of the set.
    """
    place = torch.full_like(sizes, -1)
    place[batch.graphs] = torch.arange(len(batch.graphs), device=sizes.device)
    of_edge = place[torch.searchsorted(sizes.cumsum(0), edges[:, 0].contiguous(), right=True)]
    edges, of_edge = edges[of_edge >= 0], of_edge[of_edge >= 0]
    first, second = (edges - batch.nodes[of_edge, :1]).T
    width = batch.mask.shape[1]
    adjacency = torch.zeros(len(batch.graphs), width, width, device=sizes.device)
    adjacency[of_edge, first, second] = 1.0
    adjacency[of_edge, second, first] = 1.0
    return adjacency


def random_pairs(sizes: Tensor, count: int) -> Tensor:
    """Draw node pairs within graphs, each pair of the set equally likely, with replacement.

    Args:
        sizes: Number of nodes of each graph of the set, shape ``(G,)``.
        count: Number of pairs P.

    Returns:
        Pairs of shape ``(P, 2)`` in the numbers of all nodes, in either order.
    """
    weights = sizes.double() * (sizes - 1)
    graphs = torch.multinomial(weights, count, replacement=True)
    size = sizes[graphs]
    uniform = torch.rand(2, count, dtype=torch.float64, device=sizes.device)
    first = (uniform[0] * size).long()
    second = (uniform[1] * (size - 1)).long()
    second += second >= first
    starts = (sizes.cumsum(0) - sizes)[graphs]
    return torch.stack([starts + first, starts + second], 1)
