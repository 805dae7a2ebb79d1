"""Embeddings of graphs, their releases within a budget, and silent fits."""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.graph.gromov import Matrix, Space, pairwise_discrepancies, row_distances
from lightning_dpg.methods import LDPGromovWasserstein
from lightning_dpg.methods.graph_features.ldp_gw.release import node_inputs, reported
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.running.fit import fit_method

DELTA = 1e-5
Mode = Literal["exact", "corrected", "paper"]


class Release(NamedTuple):
    """Mode and budget of a release of embeddings."""

    mode: Mode
    epsilon: float | None = None
    """Budget of each graph; None is one over its number of nodes."""

    def __str__(self) -> str:
        """Short name."""
        if self.mode == "exact":
            return "exact"
        budget = "1 / nodes" if self.epsilon is None else f"{self.epsilon:,g}"
        return f"{'as printed' if self.mode == 'paper' else 'corrected'}, epsilon {budget}"


EXACT = Release("exact")


def by_rows(rows: Sequence[Tensor]) -> list[Space]:
    """Return graphs as metric spaces with the distances between their rows."""
    return [Space(row_distances(part.double().numpy(), "euclidean")) for part in rows]


class Embedded(NamedTuple):
    """Some graphs with the rows of their nodes (private)."""

    graphs: list[Data]
    rows: list[Tensor]

    def spaces(self, release: Release) -> list[Space]:
        """Return the metric spaces that a server compares."""
        sizes = torch.tensor([len(part) for part in self.rows])
        rows = torch.cat(self.rows)
        if release.mode != "exact":
            settings = {
                "mode": release.mode,
                "report_epsilon": release.epsilon,
                "reports_per_row": None,
                "weights": "random",  # they cost nothing here
            }
            ledger = PrivacyLedger(Relation.LOCAL_GRAPH)
            rows = reported(settings, rows, sizes, math.inf, ledger, NoiseSource())
        return by_rows(torch.split(rows, sizes.tolist()))

    def discrepancies(self, release: Release) -> Matrix:
        """Return discrepancies of all pairs, shape ``(G, G)``."""
        return pairwise_discrepancies(self.spaces(release))

    def mean(self, release: Release) -> float:
        """Return the mean discrepancy of all pairs."""
        return float(off_diagonal(self.discrepancies(release)).mean())


class Uncompared(LDPGromovWasserstein):
    """One whose graphs are compared by the benchmark, and only those that it needs."""

    def compared(self) -> Matrix:
        """Nothing."""
        return np.empty((0, 0))


def fitted(
    data: GraphSetDataModule, epsilon: float = math.inf, **settings: Any
) -> LDPGromovWasserstein:
    """A fit that compares nothing yet; without a budget the paper's, rows as they are."""
    if math.isinf(epsilon):
        settings = {"release": "exact", "weights": "trained"} | settings
    method = Uncompared(**settings)
    data.steps_per_epoch = method.hparams["rounds"]
    fit_method(method, data, epsilon, DELTA)
    return method


def embedded(method: LDPGromovWasserstein, data: GraphSetDataModule) -> Embedded:
    """All graphs with the rows that the encoder gives their nodes."""
    rows = method.encoded(node_inputs(data, data.edges), data.edges)
    return Embedded(data.graphs, list(torch.split(rows, data.sizes.tolist())))


def readout_accuracy(method: LDPGromovWasserstein, data: GraphSetDataModule) -> float:
    """Share of the graphs that did not teach whose class the encoder's own readout tells."""
    edge_index = torch.cat([data.edges, data.edges.flip(1)]).T
    inputs = node_inputs(data, data.edges)
    logits = method.network.logits(inputs, edge_index, data.graph_of, len(data.graphs))
    right = (logits.argmax(1) == method.labels).numpy()
    return float(right[method.judged].mean())


def chosen(sets: Embedded, numbers: NDArray[np.int64]) -> Embedded:
    """Select graphs by their numbers."""
    return Embedded(*([part[k] for k in numbers] for part in sets))


def off_diagonal(matrix: Matrix) -> Matrix:
    """Return the entries of all pairs."""
    return matrix[np.triu_indices(len(matrix), 1)]
