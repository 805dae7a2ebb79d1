"""A method that reads edges and a private column, small enough for ledgers by hand."""

import torch
from torch import Tensor

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.base import (
    OneShotSynthesizer,
    noisy_num_edges,
    num_edges_entry,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation


def table_sensitivity() -> float:
    """L1 sensitivity of the number of nodes of each value: one row leaves a cell for another."""
    return 2.0


def linked_sensitivity(relation: Relation) -> float:
    """Sensitivity of the number of linked nodes with the value 1.

    An edge links two nodes at most, and a row is the value of one node.
    """
    return 1.0 if relation is Relation.ATTRIBUTES else 2.0


class EdgesAndRows(OneShotSynthesizer):
    """The number of edges, the values of a column, and the number of linked nodes with the value 1.

    The last read depends on both. One noise serves both relations, and each pays for it by its own
    sensitivity: an edge twice as much as a row.

    Args:
        num_nodes: Number of nodes N.
        least_edges: Epsilon at least of the number of edges.
        least_rows: Epsilon at least of the values of the column.
    """

    reads_private_columns = True
    values = torch.arange(34) % 2  # of the private column, whose domain is 0 and 1

    def __init__(
        self, num_nodes: int = 34, least_edges: float = 0.0, least_rows: float = 0.0
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.table: Tensor
        self.linked: Tensor
        self.register_buffer("table", torch.zeros(2, dtype=torch.long))
        self.register_buffer("linked", torch.tensor(0))

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Half of the edges' epsilon, and half of the rows', pay for the read of both."""
        rows = self.ledger.budget_of(Relation.ATTRIBUTES)
        assert rows is not None
        rate = min(budget.epsilon / 4, rows.epsilon / 2)  # epsilon of a change by 1
        count = max(budget.epsilon - 2 * rate, self.hparams["least_edges"])
        table = max(rows.epsilon - rate, self.hparams["least_rows"])
        return [
            num_edges_entry(count),
            LedgerEntry.proved(
                *("table", "nodes of each value", Pure(table), table_sensitivity),
                relation=Relation.ATTRIBUTES,
            ),
            *(
                LedgerEntry.proved(
                    *(key, "linked nodes of value 1", Pure(size * rate), linked_sensitivity),
                    relation,
                    relation=relation,
                )
                for key, size, relation in (
                    ("linked", 2, Relation.EDGE),
                    ("linked_rows", 1, Relation.ATTRIBUTES),
                )
            ),
        ]

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Make the three reads."""
        self.num_edges = noisy_num_edges(self, source, reads)
        table = self.pay(reads["table"], torch.bincount(self.values, minlength=2))
        linked = (self.values[source.edges.unique()] == 1).sum()
        linked = self.pay(reads["linked"], linked, also=[reads["linked_rows"]])
        self.table, self.linked = table.clamp(min=0), linked.clamp(min=0)  # no release has others

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw random edges."""
        nothing = torch.empty(0, 2, dtype=torch.long)
        return self.space.draw(nothing, int(self.num_edges), generator)

    def score(self, pairs: Tensor) -> Tensor:
        """Return equal scores."""
        return torch.zeros(len(pairs))
