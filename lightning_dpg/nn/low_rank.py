"""Low-rank models of all node pairs."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

_POWER_STEPS = 100
_PAIRS_AT_ONCE = 2**16
_ENTRIES_AT_ONCE = 2**22
WEIGHT_DECAY = 1e-7
"""Weight decay of the logits, as in the paper's experiments."""


def inner_products(rows: Tensor, pairs: Tensor) -> Tensor:
    """Return inner products of rows ``(N, K)`` for pairs ``(P, 2)``: shape ``(P,)``."""
    # A row for each pair would be K times as large as the pairs, of which there are millions.
    blocks = torch.split(pairs, _PAIRS_AT_ONCE)
    return torch.cat([(rows[block[:, 0]] * rows[block[:, 1]]).sum(1) for block in blocks])


def rows_at_once(num_nodes: int) -> int:
    """Return the number of rows of an N x N matrix that a block in memory holds."""
    return max(1, _ENTRIES_AT_ONCE // max(num_nodes, 1))


class InnerProductDecoder(nn.Module):
    """Inner-product decoder with two sets of rows: one ranks pairs, one gives expected edges.

    Args:
        num_nodes: Number of nodes N.
        rank: Width K of the rows; unused columns are zero.
    """

    def __init__(self, num_nodes: int, rank: int) -> None:
        super().__init__()
        self.affinity: Tensor = nn.Buffer(torch.zeros(num_nodes, rank))
        self.intensity: Tensor = nn.Buffer(torch.zeros(num_nodes, rank))

    def fit(self, affinity: Tensor, intensity: Tensor) -> None:
        """Set rows of shape ``(N, K)`` or narrower."""
        for buffer, rows in ((self.affinity, affinity), (self.intensity, intensity)):
            buffer.zero_()
            buffer[:, : rows.size(1)] = rows

    def score(self, pairs: Tensor) -> Tensor:
        """Score pairs of shape ``(P, 2)``: shape ``(P,)``."""
        return inner_products(self.affinity, pairs)

    def likelihood_rows(self) -> Iterator[Tensor]:
        """Yield blocks of rows of the expected edges of all pairs, at least 0.

        A block lacks the columns before its first row, whose pairs are in earlier blocks.
        """
        rows = self.intensity[:, self.intensity.any(dim=0)]  # unused columns are zero
        start = 0
        for block in torch.split(rows, rows_at_once(len(rows))):
            yield (block @ rows[start:].T).clamp_(min=0)
            start += len(block)


class LowRankLogits(nn.Module):
    r"""Transition probabilities of random walks :math:`P = \mathrm{softmax}(L R)`, row by row.

    Rendsburg, Heidrich, von Luxburg, "NetGAN without GAN: from random walks to low-rank
    approximations", 2020. The logits fill an N x N matrix; the caller checks N.

    Args:
        num_nodes: Number of nodes N.
        rank: Inner dimension H.
        generator: Source of the start; the global one by default.
    """

    def __init__(self, num_nodes: int, rank: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.left = nn.Parameter(0.1 * torch.randn(num_nodes, rank, generator=generator))
        self.right = nn.Parameter(0.1 * torch.randn(rank, num_nodes, generator=generator))

    def loss(self, edges: Tensor) -> Tensor:
        """Return the mean cross entropy of steps along edges ``(M, 2)``, in both directions.

        It is 0 without edges, with a gradient of 0: of processes that train together, all need one.
        """
        starts, ends = torch.cat([edges, edges.flip(1)]).T
        logits = self.left @ self.right
        errors = torch.logsumexp(logits, dim=1)[starts] - logits[starts, ends]
        return errors.sum() / max(1, len(errors))

    def score(self, pairs: Tensor) -> Tensor:
        """Score pairs of shape ``(P, 2)``: shape ``(P,)``."""
        return self.likelihood()[pairs[:, 0], pairs[:, 1]]

    @torch.no_grad()
    def likelihood(self) -> Tensor:
        r"""Return the traffic of pairs: :math:`\max(S, S^T)` with :math:`S_{ij} = \pi_i P_{ij}`.

        :math:`\pi` is the stationary distribution. Shape ``(N, N)``, zero on the diagonal.
        """
        transitions = torch.softmax(self.left @ self.right, dim=1)
        stationary = transitions.new_full((len(transitions),), 1 / len(transitions))
        for _ in range(_POWER_STEPS):
            # A lazy walk converges on bipartite graphs, too.
            stationary = (stationary + stationary @ transitions) / 2
        traffic = stationary[:, None] * transitions
        return torch.maximum(traffic, traffic.T).fill_diagonal_(0)
