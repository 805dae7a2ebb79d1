"""Sampling of node pairs without an edge for link prediction (reads the private graph)."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.pair_space import Part, space_of

_DRAWS_PER_WINDOW = 4
_DRAWS_AMONG_ALL = 64


def uniform_non_edges(graph: Data, count: int, generator: torch.Generator) -> Tensor:
    """Draw different non-edges, each set of ``count`` of them being equally likely.

    Args:
        graph: Graph of N nodes.
        count: Number of non-edges P.
        generator: Source of the draw.

    Returns:
        Pairs of shape ``(P, 2)`` in lexicographic order, as rows of the edges of the graph.
    """
    space = space_of(graph)
    return space.draw(space.edges(graph), count, generator)


def degree_matched_non_edges(graph: Data, edges: Tensor, generator: torch.Generator) -> Tensor:
    """Draw a non-edge for each edge, with ends of the same degrees.

    Degree products cannot distinguish these non-edges from the edges. Degrees are counted without
    ``edges``: a model does not see the held-out edges, which would otherwise give their own ends
    away. An end that is part of no fitting non-edge, mostly a hub, gets a partner or a replacement
    of the nearest degrees that allow one. Non-edges may repeat.

    Args:
        graph: Graph of N nodes.
        edges: Pairs of shape ``(P, 2)``, usually held-out edges of the graph, as it lists them.
        generator: Source of the draw.

    Returns:
        Pairs of shape ``(P, 2)``, as rows of the edges of the graph; row k belongs to row k of ``edges``.
    """
    space, num_nodes = space_of(graph), int(graph.num_nodes)
    all_edges = space.edges(graph)
    edge_keys = _keys(all_edges, num_nodes)
    degrees = space.degrees(all_edges[~torch.isin(edge_keys, _keys(edges, num_nodes))])
    # An undirected edge has both ends in the only part.
    parts = [_Sorted.of(degrees, part) for part in (space.parts * 2)[:2]]
    edge_degrees = degrees[space.ends(edges)]
    first, last = (
        torch.stack([part.place(edge_degrees[:, k], right) for k, part in enumerate(parts)], dim=1)
        for right in (False, True)
    )
    sizes = torch.tensor([len(part.degrees) for part in parts])

    pairs = torch.empty_like(edges)
    missing = torch.arange(len(edges))
    for reach in _reaches(num_nodes):
        low = (first[missing] - reach).clamp(min=0)
        width = torch.minimum(last[missing] + reach, sizes) - low
        share = torch.rand(low.shape, dtype=torch.float64, generator=generator)
        places = low + (share * width).long()
        ends = torch.stack([part.ends[places[:, k]] for k, part in enumerate(parts)], dim=1)
        candidates = space.from_ends(ends)
        is_pair = candidates[:, 0] != candidates[:, 1]
        fits = is_pair & ~torch.isin(_keys(candidates, num_nodes), edge_keys)
        pairs[missing[fits]] = candidates[fits]
        missing = missing[~fits]
        if not len(missing):
            return pairs
    raise Refusal(
        f"found no degree-matched non-edge for {len(missing)} of {len(edges)} edges: the graph "
        f"of {num_nodes} nodes and {len(edge_keys)} edges is too dense"
    )


def _reaches(num_nodes: int) -> list[int]:
    """List the ranks by which a draw may leave the nodes of its degree; the last allow all."""
    widening = [2**k - 1 for k in range(num_nodes.bit_length())]
    return [r for r in widening for _ in range(_DRAWS_PER_WINDOW)] + [num_nodes] * _DRAWS_AMONG_ALL


class _Sorted(NamedTuple):
    """One part of the degree vector in ascending order, with the places of its entries."""

    degrees: Tensor
    ends: Tensor

    @classmethod
    def of(cls, degrees: Tensor, part: Part) -> "_Sorted":
        """Sort a part of the degree vector."""
        ascending, places = torch.sort(degrees[part.start : part.stop], stable=True)
        return cls(ascending, places + part.start)

    def place(self, values: Tensor, right: bool) -> Tensor:
        """Return the ranks before, or behind, all entries of the given degrees."""
        return torch.searchsorted(self.degrees, values.contiguous(), right=right)


def _keys(pairs: Tensor, num_nodes: int) -> Tensor:
    """Return one number per pair."""
    return pairs[:, 0] * num_nodes + pairs[:, 1]
