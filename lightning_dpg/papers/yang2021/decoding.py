"""Log odds of the pairs of graphs, public inputs, and draws of graphs and of blocks of them."""

import math
from typing import NamedTuple

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn
from torch.nn.functional import normalize

from lightning_dpg.graph.pair_numbers import num_pairs, pairs_of_ranks
from lightning_dpg.papers.yang2021.dense_batch import DenseBatch, dense_batch
from lightning_dpg.papers.yang2021.networks import (
    PairDecoder,
    density_logits,
    graph_context,
    sample_prior,
)

MAX_ENTRIES = 2**26
"""Largest number of entries of the dense blocks of one step: 256 MB each."""
_ALIKE = 0.9
"""Entry of all features that is the same for all nodes; sums of it show degrees."""


class GraphOdds(NamedTuple):
    r"""Log odds of the pairs of nodes of a set's graphs.

    The log odds of a pair are :math:`f(z_i, g)^\top f(z_j, g) + c + c_g`, where g encodes the size
    and the released density of the graph, :math:`c_g` are the log odds of the density, and c is
    trained. The offsets let inner products, whose mean is never negative, describe sparse graphs.
    They do not affect the distribution of a graph given its number of edges, and their gradient
    reads the released numbers of edges only.

    Attributes:
        decoder: The network f.
        offset: The trained offset c, a scalar.
        sizes: Number of nodes of each graph (public), shape ``(G,)``.
        num_edges: Number of edges of each graph (released), shape ``(G,)``.
    """

    decoder: PairDecoder
    offset: nn.Parameter
    sizes: Tensor
    num_edges: Tensor

    def context(self, graphs: Tensor) -> Tensor:
        """Size and released density of graphs: numbers ``(...)`` to ``(..., CONTEXT_DIM)``."""
        # Table look-up: the last digit of a logarithm may depend on the position in a batch.
        return graph_context(self.sizes, self.num_edges)[graphs]

    def offsets(self, graphs: Tensor) -> Tensor:
        """Log odds of any pair of graphs with the numbers ``(...)``."""
        return self.offset + density_logits(self.sizes[graphs], self.num_edges[graphs])

    def logits(self, latent: Tensor, graphs: Tensor) -> Tensor:
        """Log odds of all pairs of graphs with the numbers ``(B,)``: ``(B, n, k)`` to ``(B, n, n)``."""
        inputs = with_context(latent, self.context(graphs)[:, None])
        return self.decoder.logits(inputs) + self.offsets(graphs)[:, None, None]


def with_context(rows: Tensor, context: Tensor) -> Tensor:
    """Concatenate latent vectors, or features, with the context of their graphs."""
    return torch.cat([rows, context.to(rows).expand(*rows.shape[:-1], -1)], -1)


@torch.no_grad()
def draw_pairs(
    decoder: PairDecoder,
    offset: Tensor,
    size: int,
    num_edges: int | None,
    generator: torch.Generator,
    *,
    latent_dim: int,
) -> Tensor:
    r"""Draw latent vectors from the prior, and then the edges of one graph by their log odds.

    Without a number of edges, half of the pairs become edges. Pareto sampling approximates
    independent pairs given their number; it is close in all except the smallest graphs (Rosen, "On
    sampling with probability proportional to size", 1997).

    Args:
        decoder: The network f; one with the width of the latent vectors reads no context.
        offset: Offset c of the log odds, used without a number of edges.
        size: Number of nodes of the graph (public).
        num_edges: Number of edges to draw (noisy); None where it was not released.
        generator: Public source of the draw.
        latent_dim: Width of the latent vectors.

    Returns:
        Pairs of nodes from 0 to ``size - 1``, shape ``(M, 2)``.
    """
    latent = sample_prior(size, latent_dim, generator)
    return draw_pairs_of_nodes(decoder, offset, latent, num_edges, generator)


@torch.no_grad()
def draw_pairs_of_nodes(
    decoder: PairDecoder,
    offset: Tensor,
    latent: Tensor,
    num_edges: int | None,
    generator: torch.Generator,
) -> Tensor:
    """Draw the edges of one graph by the log odds of given latent vectors; see :func:`draw_pairs`.

    Args:
        decoder: The network f.
        offset: Offset c of the log odds, used without a number of edges.
        latent: Latent vectors of the nodes, shape ``(n, k)``.
        num_edges: Number of edges to draw (noisy); None where it was not released.
        generator: Public source of the draw.

    Returns:
        Pairs of nodes from 0 to n - 1, shape ``(M, 2)``.
    """
    size, latent_dim = latent.shape
    count = num_pairs(size) // 2 if num_edges is None else num_edges
    context = graph_context(torch.tensor(size), torch.tensor(count))
    inputs = with_context(
        latent.to(offset.device), context[: decoder.hidden.in_features - latent_dim]
    )
    logits = decoder.logits(inputs).cpu()
    odds = logits[torch.ones_like(logits, dtype=torch.bool).triu_(1)]
    rings = torch.logit(torch.rand(num_pairs(size), generator=generator), eps=1e-7) - odds
    if num_edges is None:
        chosen = torch.nonzero(rings < float(offset)).flatten()
    else:
        chosen = torch.topk(rings, num_edges, largest=False).indices.sort().values
    return pairs_of_ranks(chosen, size)


def public_features(num_nodes: int, width: int) -> Tensor:
    """Public rows, equal in every run, of norm ``sqrt(width)``: ``(num_nodes, width)``.

    Their random part replaces the paper's one-hot features after an untrained first layer.

    Args:
        num_nodes: Number of rows.
        width: At least 2.
    """
    rows = torch.randn(num_nodes, width - 1, generator=torch.Generator().manual_seed(0))
    alike = torch.full((num_nodes, 1), _ALIKE)
    rows = torch.cat([alike, math.sqrt(1 - _ALIKE**2) * normalize(rows)], 1)
    return rows * math.sqrt(width)


def prior(blocks: DenseBatch, latent_dim: int) -> Tensor:
    """Draw latent vectors from the prior, shape ``(B, n, k)``."""
    return torch.randn(*blocks.nodes.shape, latent_dim, device=blocks.nodes.device)


def random_blocks(sizes: Tensor, sample_rate: float, world_size: int) -> DenseBatch:
    """Sample blocks of distinct graphs uniformly: one process's share of a step.

    Args:
        sizes: Number of nodes of each graph of the set, shape ``(G,)``.
        sample_rate: Share of the graphs in a step.
        world_size: Number of processes.

    Raises:
        MisconfigurationException: If they do not fit into memory.
    """
    count = math.ceil(len(sizes) * sample_rate / world_size)
    graphs = torch.randperm(len(sizes), device=sizes.device)[:count]
    largest = int(sizes[graphs].max())
    if count * largest**2 > MAX_ENTRIES:
        raise MisconfigurationException(
            f"{count} graphs of up to {largest} nodes do not fit into dense blocks\n"
            "set model.init_args.sample_rate lower, or leave out the largest graphs"
        )
    return dense_batch(sizes, graphs)
