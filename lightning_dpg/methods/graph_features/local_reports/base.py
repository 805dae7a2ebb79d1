"""Shared parts of methods by which each client reports a few numbers from 0 to 1."""

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.graph_features.base import Embedding, GraphFeatureRelease
from lightning_dpg.methods.graph_features.ldp_gw.reports import report_assumptions
from lightning_dpg.metrics.kernel_svm import feature_kernels
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.mechanisms import pure_entry
from lightning_dpg.privacy.piecewise import CELLS, PiecewiseLaw, piecewise, piecewise_law

SCALARS_KEY = "scalar_reports"
"""Key of the release of the piecewise mechanism."""

SCALARS = "scalars of each graph"
"""Name of the same."""


class LocalReports(GraphFeatureRelease):
    """Numbers of each client's graph, reported by the piecewise mechanism, which share epsilon.

    Attributes:
        cells: Number of cells of a report; 2 is randomized response to 0 or 1.
    """

    relation = Relation.LOCAL_GRAPH
    is_pure: ClassVar[bool] = True
    repeats_edges: ClassVar[bool] = True
    cells: ClassVar[int] = CELLS

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """Names of the reported numbers."""

    @abstractmethod
    def client_values(self, edges: Tensor, graph_of: Tensor, sizes: Tensor) -> Tensor:
        """Compute the numbers of each graph, from 0 to 1, shape ``(G, F)`` (private).

        Args:
            edges: Edges of all graphs, shape ``(M, 2)``.
            graph_of: Number of each node's graph, shape ``(N,)``.
            sizes: Number of nodes of each graph, shape ``(G,)``.
        """

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan one report of each number, or exact values under an infinite budget."""
        if math.isinf(budget.epsilon):
            return [self.unprotected(SCALARS, "it is released without noise")]
        return [
            pure_entry(
                SCALARS_KEY,
                SCALARS,
                budget.epsilon,
                len(self.columns),
                "cost_of_piecewise",
                relation=self.relation,
                record="graph of one client",
            )
        ]

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Also refuse an epsilon that leaves no signal."""
        super().check_budget(budget, steps)
        if math.isfinite(budget.epsilon):
            self.law(budget)

    def law(self, budget: Budget) -> PiecewiseLaw:
        """Law of the report of one number (public)."""
        return piecewise_law(budget.epsilon / len(self.columns), self.cells)

    def on_fit_start(self) -> None:
        """Copy the public facts of the data, and say that sizes are public."""
        super().on_fit_start()
        self.assumptions = report_assumptions(self.records, None)

    def on_predict_start(self) -> None:
        """Start a fresh ledger for new graphs, and say that their sizes are public."""
        super().on_predict_start()
        self.assumptions = [*report_assumptions(self.records, None), self.assumptions[-1]]

    def release_features(self, records: GraphSetRecords, budget: Budget) -> Embedding:
        """Release an estimate of each number of each graph, ``features`` of shape ``(G, F)``."""
        values = self.client_values(
            records.edges.cpu(), records.graph_of.cpu(), records.sizes.cpu()
        )
        (entry,) = self.plan(budget, 1)
        if math.isinf(budget.epsilon):
            self.ledger.spend(entry)
            return {"features": values}
        reports = piecewise(
            values,
            self.ledger,
            self.noise,
            key=entry.key,
            name=entry.name,
            epsilon=entry.epsilon,
            cells=self.cells,
        )
        return {"features": self.law(budget).estimates(reports)}

    def kernels(self, embedding: Embedding, sizes: Tensor) -> list[NDArray[np.float64]]:
        """Kernels of the numbers of nodes and the estimates."""
        features = [sizes.cpu().numpy(), embedding["features"].cpu().numpy()]
        return feature_kernels(np.column_stack(features))

    def released_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Arrays of ``features.npz``, with the names of the columns."""
        return super().released_arrays() | {"columns": np.array(self.columns, dtype=str)}
