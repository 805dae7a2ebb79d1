"""Erdos-Renyi graphs with a private number of edges per graph: the size-only baseline of sets."""

from collections.abc import Sequence

import torch
from torch import Tensor

from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.held_out import uniform_non_edges
from lightning_dpg.methods.graph_set.base import OneShotSet
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry


class ErdosRenyiSet(OneShotSet):
    r"""Uniform random graphs with private numbers of edges: the size-only baseline of sets.

    Releases the number of edges of each graph with discrete Laplace noise of scale
    :math:`1/\epsilon`, clipped to the largest possible number.

    When to use:
        For a set of graphs below an epsilon of 10: at 1 and below it comes nearer to the originals
        than :class:`DPGVAE` and :class:`DPGGAN` on one of the two sets that were tried, and about
        as near on the other. And as a baseline: a method
        that does not beat it has learned nothing beyond the numbers of edges. For a single graph
        take :class:`ErdosRenyi`.

    Privacy:
        Pure epsilon-DP at the level of edges: one undirected edge of one graph is added or removed.
        If one private edge is several edges of the set, the noise covers all of them. The guarantee
        has no condition and needs no delta. The number of graphs and their numbers of nodes are
        public.

    Cost:
        Time O(M log M) and memory O(M) to draw the whole set, with no limit on N.
    """

    def __init__(self) -> None:
        super().__init__()
        self.save_hyperparameters()

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the numbers of edges; the number of steps has no effect."""
        return [self.num_edges_entry(budget.epsilon)]

    def release(self, edges: Tensor, reads: Sequence[LedgerEntry]) -> None:
        """Release the numbers of edges with the whole budget."""
        self.release_num_edges_per_graph(edges, *reads)

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw one of the equally likely sets of ``num_edges`` pairs."""
        empty = make_graph(torch.empty(0, 2, dtype=torch.long), size)
        return uniform_non_edges(empty, num_edges or 0, generator)
