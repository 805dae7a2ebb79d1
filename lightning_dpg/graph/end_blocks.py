"""Blocks of nodes in graphs of any kind: the order of their turns, and edges by blocks of both ends.

Where pairs have two parts, as in a directed or a bipartite graph, block c of K is class c of the first
ends of pairs and class K + c of the second ends.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.graph.pair_space import PairSpace

Cells = tuple[NDArray[np.int64], NDArray[np.int64]]


def end_classes(space: PairSpace, blocks: Tensor, num_blocks: int) -> Tensor:
    """Return the class of each entry of the degree vector: ``(N,)`` to ``(num_ends,)``."""
    places = torch.arange(space.num_ends)
    is_second = (places >= space.parts[-1].start) & is_two_sided(space)
    return blocks.cpu()[places % space.num_nodes] + num_blocks * is_second.long()


def is_two_sided(space: PairSpace) -> bool:
    """Return whether the two ends of a pair are of different sorts."""
    return len(space.parts) == 2


def class_cells(space: PairSpace, num_blocks: int) -> Cells:
    """Return rows and columns of the cells of :func:`count_links` that pairs can fall into."""
    if not is_two_sided(space):
        lower: Cells = np.tril_indices(num_blocks)
        return lower
    rows, columns = np.divmod(np.arange(num_blocks**2), num_blocks)
    return num_blocks + rows, columns


def no_pairs(space: PairSpace) -> NDArray[np.int64]:
    """Return both entries of each node that is on both sides, which form no pair: ``(K, 2)``."""
    if space.num_ends == space.num_nodes:
        return np.empty((0, 2), dtype=np.int64)
    nodes = np.arange(space.num_nodes)
    return np.stack([nodes, nodes + space.num_nodes], axis=1)


def by_role(space: PairSpace, degrees: Tensor) -> list[Tensor]:
    """Split a degree vector by part; nodes outside of a part have 0, each of shape ``(N,)``."""
    roles = []
    for part in space.parts:
        role = degrees.new_zeros(space.num_nodes)
        role[torch.arange(part.start, part.stop) % space.num_nodes] = degrees[
            part.start : part.stop
        ]
        roles.append(role)
    return roles


def turn_order(space: PairSpace, degrees: Tensor, num_first: int) -> Tensor:
    """Order nodes by descending degrees, all N nodes.

    In a bipartite graph nodes are linked to the other side only. So the first ``num_first`` nodes
    are on the smaller side, and all others take turns between the sides, by their ranks in them.

    Args:
        space: Pairs that may be linked.
        degrees: Released degrees of shape ``(num_ends,)``.
        num_first: Number of nodes before all others.
    """
    total = torch.stack(by_role(space, degrees)).sum(dim=0)
    if space.num_left is None:
        return total.argsort(descending=True, stable=True)
    rank = torch.empty(space.num_nodes, dtype=torch.double)
    for part in space.parts:
        order = degrees[part.start : part.stop].argsort(descending=True, stable=True)
        size = part.stop - part.start
        rank[part.start + order] = (torch.arange(size).double() + 0.5) / size
    smaller = min(space.parts, key=lambda part: part.stop - part.start)
    nodes = torch.arange(smaller.start, smaller.stop)
    first = nodes[rank[nodes].argsort(stable=True)][:num_first]
    rank[first] -= 1
    return rank.argsort(stable=True)
