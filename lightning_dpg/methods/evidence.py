"""What noisy counts and degrees tell an attacker who knows all edges but the canaries.

Scores of an audit: any of them is valid, and the better they are, the more it finds. They read what
was released, and the graph without the canaries, of which the attacker is taken to know everything.
"""

import torch
from torch import Tensor
from torch_geometric.data import Data

# Weight of a release without noise, whose own would be infinite.
_CERTAIN = 100.0


def count_evidence(num_edges: Tensor, pairs: Tensor, known: Data) -> Tensor:
    """What a number of edges exceeds the expected one by; the same for all pairs ``(P, 2)``."""
    surplus = num_edges - known.edge_index.shape[1] // 2 - len(pairs) / 2
    return surplus.double().expand(len(pairs))


def surplus_degrees(degrees: Tensor, pairs: Tensor, known: Data) -> Tensor:
    """What degrees exceed the expected ones by, if half of the pairs ``(P, 2)`` are edges: ``(N,)``."""
    expected = torch.bincount(known.edge_index[0], minlength=len(degrees))
    canaries = torch.bincount(pairs.flatten(), minlength=len(degrees))
    return degrees.double().cpu() - expected - canaries / 2


def degree_evidence(degrees: Tensor, pairs: Tensor, known: Data) -> Tensor:
    """How much released degrees speak for each pair, from -1 to 1.

    Times the epsilon of discrete Laplace noise it is the logarithm of the likelihood ratio, where no
    node is in two pairs: beyond half an edge a surplus says nothing more.

    Args:
        degrees: Released degrees of shape ``(N,)``.
        pairs: Canaries of shape ``(P, 2)``.
        known: Graph of all other edges.
    """
    return surplus_degrees(degrees, pairs, known).clamp(-0.5, 0.5)[pairs].sum(1)


def weight(epsilon: float) -> float:
    """Epsilon, or a large number where it is infinite and would make nan of no evidence."""
    return min(epsilon, _CERTAIN)


def turns(graphs: Tensor) -> Tensor:
    """How many of the same number came before each, shape ``(P,)``."""
    order = graphs.argsort(stable=True)
    counts = torch.bincount(graphs)
    starts = (counts.cumsum(0) - counts)[graphs[order]]
    turns = torch.empty_like(graphs)
    turns[order] = torch.arange(len(graphs)) - starts
    return turns
