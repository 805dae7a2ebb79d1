"""Batches of random walks over the training edges, for methods that protect nothing."""

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import adjacency
from lightning_dpg.graph.walks import random_walks
from lightning_dpg.interfaces import BatchRequest


class WalkBatches(Dataset[Tensor]):
    """Fresh biased second-order random walks of shape ``(B, L)`` (Bojchevski et al., 2018).

    Args:
        graph: Graph of the training edges (private).
        request: Number, length and biases of the walks.
        steps: Batches of an epoch.
        seed: Seed of the walks.
    """

    def __init__(
        self, graph: Data, request: BatchRequest, steps: int, seed: tuple[int, ...]
    ) -> None:
        if request.num_walks < 1 or request.walk_length < 2:
            raise Refusal(
                "the number of walks must be positive and walk_length at least 2, got "
                f"{request.num_walks} and {request.walk_length}"
            )
        if not graph.num_edges:
            raise Refusal(
                "the training graph has no edge, so there is no walk\ntake CELL, or hold out fewer edges"
            )
        self.adjacency = adjacency(graph)
        self.request = request
        self.steps = steps
        self.rng = np.random.default_rng(seed)

    def __len__(self) -> int:
        """Return the number of batches."""
        return self.steps

    def __getitem__(self, index: int) -> Tensor:
        """Draw new walks, shape ``(B, L)``."""
        if index >= len(self):
            raise IndexError(index)
        request = self.request
        walks = random_walks(
            self.adjacency,
            request.num_walks,
            request.walk_length,
            self.rng,
            p=request.p,
            q=request.q,
        )
        return torch.from_numpy(walks)
