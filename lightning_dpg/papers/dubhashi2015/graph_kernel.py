"""Shortest-path and Weisfeiler-Lehman kernels without privacy, as baselines of private kernels."""

from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.graph_features import Embedding, GraphFeatureRelease
from lightning_dpg.methods.planning import Reads
from lightning_dpg.metrics.graph_kernels import shortest_path_kernel, weisfeiler_lehman_kernel
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry


class GraphKernel(GraphFeatureRelease):
    """Similarities of graphs by shortest paths or Weisfeiler-Lehman colors; **not private**.

    They are computed from the private graphs without noise.

    When to use:
        As a baseline without privacy of :class:`PrivateGraphKernel`.

    Privacy:
        None. A run needs an infinite epsilon, and its statement says that nothing is protected.

    Cost:
        ``shortest_path`` takes the distances of all pairs of nodes of each graph;
        ``weisfeiler_lehman`` takes time O(``iterations`` (N + M)) up to logarithms. The
        similarities are a G x G matrix for G graphs, of which more than 10,000 are refused, and
        labels of new graphs are not predicted.

    * Borgwardt, Kriegel, "Shortest-path kernels on graphs", 2005.
    * Shervashidze et al., "Weisfeiler-Lehman Graph Kernels", 2011.

    Args:
        kernel: ``shortest_path`` or ``weisfeiler_lehman``.
        labelled: Whether the kernel reads the labels of nodes, the columns of ``x`` that are 0 or
            1.
        iterations: Refinements of ``weisfeiler_lehman``.
    """

    adds_noise: ClassVar[bool] = False
    embedding_names: ClassVar[tuple[str, ...]] = ("similarities",)
    is_inductive: ClassVar[bool] = False
    repeats_edges: ClassVar[bool] = True

    def __init__(
        self,
        kernel: Literal["shortest_path", "weisfeiler_lehman"] = "weisfeiler_lehman",
        *,
        labelled: bool = False,
        iterations: int = 4,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the unprotected read."""
        name = "similarities"
        return [self.unprotected(name, name, "computed from the graphs as they are")]

    def release_features(self, records: GraphSetRecords, reads: Reads) -> Embedding:
        """Similarity of each pair of graphs, shape ``(G, G)``."""
        h = self.hparams
        self.ledger.spend(*reads.values())
        if h["kernel"] == "shortest_path":
            gram = shortest_path_kernel(records.graphs, labelled=h["labelled"])
        else:
            gram = weisfeiler_lehman_kernel(records.graphs, h["iterations"], labelled=h["labelled"])
        return {"similarities": torch.from_numpy(gram)}

    def kernels(self, embedding: Embedding, sizes: Tensor) -> list[NDArray[np.float64]]:
        """The kernel itself."""
        return [embedding["similarities"].cpu().numpy()]
