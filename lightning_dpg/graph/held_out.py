"""What is held out of a graph: nodes that have a class, and pairs without an edge (which reads the private graph)."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.pair_space import Part, space_of

_PER_CLASS, _VALIDATION, _TEST = 20, 500, 1000
_VALIDATION_SHARE = 0.4  # of the nodes that are not for training: 10 and 15 % beside 75 %
_DRAWS_PER_WINDOW = 4
_DRAWS_AMONG_ALL = 64


class Split(NamedTuple):
    """Numbers of the nodes of the three parts."""

    train: Tensor
    """Nodes whose classes a network learns from."""
    validation: Tensor
    """Nodes whose classes choose the step at which the training stops."""
    test: Tensor
    """Nodes whose classes are predicted."""


def split_nodes(classes: Tensor, seed: int, train_fraction: float | None = None) -> Split:
    """Split the nodes that have a class by a public coin.

    By default 20 nodes of each class are for training, 500 others for validation and 1,000 for the
    test, as in Kipf and Welling. A small graph has fewer: at most a third of a class for training,
    at least one node, and a third of the others for validation.

    Args:
        classes: Class of each node, shape ``(N,)``, -1 where there is none.
        seed: Public seed.
        train_fraction: Share of the nodes of each class for training, at least one node; two fifths
            of the others are for validation, and the rest for the test: .75 makes 75, 10 and 15 %.
    """
    order = _shuffled(classes, seed)
    parts = [order[classes[order] == label] for label in torch.unique(classes[order])]
    if train_fraction is None:
        counts = [max(1, min(_PER_CLASS, len(part) // 3)) for part in parts]
    else:
        counts = [max(1, round(train_fraction * len(part))) for part in parts]
    train = torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])
    return split_others(classes, train, seed, train_fraction)


def split_others(
    classes: Tensor, train: Tensor, seed: int, train_fraction: float | None = None
) -> Split:
    """Split the nodes that are not for training as :func:`split_nodes` does.

    Args:
        classes: Class of each node, shape ``(N,)``, -1 where there is none.
        train: Nodes for training, shape ``(K,)``.
        seed: Public seed.
        train_fraction: Where it is given, all other nodes are for validation or for the test.
    """
    order = _shuffled(classes, seed)
    others = order[~torch.isin(order, train)]
    if train_fraction is not None:
        return _split_rest(train, others)
    count = min(_VALIDATION, len(others) // 3)
    return Split(train, others[:count], others[count : count + _TEST])


def split_at_random(nodes: Tensor, seed: int, train_fraction: float) -> Split:
    """Split nodes by a public coin, without a look at their classes, which may be private.

    Args:
        nodes: Numbers of the nodes, shape ``(K,)``.
        seed: Public seed.
        train_fraction: Share of the nodes for training, at least one node; of the others as in
            :func:`split_nodes`.
    """
    order = nodes[torch.randperm(len(nodes), generator=torch.Generator().manual_seed(seed))]
    count = max(1, round(train_fraction * len(nodes)))
    return _split_rest(order[:count], order[count:])


def _split_rest(train: Tensor, others: Tensor) -> Split:
    """Divide the nodes that are not for training."""
    count = round(_VALIDATION_SHARE * len(others))
    return Split(train, others[:count], others[count:])


def _shuffled(classes: Tensor, seed: int) -> Tensor:
    """Nodes that have a class, in the order of a public coin."""
    order = torch.randperm(len(classes), generator=torch.Generator().manual_seed(seed))
    return order[classes[order] >= 0]


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
