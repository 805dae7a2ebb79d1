"""Erdos-Renyi on sets: a private number of edges per graph, placed anywhere in it. The control."""

from typing import ClassVar

import torch
from torch import Tensor

from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.negative_sampling import uniform_non_edges
from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.privacy.ledger import Budget, LedgerEntry


class ErdosRenyiSet(GraphSetSynthesizer):
    r"""Uniform graphs with private numbers of edges: the size-only control of sets.

    Releases the number of edges of each graph with discrete Laplace noise of scale
    :math:`1/\epsilon`, clipped to what the graph's nodes can have; pure epsilon-DP. Who does not
    beat this row learned no more than how many edges each graph has.
    """

    is_pure: ClassVar[bool] = True
    is_trained: ClassVar[bool] = False
    repeats_edges: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.save_hyperparameters()
        # Lightning counts the steps, and keeps the checkpoints, of automatic optimization only.
        self.automatic_optimization = True

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """The numbers of edges, whatever the number of steps."""
        return [self.num_edges_entry(budget.epsilon)]

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> None:
        """Spend all on the numbers of edges, once; a resumed run has done so already."""
        if not len(self.num_edges):
            self.release_num_edges_per_graph(batch.edges, self.budget.epsilon)
        self.trainer.should_stop = True

    def configure_optimizers(self) -> None:
        """None: there is no gradient."""

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Each set of ``num_edges`` pairs is equally likely."""
        empty = make_graph(torch.empty(0, 2, dtype=torch.long), size)
        return uniform_non_edges(empty, num_edges or 0, generator)

    def released_state(self) -> dict[str, Tensor]:
        """Sizes and noisy numbers of edges."""
        return dict(self.state_dict())
