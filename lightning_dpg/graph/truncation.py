"""Truncation of a graph to degrees of at most D; one edge then changes few kept edges.

Take two graphs that differ in one edge. The *stretch* of a truncation is the largest number of edges
in which their truncated graphs differ. Let a function have a bound on the effect of an edge, for
graphs with degrees of at most D. This bound times the stretch holds for the truncated graph, see
:func:`lightning_dpg.privacy.sensitivity.subgraph_counts.truncated_sensitivity`.

* Blocki, Blum, Datta, Sheffet, "Differentially private data analysis of social networks via
  restricted sensitivity", 2013.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.errors import Refusal


def truncate(edges: Tensor, num_nodes: int, max_degree: int, order: int = 0) -> Tensor:
    """Keep edges that are among the first D of both their ends in an order of all pairs.

    The stretch is 3. Let a pair {u, v} become an edge, or cease to be one. Whether another edge is
    kept depends on its rank among the edges of each of its ends, and ranks change at u and v only.
    Of the first D edges of u at most one other leaves, that of rank D, or enters, that of rank D +
    1; likewise at v. These two and {u, v} are all that may change.

    The order must not depend on the graph: greedy addition of edges in an order of the existing
    edges has no bounded stretch. Any fixed order of the pairs is valid. An order by node numbers
    would keep the edges to low numbers, hence the default is pseudo-random: a bijection of 64 bits
    scatters the pairs, without ties and whatever the graph.

    Args:
        edges: Rows ``i < j`` of shape ``(M, 2)``.
        num_nodes: Number of nodes N.
        max_degree: D, 1 or more (public).
        order: Number of the pseudo-random order (public).

    Returns:
        The kept edges in the order in which they came, shape ``(M', 2)``.

    Raises:
        Refusal: If ``max_degree`` is below 1.
    """
    _check_degree(max_degree)
    pairs = edges.cpu().numpy()
    keys = scatter_pairs(pairs, order)
    ends = pairs.T.ravel()
    sequence = np.lexsort((np.concatenate([keys, keys]), ends))
    degree = np.bincount(ends, minlength=num_nodes)
    before = np.cumsum(degree) - degree
    rank = np.empty(len(ends), dtype=np.int64)
    rank[sequence] = np.arange(len(ends)) - before[ends[sequence]]
    is_kept = (rank < max_degree).reshape(2, -1).all(axis=0)
    return edges[torch.from_numpy(is_kept).to(edges.device)]


def drop_high_degree(edges: Tensor, num_nodes: int, max_degree: int) -> Tensor:
    """Drop the edges of all nodes with more than D of them.

    The stretch is max(1, 2D). Let {u, v} become an edge; when it ceases to be one, the same holds
    backwards. Other nodes keep their degrees. If neither u nor v passes D, nothing but {u, v} may
    change. A node that passes D had D edges and loses them all, and {u, v} is not kept then: these
    are 2D at most.

    Args:
        edges: Rows ``i < j`` of shape ``(M, 2)``.
        num_nodes: Number of nodes N.
        max_degree: D, 1 or more (public).

    Returns:
        The kept edges in the order in which they came, shape ``(M', 2)``.

    Raises:
        Refusal: If ``max_degree`` is below 1.
    """
    _check_degree(max_degree)
    low = torch.bincount(edges.flatten(), minlength=num_nodes) <= max_degree
    return edges[low[edges].all(dim=1)]


def scatter_pairs(pairs: NDArray[np.int64], order: int) -> NDArray[np.uint64]:
    """Map each pair to a different 64-bit number, shape ``(M,)``.

    Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014, the last function
    of SplitMix64 in Stafford's variant 13: each of its steps is invertible.
    """
    low, high = pairs.astype(np.uint64).T
    start = np.uint64(order * 0x9E3779B97F4A7C15 % 2**64)
    keys = ((low << np.uint64(32)) | high) + start
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def _check_degree(max_degree: int) -> None:
    if max_degree < 1:
        raise Refusal(f"max_degree must be 1 or more, got {max_degree}")
