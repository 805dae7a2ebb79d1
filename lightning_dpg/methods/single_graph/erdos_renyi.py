"""Erdos-Renyi: a private number of edges, placed anywhere. The control of every table."""

import torch
from torch import Tensor

from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.negative_sampling import uniform_non_edges
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer, num_edges_entry
from lightning_dpg.privacy.ledger import Budget, LedgerEntry


class ErdosRenyi(OneShotSynthesizer):
    r"""Uniform graph with a private number of edges: the size-only control.

    Releases the number of edges with discrete Laplace noise of scale :math:`1/\epsilon`, clipped to
    what N nodes can have; pure epsilon-DP. Who does not beat this row learned no more than how
    many edges there are.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
    """

    def __init__(self, num_nodes: int | None = None) -> None:
        super().__init__()
        self.save_hyperparameters()

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """The number of edges, whatever the number of steps."""
        return [num_edges_entry(budget.epsilon)]

    def release(self, edges: Tensor, epsilon: float) -> None:
        """Spend all on the number of edges."""
        self.release_num_edges(edges, epsilon)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Each set of ``num_edges`` pairs is equally likely."""
        empty = make_graph(torch.empty(0, 2, dtype=torch.long), self.hparams["num_nodes"])
        return uniform_non_edges(empty, int(self.num_edges), generator)

    def score(self, pairs: Tensor) -> Tensor:
        """The same for all pairs of shape ``(P, 2)``: shape ``(P,)``."""
        return torch.zeros(len(pairs))
