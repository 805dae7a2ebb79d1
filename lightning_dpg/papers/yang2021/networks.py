r"""Networks of the variational autoencoder of graphs and of its discriminator.

Yang et al., "Secure Deep Graph Generation with Link Differential Privacy" (DPGGAN), 2021. The
widths are arguments: the paper's are 32 and 16 for encoder and discriminator, 16 and 32 for the
decoder.
"""

import math
from typing import NamedTuple

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus
from torch.quasirandom import SobolEngine
from torch_geometric.nn import DenseGCNConv

from lightning_dpg.graph.pair_numbers import num_pairs, pairs_of_ranks
from lightning_dpg.papers.yang2021.dense_batch import DenseBatch, dense_batch

CONTEXT_DIM = 2
"""Width of the graph context, an input of encoder and decoder."""

_LARGEST_LOG_VARIANCE = 2.0  # the prior's is 0
_FIRST_LOG_VARIANCE = -4.0  # means then differ visibly from the first step on


class GCNEncoder(nn.Module):
    r"""Posterior of each node by two layers :math:`\tilde A\,\mathrm{ReLU}(\tilde A X W_0) W_1`.

    Mean and variance share the first layer.

    Args:
        feature_dim: Width of the nodes' features.
        hidden_dim: Width of the first layer.
        latent_dim: Width of the latent vectors.
    """

    def __init__(self, feature_dim: int, hidden_dim: int, latent_dim: int) -> None:
        super().__init__()
        self.hidden = DenseGCNConv(feature_dim, hidden_dim)
        self.mean = DenseGCNConv(hidden_dim, latent_dim)
        self.log_variance = DenseGCNConv(hidden_dim, latent_dim)
        nn.init.constant_(self.log_variance.bias, _FIRST_LOG_VARIANCE)

    def forward(self, features: Tensor, adjacency: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and logarithms of variances.

        Args:
            features: Features of shape ``(B, n, d)``.
            adjacency: Adjacency matrices of shape ``(B, n, n)``.

        Returns:
            Two tensors of shape ``(B, n, latent_dim)``.
        """
        hidden = self.hidden(features, adjacency, add_loop=False).relu()
        mean = self.mean(hidden, adjacency, add_loop=False)
        log_variance = self.log_variance(hidden, adjacency, add_loop=False)
        return mean, log_variance.clamp(max=_LARGEST_LOG_VARIANCE)


class RowEncoder(nn.Module):
    """Posterior of each node by two linear layers of its row, which holds neighbor sums already.

    Args:
        row_dim: Width of the rows.
        hidden_dim: Width of the first layer.
        latent_dim: Width of the latent vectors.
    """

    def __init__(self, row_dim: int, hidden_dim: int, latent_dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(row_dim, hidden_dim)
        self.mean = nn.Linear(hidden_dim, latent_dim)
        self.log_variance = nn.Linear(hidden_dim, latent_dim)
        nn.init.constant_(self.log_variance.bias, _FIRST_LOG_VARIANCE)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and log-variances: ``(..., row_dim)`` to two of ``(..., latent_dim)``."""
        hidden = self.hidden(rows).relu()
        return self.mean(hidden), self.log_variance(hidden).clamp(max=_LARGEST_LOG_VARIANCE)


class PairDecoder(nn.Module):
    r"""Two layers f that give a pair the log odds :math:`f(z_i)^\top f(z_j)` plus an offset.

    Args:
        latent_dim: Width of the latent vectors.
        hidden_dim: Width of both layers.
    """

    def __init__(self, latent_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(latent_dim, hidden_dim)
        self.output = nn.Linear(hidden_dim, hidden_dim)

    def forward(self, latent: Tensor) -> Tensor:
        """Return the vectors f(z) of shape ``(..., hidden_dim)``."""
        vectors: Tensor = self.output(self.hidden(latent).relu())
        return vectors

    def logits(self, latent: Tensor) -> Tensor:
        """Return log odds of all node pairs without the offset: ``(B, n, k)`` to ``(B, n, n)``."""
        vectors = self(latent)
        return vectors @ vectors.mT

    def pair_logits(self, latent: Tensor) -> Tensor:
        """Return log odds of pairs without the offset: ``(P, 2, k)`` to ``(P,)``."""
        vectors = self(latent)
        return (vectors[:, 0] * vectors[:, 1]).sum(-1)


class GCNReadout(nn.Module):
    """Graph embedding g': two GCN layers, summed over nodes.

    Args:
        feature_dim: Width of the nodes' features.
        hidden_dim: Width of the first layer.
        output_dim: Width of the embedding.
    """

    def __init__(self, feature_dim: int, hidden_dim: int, output_dim: int) -> None:
        super().__init__()
        self.first = DenseGCNConv(feature_dim, hidden_dim)
        self.second = DenseGCNConv(hidden_dim, output_dim)

    def forward(self, features: Tensor, adjacency: Tensor, mask: Tensor) -> Tensor:
        """Embed graphs of shapes ``(B, n, d)`` and ``(B, n, n)``: ``(B, output_dim)``."""
        hidden = self.first(features, adjacency, add_loop=False).relu()
        nodes = self.second(hidden, adjacency, add_loop=False)
        return _sum_over_nodes(nodes, mask)


class RowReadout(nn.Module):
    """Graph embedding by two linear layers of node rows that hold neighbor sums already.

    Args:
        row_dim: Width of the rows.
        hidden_dim: Width of the first layer.
        output_dim: Width of the embedding.
    """

    def __init__(self, row_dim: int, hidden_dim: int, output_dim: int) -> None:
        super().__init__()
        self.first = nn.Linear(row_dim, hidden_dim)
        self.second = nn.Linear(hidden_dim, output_dim)

    def forward(self, rows: Tensor, mask: Tensor) -> Tensor:
        """Embed graphs with rows of shape ``(B, n, row_dim)``: ``(B, output_dim)``."""
        return _sum_over_nodes(self.second(self.first(rows).relu()), mask)


def discriminator_head(embedding_dim: int, hidden_dim: int) -> nn.Sequential:
    """Build the network f' from graph embeddings ``(B, embedding_dim)`` to logits ``(B, 1)``."""
    return nn.Sequential(
        nn.Linear(embedding_dim, embedding_dim),
        nn.ReLU(),
        nn.Linear(embedding_dim, hidden_dim),
        nn.ReLU(),
        nn.Linear(hidden_dim, 1),
    )


class Discriminator(nn.Module):
    """The networks g' and f': embedding of a graph, and its logit to be real.

    Args:
        describe: Network of graph embeddings of shape ``(B, embedding_dim)``.
        embedding_dim: Width of the embedding.
        hidden_dim: Width of the last hidden layer.
    """

    def __init__(
        self, describe: GCNReadout | RowReadout, embedding_dim: int, hidden_dim: int
    ) -> None:
        super().__init__()
        self.describe = describe
        self.judge = discriminator_head(embedding_dim, hidden_dim)

    def forward(self, *graphs: Tensor) -> Tensor:
        """Return logits of shape ``(B, 1)`` of graphs in the form that ``describe`` takes."""
        logits: Tensor = self.judge(self.describe(*graphs))
        return logits


def density_logits(sizes: Tensor, num_edges: Tensor) -> Tensor:
    """Return log odds of edge densities, finite also for empty and complete graphs."""
    pairs = sizes.double() * (sizes - 1) / 2
    return torch.logit((num_edges + 0.5) / (pairs + 1)).float()


def graph_context(sizes: Tensor, num_edges: Tensor) -> Tensor:
    """Return scaled logarithms of graph sizes and scaled log odds of densities.

    Args:
        sizes: Numbers of nodes of graphs (public), of any shape.
        num_edges: Numbers of edges (released), of the same shape.

    Returns:
        Shape ``(..., CONTEXT_DIM)``.
    """
    return torch.stack([sizes.log() - 3, density_logits(sizes, num_edges) / 3], -1)


def sample_prior(count: int, width: int, generator: torch.Generator) -> Tensor:
    """Draw standard normal vectors that cover the space more evenly than independent draws.

    They are scrambled Sobol points, each of which is uniform: Owen, "Randomly permuted (t,m,s)-nets
    and (t,s)-sequences", 1995. A role of one node in thirteen then falls to about one of thirteen
    nodes, not to none or to three.

    Args:
        count: Number of vectors n.
        width: Their width k.
        generator: Public source of the scrambling.

    Returns:
        Vectors of shape ``(n, k)``, in random order.
    """
    seed = int(torch.randint(2**31, (), generator=generator))
    engine = SobolEngine(width, scramble=True, seed=seed)  # type: ignore[no-untyped-call]
    points = engine.draw(count, dtype=torch.float64)
    normal = torch.special.ndtri(points.clamp(1e-9, 1 - 1e-9)).float()
    return normal[torch.randperm(count, generator=generator)]


def divergence_from_prior(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Return the KL divergence from the standard normal prior: ``(..., k)`` to ``(...)``."""
    return 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1)


def reparameterize(mean: Tensor, log_variance: Tensor, normal: Tensor) -> Tensor:
    """Turn standard normal vectors into draws from the posterior, all of one shape."""
    return mean + (log_variance / 2).exp() * normal


def sample_adjacency(logits: Tensor, pairs: Tensor) -> Tensor:
    """Draw graphs pair by pair, with the straight-through gradient of the probabilities.

    Args:
        logits: Symmetric log odds of shape ``(B, n, n)``.
        pairs: Mask of the pairs i < j, shape ``(B, n, n)``.

    Returns:
        Symmetric 0/1 matrices of shape ``(B, n, n)``.
    """
    probability = logits.sigmoid() * pairs
    links = (torch.rand_like(probability) < probability).float()
    upper = links + probability - probability.detach()
    return upper + upper.mT


def structure_loss(real: Tensor, rebuilt: Tensor) -> Tensor:
    r"""Return summed squared distances :math:`\|g'(A) - g'(A')\|^2` of embeddings ``(B, k)``."""
    return (real.detach() - rebuilt).square().sum()


def generator_loss(fake: Tensor) -> Tensor:
    """Return the mean non-saturating loss of the generator for logits of its graphs."""
    return softplus(-fake).mean()


def discriminator_loss(real: Tensor, fake: Tensor) -> Tensor:
    """Return the mean loss of the discriminator for logits of real and fake graphs, Eq. (6)."""
    return softplus(-real).mean() + softplus(fake).mean()


def _sum_over_nodes(nodes: Tensor, mask: Tensor) -> Tensor:
    return (nodes * mask[:, :, None]).sum(1)


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
    latent: Tensor,
    num_edges: int | None,
    generator: torch.Generator,
) -> Tensor:
    """Draw the edges of one graph by the log odds of given latent vectors.

    Without a number of edges, half of the pairs become edges. Pareto sampling approximates
    independent pairs given their number; it is close in all except the smallest graphs (Rosen, "On
    sampling with probability proportional to size", 1997).

    Args:
        decoder: The network f; one with the width of the latent vectors reads no context.
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
