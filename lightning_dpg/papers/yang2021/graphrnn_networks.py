"""Recurrent models of graphs as sequences of rows of their adjacency matrices.

You et al., "GraphRNN: Generating Realistic Graphs with Deep Auto-regressive Models", ICML 2018.
Letters in shapes: B graphs, L rows of the longest of them, R rows in all, W places to look back,
F further inputs of a row, H width of the state of a graph.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class RowRNN(nn.Module):
    """Graph-level GRU: the state of a graph before each of its rows.

    Args:
        look_back: Width W of a row.
        num_inputs: Number F of further inputs of a row.
        embedding_dim: Width of the embedded row.
        hidden_dim: Width H of the state.
        num_layers: Number of layers.
    """

    def __init__(
        self,
        look_back: int,
        num_inputs: int,
        embedding_dim: int,
        hidden_dim: int,
        num_layers: int,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(look_back + num_inputs, embedding_dim)
        self.gru = nn.GRU(embedding_dim, hidden_dim, num_layers, batch_first=True)

    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        """Return states ``(B, L, H)`` after each row; short graphs are padded with zeros.

        Args:
            rows: Rows and further inputs, shape ``(B, L, W + F)``.
            lengths: Number of rows of each graph, at least one, shape ``(B,)``.
        """
        packed = pack_padded_sequence(
            self.embed(rows).relu(), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return states

    def step(self, rows: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor]:
        """Advance by rows ``(B, W + F)``; return states ``(B, H)`` and the memory of all layers."""
        states, memory = self.gru(self.embed(rows).relu()[:, None], memory)
        return states[:, 0], memory


class EdgeRNN(nn.Module):
    """Edge-level GRU of GraphRNN: each link of a row is conditioned on the links before it.

    Args:
        state_dim: Width H of the state of a graph.
        embedding_dim: Width of an embedded link.
        hidden_dim: Width of the state of a row.
        num_layers: Number of layers.
    """

    def __init__(
        self, state_dim: int, embedding_dim: int, hidden_dim: int, num_layers: int
    ) -> None:
        super().__init__()
        self.start = nn.Linear(state_dim, hidden_dim)
        self.embed = nn.Embedding(2, embedding_dim)
        self.gru = nn.GRU(embedding_dim, hidden_dim, num_layers, batch_first=True)
        self.link = nn.Sequential(
            nn.Linear(hidden_dim, embedding_dim), nn.ReLU(), nn.Linear(embedding_dim, 1)
        )

    def loss(self, states: Tensor, rows: Tensor, widths: Tensor) -> Tensor:
        """Return the mean cross entropy of all links.

        Args:
            states: States of shape ``(R, H)``.
            rows: Rows of zeros and ones, shape ``(R, W)``.
            widths: Number of links that each row can have, from 1 to W, shape ``(R,)``.
        """
        targets = pack_padded_sequence(rows, widths.cpu(), batch_first=True, enforce_sorted=False)
        # The input of a link is the link before it; the input of the first one is 1.
        previous = F.pad(rows, (1, 0), value=1)[:, :-1]
        inputs = pack_padded_sequence(
            self.embed(previous.long()), widths.cpu(), batch_first=True, enforce_sorted=False
        )
        hidden, _ = self.gru(inputs, self._memory(states))
        return F.binary_cross_entropy_with_logits(self.link(hidden.data).squeeze(1), targets.data)

    def sample(self, states: Tensor, uniform: Tensor) -> Tensor:
        """Draw rows of zeros and ones, given states of shape ``(B, H)``.

        Args:
            states: States of shape ``(B, H)``.
            uniform: Uniform random numbers, one for each link that a row can have, shape
                ``(B, width)``, which is the shape of the result.
        """
        memory = self._memory(states)
        link = torch.ones(len(states), dtype=torch.long, device=states.device)
        row = torch.empty_like(uniform)
        for column in range(uniform.size(1)):
            hidden, memory = self.gru(self.embed(link)[:, None], memory)
            probability = self.link(hidden[:, 0]).squeeze(1).sigmoid()
            link = (uniform[:, column] < probability).long()
            row[:, column] = link
        return row

    def _memory(self, states: Tensor) -> Tensor:
        """Return the initial memory: the graph state in the lowest layer, zeros in the others."""
        first = self.start(states)[None]
        return F.pad(first, (0, 0, 0, 0, 0, self.gru.num_layers - 1))


class EdgeMLP(nn.Module):
    """Edge-level network of GraphRNN-S: links of a row are independent given the state.

    Args:
        state_dim: Width H of the state of a graph.
        embedding_dim: Width of the hidden layer.
        look_back: Width W of a row.
    """

    def __init__(self, state_dim: int, embedding_dim: int, look_back: int) -> None:
        super().__init__()
        self.row = nn.Sequential(
            nn.Linear(state_dim, embedding_dim), nn.ReLU(), nn.Linear(embedding_dim, look_back)
        )

    def loss(self, states: Tensor, rows: Tensor, widths: Tensor) -> Tensor:
        """Return the mean cross entropy of all links; arguments as in :meth:`EdgeRNN.loss`."""
        columns = torch.arange(rows.size(1), device=rows.device)
        possible = columns < widths[:, None]
        return F.binary_cross_entropy_with_logits(self.row(states)[possible], rows[possible])

    def sample(self, states: Tensor, uniform: Tensor) -> Tensor:
        """Draw rows of zeros and ones; arguments as in :meth:`EdgeRNN.sample`."""
        probability = self.row(states)[:, : uniform.size(1)].sigmoid()
        return (uniform < probability).to(uniform.dtype)
