"""Some graphs of a set as dense blocks of one tensor, without a loop over graphs."""

from typing import NamedTuple

import torch
from torch import Tensor


class DenseBlocks(NamedTuple):
    """Where the nodes of B graphs are, padded to the largest of them. Reads sizes, no edge.

    Attributes:
        graphs: Numbers of the graphs in their set, shape ``(B,)``.
        nodes: Numbers of their nodes in the sequence of all nodes, shape ``(B, n)``; 0 in padding.
        mask: Which places hold a node, shape ``(B, n)``.
    """

    graphs: Tensor
    nodes: Tensor
    mask: Tensor

    @property
    def pairs(self) -> Tensor:
        """Which places hold a pair of nodes i < j of one graph, shape ``(B, n, n)``."""
        return (self.mask[:, :, None] & self.mask[:, None, :]).triu(1)


def dense_blocks(sizes: Tensor, graphs: Tensor) -> DenseBlocks:
    """Blocks of the graphs with the numbers ``graphs``.

    Args:
        sizes: Number of nodes of each graph of the set, shape ``(G,)``.
        graphs: Different numbers of graphs, shape ``(B,)``.
    """
    starts = (sizes.cumsum(0) - sizes)[graphs]
    places = torch.arange(int(sizes[graphs].max()), device=sizes.device)
    mask = places < sizes[graphs, None]
    return DenseBlocks(graphs, torch.where(mask, starts[:, None] + places, 0), mask)


def dense_adjacency(edges: Tensor, sizes: Tensor, blocks: DenseBlocks) -> Tensor:
    """Symmetric 0/1 matrices of shape ``(B, n, n)`` of the graphs of some blocks.

    Args:
        edges: Edges of all graphs of the set, shape ``(M, 2)``, in the numbers of all nodes.
        sizes: Number of nodes of each graph of the set, shape ``(G,)``.
        blocks: Blocks of some of its graphs.
    """
    block = torch.full_like(sizes, -1)
    block[blocks.graphs] = torch.arange(len(blocks.graphs), device=sizes.device)
    of_edge = block[torch.searchsorted(sizes.cumsum(0), edges[:, 0].contiguous(), right=True)]
    edges, of_edge = edges[of_edge >= 0], of_edge[of_edge >= 0]
    first, second = (edges - blocks.nodes[of_edge, :1]).T
    width = blocks.mask.shape[1]
    adjacency = torch.zeros(len(blocks.graphs), width, width, device=sizes.device)
    adjacency[of_edge, first, second] = 1.0
    adjacency[of_edge, second, first] = 1.0
    return adjacency


def random_pairs(sizes: Tensor, count: int) -> Tensor:
    """Pairs of two nodes of one graph, each pair of the set equally likely, with replacement.

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
