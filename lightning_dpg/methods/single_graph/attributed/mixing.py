"""Mixing of private columns over edges: one read that costs both relations."""

import math
from typing import NamedTuple

from lightning_dpg.graph.edge_statistics import MIXING_UNIT
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation
from lightning_dpg.privacy.sensitivity.private_columns import (
    mixing_edge_sensitivity,
    mixing_row_sensitivity,
)

_PROOFS = {Relation.EDGE: mixing_edge_sensitivity, Relation.ATTRIBUTES: mixing_row_sensitivity}


class MixingCosts(NamedTuple):
    """Epsilons of the read of mixing, whose noise serves both relations."""

    edges: float
    rows: float


class MixingRead(NamedTuple):
    """The read of mixing.

    Attributes:
        max_weight: Largest weight D of all edges of a node together (public).
        sizes: Number of values of each private column (public).
    """

    max_weight: int
    sizes: tuple[int, ...]

    def costs(
        self, edges: Budget, rows: Budget | None, edge_share: float, row_share: float
    ) -> MixingCosts:
        """Return the epsilons under both relations, by the larger of the noises that they need.

        Args:
            edges: Budget of the edges.
            rows: Budget of the rows, if there is one.
            edge_share: Share of the edges' budget at most.
            row_share: Share of the rows' budget at most.
        """
        edge, row = (self._sensitivity(relation) for relation in _PROOFS)
        most_edges = edge_share * edges.epsilon
        most_rows = math.inf if rows is None else row_share * rows.epsilon
        scale = max(edge / most_edges, row / most_rows)
        if not scale:
            return MixingCosts(math.inf, math.inf)
        return MixingCosts(min(edge / scale, most_edges), min(row / scale, most_rows))

    def _sensitivity(self, relation: Relation) -> int:
        return _PROOFS[relation](self.max_weight, self.sizes, MIXING_UNIT)

    def entry(self, costs: MixingCosts, relation: Relation, record: str) -> LedgerEntry:
        """Plan the read under one relation."""
        is_edge = relation is Relation.EDGE
        return LedgerEntry.proved(
            "column_mixing" if is_edge else "column_mixing_rows",
            f"weights of edges by the values of their ends, in 1/{MIXING_UNIT}",
            Pure(costs.edges if is_edge else costs.rows),
            _PROOFS[relation],
            self.max_weight,
            self.sizes,
            MIXING_UNIT,
            relation=relation,
            record=record,
            public={"max_weight": self.max_weight, "unit": MIXING_UNIT},
        )
