"""Local differential privacy of each graph, by one noisy number of a known range."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from torch import Tensor

from lightning_dpg.errors import Refusal
from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.graph_features import Embedding, GraphFeatureRelease
from lightning_dpg.methods.planning import Reads
from lightning_dpg.metrics.kernel_svm import feature_kernels
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, NonPrivate, Relation
from lightning_dpg.privacy.reports import PiecewiseLaw, piecewise, piecewise_entry, piecewise_law

STATISTICS = ("density", "transitivity")
"""Statistics of a graph from 0 to 1."""


class LocalScalars(GraphFeatureRelease):
    r"""Density of each client's graph, sent once with local privacy: the baseline of local methods.

    A client sends its density, a number from 0 to 1, by the piecewise mechanism, which spends the
    whole epsilon on it. With the number of nodes, which is public, it predicts the graph's label.
    At epsilon 1, 2, 4, 8 an estimate of the density 1/2 has a standard deviation of
    .96, .40, .15, .04.

    When to use:
        As the baseline of every method with local privacy, and from epsilon 2 on as a method of its
        own where densities differ between labels.

    Privacy:
        Local: the graph of one client is exchanged for any other graph with as many nodes. Pure
        epsilon-DP. The number of graphs, their labels and their numbers of nodes are public.
        Several statistics share epsilon equally, and their costs add up.

    Cost:
        Linear in the number of edges for densities; ``transitivity`` multiplies sparse adjacency
        matrices. The similarities are a G x G matrix for G graphs; more than 10,000 are refused.

    * Wang et al., "Collecting and analyzing multidimensional data with local differential privacy",
      2019, Algorithm 2.

    Args:
        statistics: Statistics to report: ``density``, the share of the pairs of nodes that are
            edges, and ``transitivity``, the share of wedges that are closed.
    """

    relation = Relation.LOCAL_GRAPH
    capabilities = replace(GraphFeatureRelease.capabilities, is_pure=True, repeats_edges=True)

    def __init__(self, statistics: Sequence[str] = ("density",)) -> None:
        super().__init__()
        statistics = list(statistics)
        unknown = [name for name in statistics if name not in STATISTICS]
        if unknown or not statistics or len(set(statistics)) < len(statistics):
            raise Refusal(
                f"statistics must be different ones of {', '.join(STATISTICS)}, got {statistics}"
            )
        self.save_hyperparameters()

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan one report of each statistic, or exact values under an infinite budget."""
        name = "scalars of each graph"
        if math.isinf(budget.epsilon):
            return [
                self.ledger.unprotected(
                    "scalars_of_each_graph", name, "it is released without noise"
                )
            ]
        count = len(self.hparams["statistics"])
        return [piecewise_entry("scalar_reports", name, budget.epsilon, count)]

    def _check_budget(self, budget: Budget) -> None:
        """Also refuse an epsilon that leaves no signal."""
        super()._check_budget(budget)
        if math.isfinite(budget.epsilon):
            self.law(budget)

    def law(self, budget: Budget) -> PiecewiseLaw:
        """Law of the report of one statistic (public)."""
        return piecewise_law(budget.epsilon / len(self.hparams["statistics"]))

    def release_features(self, records: GraphSetRecords, reads: Reads) -> Embedding:
        """Release an estimate of each statistic of each graph, ``features`` of shape ``(G, F)``."""
        names = self.hparams["statistics"]
        values = graph_scalars(names, records.edges, records.graph_of, records.sizes)
        (read,) = reads.values()
        if isinstance(read.event, NonPrivate):
            self.ledger.spend(read)
            return {"features": values}
        reports = self.pay(read, values, piecewise(read))
        return {"features": self.law(self.budget).estimates(reports)}

    def kernels(self, embedding: Embedding, sizes: Tensor) -> list[NDArray[np.float64]]:
        """Kernels of the numbers of nodes and the estimates."""
        columns = [sizes.cpu().numpy(), embedding["features"].cpu().numpy()]
        return feature_kernels(np.column_stack(columns))

    def released_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of ``features.npz``, with the names of the columns."""
        names = np.array(self.hparams["statistics"], dtype=str)
        return super().released_arrays() | {"columns": names}


def graph_scalars(
    statistics: Sequence[str], edges: Tensor, graph_of: Tensor, sizes: Tensor
) -> Tensor:
    """Compute statistics of each graph, from 0 to 1 and 0 where undefined (private).

    Args:
        statistics: Names out of :data:`STATISTICS`.
        edges: Edges of all graphs, shape ``(M, 2)``.
        graph_of: Number of each node's graph, shape ``(N,)``.
        sizes: Number of nodes of each graph, shape ``(G,)``.

    Returns:
        Statistics of shape ``(G, F)``, in double precision.
    """
    edges, graph_of, sizes = edges.cpu(), graph_of.cpu(), sizes.cpu().double()
    functions = {
        "density": lambda: _densities(edges, graph_of, sizes),
        "transitivity": lambda: _transitivities(edges, graph_of, len(sizes)),
    }
    return torch.stack([functions[name]() for name in statistics], dim=1)


def _densities(edges: Tensor, graph_of: Tensor, sizes: Tensor) -> Tensor:
    counts = torch.bincount(graph_of[edges[:, 0]], minlength=len(sizes))
    return 2 * counts.double() / (sizes * (sizes - 1)).clamp(min=1)


def _transitivities(edges: Tensor, graph_of: Tensor, count: int) -> Tensor:
    """Share of closed wedges, counted at their middle nodes."""
    size = len(graph_of)
    ends = torch.cat([edges, edges.flip(1)]).numpy()
    adjacency = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (size, size)).tocsr()
    degrees = torch.from_numpy(adjacency.sum(axis=1))
    closed = torch.from_numpy((adjacency @ adjacency).multiply(adjacency).sum(axis=1))
    by_graph = torch.zeros(2, count, dtype=torch.double)
    by_graph.index_add_(1, graph_of, torch.stack([closed, degrees * (degrees - 1)]))
    return by_graph[0] / by_graph[1].clamp(min=1)
