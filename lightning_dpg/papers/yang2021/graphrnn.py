"""GraphRNN: recurrent models of graphs in breadth-first order (You et al., ICML 2018).

Letters in shapes: B graphs, L rows of the longest of them, R rows in all, W places to look back,
F further inputs of a row, H width of the state of a graph.
"""

from dataclasses import replace
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.optim import Adam, Optimizer
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.interfaces import BatchRequest, GraphSetRecords
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.papers.yang2021.bfs import adjacency_rows, bandwidths, bfs_positions
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry


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
        self, look_back: int, num_inputs: int, embedding_dim: int, hidden_dim: int, num_layers: int
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


_ORDERS = 20
"""Random orders of each graph in which the look-back is measured."""


class GraphRNN(GraphSetSynthesizer):
    """Recurrent model of graphs, which draws the links of one node at a time; **not private**.

    One model learns all graphs of the set, in new breadth-first orders at each step. A graph ends
    at its public size; an empty row, which ends it in the paper, begins a new component here. Steps
    sample whole graphs by a public seed.

    When to use:
        As a baseline without privacy, of :class:`DPGVAE`. Within a budget take :class:`DPGVAE` or
        :class:`ErdosRenyiSet`.

    Privacy:
        None: training reads the exact graphs. A run needs an infinite epsilon, and its statement
        says that nothing is protected.

    Cost:
        A step grows with ``batch_size`` graphs times their nodes times W, the largest distance in
        the order between linked nodes. No number of nodes is refused.

    Differences from the paper:
        The model reads, before each node, the remaining numbers of nodes and edges, which the
        private methods also know of the replaced graph; ``counts: false`` is the model of the
        paper. A graph ends at its public size. The networks have fewer layers, which learn in fewer
        steps.

    * You et al., "GraphRNN: Generating Realistic Graphs with Deep Auto-regressive Models", ICML
      2018.

    Args:
        edge_model: ``rnn`` draws the links of a node one by one: GraphRNN; ``mlp`` draws them
            independently of one another: GraphRNN-S.
        counts: Whether the model reads, before each node, the remaining numbers of nodes and edges,
            which the private methods also know of the replaced graph. The paper's model does not.
        look_back: Largest distance W in the order between linked nodes; by default the widest
            bandwidth of the graphs in 20 random orders each, which is not private.
        batch_size: Graphs per step.
        embedding_dim: Width of an embedded row.
        hidden_dim: Width of the state of a graph.
        edge_embedding_dim: Width of an embedded link.
        edge_hidden_dim: Width of the state of a row.
        num_layers: Layers of either recurrent network; the paper takes 4, which need more steps.
        learning_rate: Learning rate of Adam.
    """

    capabilities = replace(GraphSetSynthesizer.capabilities, adds_noise=False)
    curve_names: ClassVar[tuple[str, ...]] = ("nonprivate/loss",)

    def __init__(
        self,
        edge_model: Literal["rnn", "mlp"] = "rnn",
        counts: bool = True,
        look_back: int | None = None,
        batch_size: int = 64,
        embedding_dim: int = 64,
        hidden_dim: int = 128,
        edge_embedding_dim: int = 8,
        edge_hidden_dim: int = 16,
        num_layers: int = 1,
        learning_rate: float = 3e-3,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = True
        if look_back is not None:
            self._build(look_back)

    def setup(self, stage: str) -> None:
        """Measure the look-back, which determines the shapes of the networks."""
        super().setup(stage)
        if self.hparams["look_back"] is not None or stage == "predict":
            return
        data = self.records
        generator = torch.Generator().manual_seed(0)  # all devices need the same seed
        orders = (bfs_positions(data.edges, data.sizes, generator) for _ in range(_ORDERS))
        widest = max(int(bandwidths(data.edges, data.sizes, order).max()) for order in orders)
        self.hparams["look_back"] = widest
        self._build(widest)

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the unprotected training."""
        return [self.ledger.unprotected("training", "training", "GraphRNN adds no noise")]

    def on_fit_start(self) -> None:
        """Book that nothing is protected; a finite budget refuses this entry."""
        super().on_fit_start()
        if not self.ledger.reasons:
            self.ledger.spend(*self.plan(self.budget, 1))
        self.num_edges = self._exact_num_edges(self.records.edges).to(self.device)

    def batch_request(self) -> BatchRequest:
        """Request all graphs at each step; the data module sets the steps per epoch."""
        return BatchRequest("all")

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> Tensor:
        """Cross entropy of the links of some graphs, each link given the earlier ones."""
        eligible = (batch.sizes > 1).nonzero().squeeze(1)  # a single node has no row
        numbers = eligible[torch.randperm(len(eligible))[: self.hparams["batch_size"]]]
        chosen = torch.zeros(len(batch.sizes), dtype=torch.bool)
        chosen[numbers] = True
        member = chosen[batch.graph_of]
        number = member.cumsum(0) - 1
        edges = number[batch.edges[member[batch.edges[:, 0]]]]
        loss = self.loss(edges, batch.sizes[chosen], torch.default_generator)
        terms = self._pairs_before(batch.sizes[chosen]).sum()
        self.log_curve("nonprivate/loss", loss, terms, prog_bar=True)
        return loss

    def configure_optimizers(self) -> Optimizer:
        """Build Adam."""
        return Adam(self.parameters(), self.hparams["learning_rate"])

    def loss(self, edges: Tensor, sizes: Tensor, generator: torch.Generator) -> Tensor:
        """Mean cross entropy of all possible links of a set of graphs in random orders.

        Args:
            edges: Edges of the union, shape ``(E, 2)``.
            sizes: Number of nodes of each graph, at least 2, shape ``(B,)``.
            generator: Source of the orders.
        """
        rows = adjacency_rows(
            edges, sizes, bfs_positions(edges, sizes, generator), self.hparams["look_back"]
        )
        start = sizes.cumsum(0) - sizes
        graph_of = torch.arange(len(sizes)).repeat_interleave(sizes)
        position = torch.arange(len(rows)) - start[graph_of]
        is_input, is_target = position < sizes[graph_of] - 1, position > 0
        # Each of the R rows except the first of a graph is drawn given the previous one.
        inputs, rows = rows[is_input], rows[is_target]
        position, graph_of = position[is_target], graph_of[is_target]
        if self.hparams["counts"]:
            links = rows.sum(1).double()
            total = torch.zeros(len(sizes)).double().index_add(0, graph_of, links)
            before = links.cumsum(0) - links
            rest = (total.cumsum(0)[graph_of] - before).float()
            inputs = torch.cat([inputs, self._counts(position, sizes[graph_of], rest)], 1)
        lengths = sizes - 1
        padded = pad_sequence(list(torch.split(inputs, lengths.tolist())), batch_first=True)
        states = self.rows(padded.to(self.device), lengths)  # (B, L, H)
        is_row = torch.arange(padded.size(1)) < lengths[:, None]
        widths = position.clamp(max=self.hparams["look_back"])
        return self.links.loss(states[is_row.to(self.device)], rows.to(self.device), widths)

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw the edges of one graph, shape ``(M, 2)``.

        The model reads ``num_edges``; the graph may have more or fewer.

        Raises:
            Refusal: If the model reads the number of edges, and there is none.
        """
        if num_edges is None and self.hparams["counts"]:
            raise Refusal("num_edges must be given to a model with counts, got None")
        return self.draw_all(torch.tensor([size]), torch.tensor([num_edges or 0]), generator)[0]

    def sample_set(self, generator: torch.Generator) -> list[Data]:
        """Draw a replacement of each original graph, all at once, in their order."""
        parts = self.draw_all(self.sizes.cpu(), self.num_edges.cpu(), generator)
        sizes = self.sizes.tolist()
        return [make_graph(edges, size) for edges, size in zip(parts, sizes, strict=True)]

    @torch.no_grad()
    def draw_all(
        self, sizes: Tensor, num_edges: Tensor, generator: torch.Generator
    ) -> list[Tensor]:
        """Draw the edges of many graphs at once.

        Args:
            sizes: Number of nodes of each graph, shape ``(B,)``.
            num_edges: Number of edges of each graph as an input of the model, shape ``(B,)``.
            generator: Public source of the draws.

        Returns:
            Pairs of nodes of each graph, shape ``(M, 2)``.
        """
        # The longest sequences come first: unfinished sequences stay together.
        order = sizes.argsort(descending=True, stable=True)
        look_back = self.hparams["look_back"]
        row, rest, memory = torch.ones(len(sizes), look_back), num_edges[order].float(), None
        triples = [torch.empty(0, 3, dtype=torch.long)]
        for position in range(1, int(sizes.max())):
            active = int((sizes > position).sum())
            row, rest = row[:active], rest[:active]
            if memory is not None:
                memory = memory[:, :active].contiguous()
            if self.hparams["counts"]:
                positions = torch.full((active,), position)
                row = torch.cat([row, self._counts(positions, sizes[order[:active]], rest)], 1)
            state, memory = self.rows.step(row.to(self.device), memory)
            width = min(position, look_back)
            uniform = torch.rand(active, width, generator=generator).to(self.device)
            links = self.links.sample(state, uniform).cpu()
            rest = rest - links.sum(1)
            graph, back = links.nonzero().T
            ends = position - 1 - back, torch.full_like(back, position)
            triples.append(torch.stack([order[graph], *ends], 1))
            row = F.pad(links, (0, look_back - width))
        edges = torch.cat(triples)
        edges = edges[edges[:, 0].argsort(stable=True)]
        number = torch.bincount(edges[:, 0], minlength=len(sizes))
        return list(torch.split(edges[:, 1:], number.tolist()))

    def released_state(self) -> dict[str, Tensor]:
        """The networks, and the numbers of nodes and edges of each graph."""
        return dict(self.state_dict())

    def _build(self, look_back: int) -> None:
        options = self.hparams
        hidden, layers = options["hidden_dim"], options["num_layers"]
        self.rows = RowRNN(
            look_back, 3 * options["counts"], options["embedding_dim"], hidden, layers
        )
        self.links: EdgeRNN | EdgeMLP
        if options["edge_model"] == "rnn":
            self.links = EdgeRNN(
                hidden, options["edge_embedding_dim"], options["edge_hidden_dim"], layers
            )
        else:
            self.links = EdgeMLP(hidden, options["embedding_dim"], look_back)

    def _counts(self, position: Tensor, sizes: Tensor, rest: Tensor) -> Tensor:
        """Remaining nodes and edges, and the share of possible edges that remain: ``(R, 3)``.

        Args:
            position: Places of the next nodes, from 1, shape ``(R,)``.
            sizes: Number of nodes of their graphs, shape ``(R,)``.
            rest: Number of remaining edges, shape ``(R,)``; negative numbers count as 0.
        """
        possible = self._pairs_before(sizes) - self._pairs_before(position)
        rest = rest.clamp(min=0)
        return torch.stack([(sizes - position).log(), rest.log1p(), rest / possible], 1)

    def _pairs_before(self, position: Tensor) -> Tensor:
        """Number of possible links among the nodes before a place."""
        reach = position.clamp(max=self.hparams["look_back"] + 1)
        return reach * (reach - 1) // 2 + (position - reach) * self.hparams["look_back"]
