"""Erdos-Renyi: a private number of uniformly random edges, the baseline of every table."""

from dataclasses import replace

import torch
from torch import Tensor

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.interfaces import ALL_KINDS
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.base import (
    OneShotSynthesizer,
    noisy_num_edges,
    num_edges_entry,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry


class ErdosRenyi(OneShotSynthesizer):
    r"""Uniform random graphs with a private number of edges: the size-only baseline.

    Releases the number of edges with discrete Laplace noise of scale :math:`1/\epsilon`, clipped to
    the largest possible number. All graphs with that number of edges are equally likely.

    When to use:
        As a baseline: a method that does not beat it has learned nothing beyond the number of
        edges. For a graph with the degrees of the original take :class:`ChungLu`, and for one with
        its clustering :class:`BTER`.

    Privacy:
        Pure epsilon-DP at the level of edges: one undirected edge is added or removed; of a directed
        graph one ordered pair, of a bipartite one an edge between the sides. The guarantee has no
        condition and needs no delta. The set of nodes, and the side of each, are public.

    Cost:
        Time is O(M log M) and memory O(M) for a graph, with no limit on N.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
    """

    capabilities = replace(OneShotSynthesizer.capabilities, kinds=ALL_KINDS)

    def __init__(self, num_nodes: int | None = None) -> None:
        super().__init__()
        self.save_hyperparameters()

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the number of edges; the number of steps has no effect."""
        return [num_edges_entry(budget.epsilon, self.edge_record)]

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the number of edges with the whole budget."""
        self.num_edges = noisy_num_edges(self, source, reads)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw one of the equally likely sets of ``num_edges`` pairs."""
        nothing = torch.empty(0, 2, dtype=torch.long)
        return self.space.draw(nothing, int(self.num_edges), generator)

    def score(self, pairs: Tensor) -> Tensor:
        """Return equal scores for all pairs of shape ``(P, 2)``: shape ``(P,)``."""
        return torch.zeros(len(pairs))
