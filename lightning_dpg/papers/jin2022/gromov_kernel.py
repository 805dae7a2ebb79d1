"""Gromov-Wasserstein discrepancies of exact graphs, without privacy: an upper baseline."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.graph_features import Embedding, GraphFeatureRelease
from lightning_dpg.methods.planning import Reads
from lightning_dpg.metrics.kernel_svm import clip_spectrum
from lightning_dpg.papers.jin2022.gromov import (
    Space,
    discrepancy_kernels,
    pairwise_discrepancies,
    path_distances,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry


class GromovKernel(GraphFeatureRelease):
    """Gromov-Wasserstein discrepancies of graphs by their shortest paths; **not private**.

    They are computed from the private graphs without noise; fused ones also compare the features of
    nodes. These are the rows "SVM" of Table 1 of Jin and Chen.

    When to use:
        As a baseline without privacy of :class:`LDPGromovWasserstein` and
        :class:`CentralGromovWasserstein`.

    Privacy:
        None. A run needs an infinite epsilon, and its statement says that nothing is protected.

    Cost:
        All G (G - 1) / 2 pairs of graphs are compared, each by a series of transport problems
        between all pairs of their nodes. Labels of new graphs are not predicted.

    * Jin, Chen, "Gromov-Wasserstein Discrepancy with Local Differential Privacy for Distributed
      Structural Graphs", 2022.
    * Vayer et al., "Optimal transport for structured data with application on graphs", 2019.

    Args:
        fused: Whether the features of nodes count, with the same weight as the paths.
    """

    capabilities = replace(
        GraphFeatureRelease.capabilities, adds_noise=False, is_inductive=False, repeats_edges=True
    )
    embedding_names: ClassVar[tuple[str, ...]] = ("discrepancies",)

    def __init__(self, fused: bool = False) -> None:
        super().__init__()
        self.save_hyperparameters()

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the unprotected read."""
        name = "discrepancies"
        return [self.ledger.unprotected(name, name, "computed from the graphs as they are")]

    def release_features(self, records: GraphSetRecords, reads: Reads) -> Embedding:
        """Discrepancy of each pair of graphs, shape ``(G, G)``."""
        fused = self.hparams["fused"]
        if fused and records.graphs[0].x is None:
            raise MisconfigurationException(
                "fused: true asks for node features, and there are none"
            )
        self.ledger.spend(*reads.values())
        spaces = [
            Space(
                path_distances(undirected_edges(graph).numpy(), graph.num_nodes),
                graph.x.double().numpy() if fused else None,
            )
            for graph in records.graphs
        ]
        progress = self.trainer.progress_bar_callback is not None
        discrepancies = pairwise_discrepancies(spaces, progress=progress)
        return {"discrepancies": torch.from_numpy(discrepancies)}

    def kernels(self, embedding: Embedding, sizes: Tensor) -> list[NDArray[np.float64]]:
        """Kernels of the discrepancies, without their negative eigenvalues."""
        discrepancies = embedding["discrepancies"].cpu().numpy()
        return [clip_spectrum(gram) for gram in discrepancy_kernels(discrepancies)]
