"""Assembly of a graph from many generated edges."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def assemble(pairs: Tensor, num_nodes: int, num_edges: int, generator: torch.Generator) -> Tensor:
    r"""Choose the edges of a graph by how often they were generated.

    The score of an edge is :math:`s_{ij} = \max(c_{ij}, c_{ji})` with the counts of its two
    orientations. Each node that occurs draws one neighbor with a probability proportional to the
    score; then edges are drawn without replacement, with the same probabilities, until there are
    ``num_edges``. All of it is post-processing of the generated pairs.

    Args:
        pairs: Generated pairs of shape ``(S, 2)``, in any orientation; self loops are ignored.
        num_nodes: Number of nodes N.
        num_edges: Number of edges wanted, a public or a noisy number. There are more only if the
            nodes' own neighbors are more, and fewer only if fewer different edges were generated.
        generator: Source of the choice; equal states give equal graphs.

    Returns:
        Edges of shape ``(M, 2)``, each a row ``i < j``, in lexicographic order.

    References:
        Zheng et al., "Network Generation with Differential Privacy", 2021, section 2.2, after
        Bojchevski et al., "NetGAN: Generating Graphs via Random Walks", 2018.
    """
    if pairs.ndim != 2 or pairs.size(1) != 2:
        raise ValueError(f"pairs must have shape (S, 2), got {tuple(pairs.shape)}")
    if num_edges < 0:
        raise ValueError(f"num_edges must be 0 or more, got {num_edges}")
    if pairs.numel() and not (0 <= int(pairs.min()) and int(pairs.max()) < num_nodes):
        raise ValueError(f"pairs must hold node numbers from 0 to {num_nodes - 1}")
    if num_edges == 0:
        return torch.empty(0, 2, dtype=torch.long)
    edges, scores = _scores(pairs.cpu().long().numpy(), num_nodes)
    chosen = _one_neighbor_each(edges, scores, num_nodes, generator)
    missing = num_edges - int(chosen.sum())
    if missing > 0:
        rest = np.flatnonzero(~chosen)
        if len(rest) > missing:
            rest = rest[np.argpartition(_arrivals(scores[rest], generator), missing - 1)[:missing]]
        chosen[rest] = True
    return torch.from_numpy(edges[chosen])


def _scores(
    pairs: NDArray[np.int64], num_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return distinct edges ``i < j`` and the larger count of either direction."""
    first, second = pairs.T
    # One number per directed pair, whose last bit is the direction: sorting brings equal pairs
    # together and the two directions of an edge next to each other. In place, because fresh
    # memory costs more than the arithmetic.
    keys = np.minimum(first, second)
    keys *= num_nodes
    keys += np.maximum(first, second)
    keys *= 2
    keys += first > second
    keys = keys[first != second]
    keys.sort()
    starts = _run_starts(keys)
    counts = np.diff(starts, append=len(keys))
    keys = keys[starts] // 2
    starts = _run_starts(keys)
    scores = np.maximum.reduceat(counts, starts) if len(keys) else counts
    return np.stack(np.divmod(keys[starts], num_nodes), axis=1), scores


def _run_starts(ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    is_start = np.ones(len(ordered), dtype=bool)
    is_start[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(is_start)


def _one_neighbor_each(
    edges: NDArray[np.int64], scores: NDArray[np.int64], num_nodes: int, generator: torch.Generator
) -> NDArray[np.bool_]:
    """Draw one neighbor for each node; return a mask of the drawn edges."""
    # A node draws among its edges to smaller and to larger nodes alike.
    arrivals = [_arrivals(scores, generator) for _ in range(2)]
    earliest = np.full(num_nodes, np.inf)
    for ends, arrival in zip(edges.T, arrivals, strict=True):
        np.minimum.at(earliest, ends, arrival)
    lower, upper = edges.T
    return (arrivals[0] == earliest[lower]) | (arrivals[1] == earliest[upper])


def _arrivals(scores: NDArray[np.int64], generator: torch.Generator) -> NDArray[np.float64]:
    """Draw independent exponential variates of rates ``scores``.

    The smallest belongs to candidate k with probability ``scores[k] / sum(scores)``, and the M
    smallest ones are M draws without replacement.
    """
    unit = torch.empty(len(scores), dtype=torch.float64, device=generator.device)
    return unit.exponential_(generator=generator).cpu().numpy() / scores
