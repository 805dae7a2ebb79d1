"""Embeddings of graphs, their releases within a budget, and silent fits."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.papers.jin2022.base import GromovWassersteinRelease, node_inputs
from lightning_dpg.papers.jin2022.gromov import Matrix, Space, pairwise_discrepancies, row_distances
from lightning_dpg.papers.jin2022.ldp_gw import Reports, equal_epsilons
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import pay
from lightning_dpg.run.fit import fit_method

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
            rows = _reported(release, rows, sizes)
        return by_rows(torch.split(rows, sizes.tolist()))

    def discrepancies(self, release: Release) -> Matrix:
        """Return discrepancies of all pairs, shape ``(G, G)``."""
        return pairwise_discrepancies(self.spaces(release))

    def mean(self, release: Release) -> float:
        """Return the mean discrepancy of all pairs."""
        return float(off_diagonal(self.discrepancies(release)).mean())


def _reported(release: Release, rows: Tensor, sizes: Tensor) -> Tensor:
    """Rows through the multi-bit encoder, as printed or corrected."""
    is_printed, given = release.mode == "paper", release.epsilon
    epsilons = 1 / sizes.double() if given is None else equal_epsilons(given, sizes)
    sharing = 1 if is_printed else int(sizes.max())
    reports = Reports.chosen(sizes, epsilons, None, num_rows=sharing, width=rows.shape[1])
    read, ledger = reports.entry, PrivacyLedger(Relation.LOCAL_GRAPH)
    signs = pay(read, rows, ledger, NoiseSource(), reports.law(read, rows.shape))
    return (signs if is_printed else reports.estimates(signs)).double()


def fitted(
    method: GromovWassersteinRelease, data: GraphSetDataModule, epsilon: float = math.inf
) -> GromovWassersteinRelease:
    """Fit a method whose graphs are compared by the benchmark, and only those that it needs."""
    method.compared = lambda: np.empty((0, 0))
    fit_method(method, data, epsilon, DELTA)
    return method


def embedded(method: GromovWassersteinRelease, data: GraphSetDataModule) -> Embedded:
    """All graphs with the rows that the encoder gives their nodes."""
    rows = method.encoded(node_inputs(data, data.edges), data.edges)
    return Embedded(data.graphs, list(torch.split(rows, data.sizes.tolist())))


def readout_accuracy(method: GromovWassersteinRelease, data: GraphSetDataModule) -> float:
    """Share of the test graphs whose class the encoder's own readout predicts right."""
    edge_index = torch.cat([data.edges, data.edges.flip(1)]).T
    inputs = node_inputs(data, data.edges)
    logits = method.network.logits(inputs, edge_index, data.graph_of, len(data.graphs))
    right = (logits.argmax(1) == method.labels).numpy()
    return float(right[method.test_mask].mean())


def chosen(sets: Embedded, numbers: NDArray[np.int64]) -> Embedded:
    """Select graphs by their numbers."""
    return Embedded(*([part[k] for k in numbers] for part in sets))


def off_diagonal(matrix: Matrix) -> Matrix:
    """Return the entries of all pairs."""
    return matrix[np.triu_indices(len(matrix), 1)]
