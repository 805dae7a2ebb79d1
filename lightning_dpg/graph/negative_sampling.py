"""Sampling of node pairs without an edge for link prediction (reads the private graph)."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.graph.pair_indices import num_pairs, numbered_pairs, pair_numbers

_DRAWS_PER_WINDOW = 4
_DRAWS_AMONG_ALL = 64


def uniform_non_edges(graph: Data, count: int, generator: torch.Generator) -> Tensor:
    """Draw different non-edges, each set of ``count`` of them being equally likely.

    Args:
        graph: Graph of N nodes.
        count: Number of non-edges P.
        generator: Source of the draw.

    Returns:
        Pairs of shape ``(P, 2)``, each a row ``i < j``, in lexicographic order.
    """
    num_nodes = int(graph.num_nodes)
    edges = undirected_edges(graph)
    available = num_pairs(num_nodes) - len(edges)
    if not 0 <= count <= available:
        raise ValueError(f"count must lie between 0 and the {available} non-edges, got {count}")
    # Non-edge number r has as many edges before it as edges have at most r non-edges before them.
    numbers = pair_numbers(edges, num_nodes)
    chosen = _distinct_integers(available, count, generator)
    chosen += torch.searchsorted(numbers - torch.arange(len(edges)), chosen, right=True)
    return numbered_pairs(chosen, num_nodes)


def degree_matched_non_edges(graph: Data, edges: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a non-edge for each edge, with ends of the same degrees.

    Degree products cannot distinguish these non-edges from the edges. Degrees are counted without
    ``edges``: a model does not see the held-out edges, which would otherwise give their own ends
    away. An end that is part of no fitting non-edge, mostly a hub, gets a partner or a replacement
    of the nearest degrees that allow one. Non-edges may repeat.

    Args:
        graph: Graph of N nodes.
        edges: Pairs of shape ``(P, 2)``, usually held-out edges of the graph.
        generator: Source of the draw.

    Returns:
        Pairs of shape ``(P, 2)``, each a row ``i < j``; row k belongs to row k of ``edges``.
    """
    num_nodes = int(graph.num_nodes)
    edge_keys = _keys(undirected_edges(graph), num_nodes)
    others = undirected_edges(graph)[~torch.isin(edge_keys, _keys(edges, num_nodes))]
    sorted_degrees, by_degree = torch.sort(
        torch.bincount(others.flatten(), minlength=num_nodes), stable=True
    )
    degrees = torch.empty_like(sorted_degrees)
    degrees[by_degree] = sorted_degrees
    ends = degrees[edges]
    first = torch.searchsorted(sorted_degrees, ends)
    last = torch.searchsorted(sorted_degrees, ends, right=True)

    pairs = torch.empty_like(edges)
    missing = torch.arange(len(edges))
    for reach in _reaches(num_nodes):
        low = (first[missing] - reach).clamp(min=0)
        width = (last[missing] + reach).clamp(max=num_nodes) - low
        share = torch.rand(low.shape, dtype=torch.float64, generator=generator)
        drawn = by_degree[low + (share * width).long()].sort(dim=1).values
        is_pair = drawn[:, 0] < drawn[:, 1]
        fits = is_pair & ~torch.isin(_keys(drawn, num_nodes), edge_keys)
        pairs[missing[fits]] = drawn[fits]
        missing = missing[~fits]
        if not len(missing):
            return pairs
    raise ValueError(
        f"found no degree-matched non-edge for {len(missing)} of {len(edges)} edges: the graph "
        f"of {num_nodes} nodes and {len(edge_keys)} edges is too dense"
    )


def _reaches(num_nodes: int) -> list[int]:
    """List the ranks by which a draw may leave the nodes of its degree; the last allow all."""
    widening = [2**k - 1 for k in range(num_nodes.bit_length())]
    return [r for r in widening for _ in range(_DRAWS_PER_WINDOW)] + [num_nodes] * _DRAWS_AMONG_ALL


def _keys(pairs: Tensor, num_nodes: int) -> Tensor:
    """Return one number per pair, the same for both orientations."""
    return pairs.min(dim=1).values * num_nodes + pairs.max(dim=1).values


def _distinct_integers(high: int, count: int, generator: torch.Generator) -> Tensor:
    """Draw a uniform set of ``count`` integers below ``high``, sorted."""
    if 2 * count > high:
        return torch.randperm(high, generator=generator)[:count].sort().values
    drawn = torch.empty(0, dtype=torch.long)
    while len(drawn) < count:
        new = torch.randint(high, (count - len(drawn),), generator=generator)
        drawn = torch.unique(torch.cat([drawn, new]))
    return drawn
