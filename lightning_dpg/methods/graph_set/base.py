"""Synthesizers that learn a set of graphs and draw graphs of the same sizes."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.metrics.graph_sets import set_differences
from lightning_dpg.nn.resized_buffers import resize_on_loading
from lightning_dpg.privacy.events import LedgerEntry, Pure
from lightning_dpg.privacy.sensitivity.degrees import edges_per_graph_sensitivity


class GraphSetSynthesizer(Synthesizer):
    """A synthesizer for a set of G graphs with public sizes.

    The nodes of all graphs are numbered in one sequence, as in ``GraphSetDataModule``.

    Attributes:
        sizes: Number of nodes of each graph (public), shape ``(G,)``.
        num_edges: Number of edges of each graph (noisy), shape ``(G,)``; empty if not released.
        max_occurrences: Largest number of edges of the set that are one private edge (public).
    """

    capabilities = replace(Synthesizer.capabilities, reads=GraphSetRecords)
    records: GraphSetRecords

    def __init__(self) -> None:
        super().__init__()
        self.max_occurrences = 1
        self.sizes: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))
        self.num_edges: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))
        resize_on_loading(self, "sizes", "num_edges")

    @abstractmethod
    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw the edges of one graph; equal generators give equal edges.

        Args:
            size: Number of nodes of the graph (public).
            num_edges: Number of edges to draw (noisy); None where it was not released.
            generator: Public source of the draw.

        Returns:
            Pairs of nodes from 0 to ``size - 1``, shape ``(M, 2)``.
        """

    def sample(self, generator: torch.Generator) -> Data:
        """Draw a replacement of a uniformly random original graph."""
        number = int(torch.randint(len(self.sizes), (), generator=generator))
        return self._sample_in_place_of(number, generator)

    def sample_set(self, generator: torch.Generator) -> list[Data]:
        """Draw a replacement of each original graph, in their order."""
        return [self._sample_in_place_of(k, generator) for k in range(len(self.sizes))]

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw the edges of :meth:`sample`, shape ``(M, 2)``."""
        return undirected_edges(self.sample(generator))

    def score(self, pairs: Tensor) -> Tensor:
        """Released density of the pairs' graph; 0 across graphs and for unknown densities.

        Args:
            pairs: Pairs of shape ``(P, 2)`` in the numbers of all nodes.

        Returns:
            Scores of shape ``(P,)``.
        """
        if not len(self.num_edges):
            return torch.zeros(len(pairs))
        first, second = self.graph_of(pairs).T
        density = (self.num_edges / self._num_pairs().clamp(min=1)).to(pairs.device)
        return torch.where(first == second, density[first], 0.0)

    def graph_of(self, nodes: Tensor) -> Tensor:
        """Number of the graph of each node, of the same shape."""
        ends = self.sizes.cumsum(0).to(nodes.device)
        return torch.searchsorted(ends, nodes.contiguous(), right=True)

    def num_edges_entry(self, epsilon: float) -> LedgerEntry:
        """Plan the read of :meth:`release_num_edges_per_graph`."""
        return LedgerEntry.proved(
            "num_edges_per_graph",
            "number of edges of each graph",
            Pure(epsilon),
            edges_per_graph_sensitivity,
            self.max_occurrences,
        )

    def release_num_edges_per_graph(self, edges: Tensor, read: LedgerEntry) -> None:
        """Release the number of edges of each graph into ``num_edges``.

        Args:
            edges: Edges of all graphs (private), shape ``(M, 2)``.
            read: The read, see :meth:`num_edges_entry`.
        """
        noisy = self.pay(read, self._exact_num_edges(edges)).to(self.sizes.device)
        self.num_edges = torch.minimum(noisy.clamp(min=0), self._num_pairs())

    def on_fit_start(self) -> None:
        """Copy the public facts of the data."""
        records = self.records
        self.max_occurrences = records.max_occurrences
        self.sizes = records.sizes.to(self.device)
        self.assumptions = list(records.assumptions)
        # Every rank trains on other public randomness; equal randomness would repeat the work.
        torch.manual_seed(torch.initial_seed() + 1 + self.global_rank)

    def test_step(self, batch: object, batch_idx: int) -> None:
        """Measure how the synthetic set differs from the original (reads the private graphs).

        The differences are those of Table 1 of Yang et al., "Secure Deep Graph Generation with Link
        Differential Privacy", 2021, each averaged over the graphs where it is defined.
        """
        synthetic = self.sample_set(torch.Generator().manual_seed(0))
        values = {
            f"nonprivate/test_{name.replace(' ', '_')}_difference": mean.value
            for name, mean in set_differences(self.records.graphs, synthetic).items()
        }
        self.log_dict(values, batch_size=1, sync_dist=True)  # equal in all processes

    def _sample_in_place_of(self, number: int, generator: torch.Generator) -> Data:
        size = int(self.sizes[number])
        num_edges = int(self.num_edges[number]) if len(self.num_edges) else None
        return make_graph(self.draw(size, num_edges, generator), size)

    def _exact_num_edges(self, edges: Tensor) -> Tensor:
        """Number of edges of each graph (private), shape ``(G,)``, of edges of shape ``(M, 2)``."""
        return torch.bincount(self.graph_of(edges[:, 0]), minlength=len(self.sizes))

    def _num_pairs(self) -> Tensor:
        return self.sizes * (self.sizes - 1) // 2


class OneShotSet(GraphSetSynthesizer):
    """A synthesizer of a set whose only training step spends the whole budget on a few releases."""

    capabilities = replace(
        GraphSetSynthesizer.capabilities, is_pure=True, is_trained=False, repeats_edges=True
    )

    def __init__(self) -> None:
        super().__init__()
        # Lightning counts steps and keeps checkpoints under automatic optimization only.
        self.automatic_optimization = True

    @abstractmethod
    def release(self, edges: Tensor, reads: Sequence[LedgerEntry]) -> None:
        """Pay for all planned reads of the edges ``(M, 2)`` (private), and keep what they release."""

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> None:
        """Make the releases, unless a resumed run has made them."""
        if not len(self.num_edges):
            self.release(batch.edges, self.plan(self.budget, 1))
        self.trainer.should_stop = True

    def configure_optimizers(self) -> None:
        """Return None, since there is no gradient."""

    def released_state(self) -> dict[str, Tensor]:
        """All buffers and parameters."""
        return dict(self.state_dict())
