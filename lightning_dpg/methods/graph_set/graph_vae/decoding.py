"""What all autoencoders of graphs share: public inputs, the decoder's log odds, draws, optimizers."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.optim import Adam, Optimizer

from lightning_dpg.graph.dense_batch import DenseBatch, dense_batch
from lightning_dpg.graph.pair_indices import num_pairs, numbered_pairs
from lightning_dpg.nn.graph_vae import PairDecoder, density_logits, graph_context, sample_prior

MAX_ENTRIES = 2**26
"""Largest number of entries of the dense blocks of one step: 256 MB each."""
_ALIKE = 0.9
"""Entry of all features that is the same for all nodes, so that sums of them tell degrees."""
_RELEASED = ("decoder.", "offset", "sizes", "num_edges")


class GraphOdds(NamedTuple):
    r"""Log odds of the pairs of nodes of a set's graphs.

    Those of a pair are :math:`f(z_i, g)^\top f(z_j, g) + c + c_g`, where g tells the size and the
    released density of the graph, :math:`c_g` are the log odds of the density, and c is trained. The
    offsets let inner products, whose mean is never negative, describe sparse graphs. They do not
    change how a graph with a given number of edges is drawn, and their gradient reads nothing but
    the released numbers of edges.

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
        # Looked up: a logarithm's last digit may depend on where in a batch it is taken.
        return graph_context(self.sizes, self.num_edges)[graphs]

    def offsets(self, graphs: Tensor) -> Tensor:
        """Log odds of any pair of graphs with the numbers ``(...)``."""
        return self.offset + density_logits(self.sizes[graphs], self.num_edges[graphs])

    def logits(self, latent: Tensor, graphs: Tensor) -> Tensor:
        """Log odds of all pairs of graphs with the numbers ``(B,)``: ``(B, n, k)`` to ``(B, n, n)``."""
        inputs = with_context(latent, self.context(graphs)[:, None])
        return self.decoder.logits(inputs) + self.offsets(graphs)[:, None, None]


def with_context(rows: Tensor, context: Tensor) -> Tensor:
    """Latent vectors, or features, together with what is known of their graphs."""
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

    Without a number of edges half of the pairs are taken to be linked. Of independent pairs given
    how many are linked, Pareto sampling is an approximation that is close in all but the smallest
    graphs (Rosen, "On sampling with probability proportional to size", 1997).

    Args:
        decoder: The network f; one that is no wider than the latent vectors knows nothing of the graph.
        offset: Offset c of the log odds, where no number of edges is known.
        size: Number of nodes of the graph (public).
        num_edges: Number of edges to draw (noisy); None where it was not released.
        generator: Public source of the draw.
        latent_dim: Width of the latent vectors.

    Returns:
        Pairs of nodes from 0 to ``size - 1``, shape ``(M, 2)``.
    """
    count = num_pairs(size) // 2 if num_edges is None else num_edges
    context = graph_context(torch.tensor(size), torch.tensor(count))
    latent = sample_prior(size, latent_dim, generator).to(offset.device)
    inputs = with_context(latent, context[: decoder.hidden.in_features - latent_dim])
    logits = decoder.logits(inputs).cpu()
    odds = logits[torch.ones_like(logits, dtype=torch.bool).triu_(1)]
    rings = torch.logit(torch.rand(num_pairs(size), generator=generator), eps=1e-7) - odds
    if num_edges is None:
        chosen = torch.nonzero(rings < float(offset)).flatten()
    else:
        chosen = torch.topk(rings, num_edges, largest=False).indices.sort().values
    return numbered_pairs(chosen, size)


def public_features(num_nodes: int, width: int) -> Tensor:
    """Rows that are the same in every run, of norm ``sqrt(width)``: ``(num_nodes, width)``.

    Their random part stands for the paper's one-hot features after a first layer that is not trained.

    Args:
        num_nodes: Number of rows.
        width: At least 2.
    """
    rows = torch.randn(num_nodes, width - 1, generator=torch.Generator().manual_seed(0))
    alike = torch.full((num_nodes, 1), _ALIKE)
    rows = torch.cat([alike, math.sqrt(1 - _ALIKE**2) * normalize(rows)], 1)
    return rows * math.sqrt(width)


def prior(blocks: DenseBatch, latent_dim: int) -> Tensor:
    """Latent vectors of the prior, shape ``(B, n, k)``."""
    return torch.randn(*blocks.nodes.shape, latent_dim, device=blocks.nodes.device)


def random_blocks(sizes: Tensor, sample_rate: float, world_size: int) -> DenseBatch:
    """Blocks of different graphs, each equally likely: the share of one process of a step.

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


def exact_num_edges(edges: Tensor, sizes: Tensor) -> Tensor:
    """Number of edges of each graph (private), shape ``(G,)``, of edges of shape ``(M, 2)``."""
    firsts = edges[:, 0].to(sizes.device).contiguous()
    graphs = torch.searchsorted(sizes.cumsum(0), firsts, right=True)
    return torch.bincount(graphs, minlength=len(sizes))


def parameters_but_of(method: nn.Module, network: str) -> list[nn.Parameter]:
    """All parameters of a method but those of one of its networks."""
    return [p for name, p in method.named_parameters() if not name.startswith(f"{network}.")]


def optimizers(learning_rate: float, *groups: Iterable[nn.Parameter]) -> list[Optimizer]:
    """Adam for each group of parameters."""
    return [Adam(parameters, learning_rate) for parameters in groups]


def zeroed_optimizers(method: pl.LightningModule) -> list[Any]:
    """The optimizers in training, without the gradients of the last step."""
    found = method.optimizers()
    made = found if isinstance(found, list) else [found]
    for optimizer in made:
        optimizer.zero_grad()
    return made


def annealed(weight: float, trainer: pl.Trainer) -> float:
    """Weight of the divergence, which rises from 0 in the first half of the run.

    From the start on, it would be cheapest to let the latent vectors say nothing.
    """
    steps = trainer.global_step / len(trainer.optimizers)
    share = 2 * steps / trainer.estimated_stepping_batches
    return weight * min(1.0, share)


def released_tensors(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """What generates, out of the state of a method: decoder, offset, sizes and numbers of edges."""
    return {name: tensor for name, tensor in state.items() if name.startswith(_RELEASED)}
