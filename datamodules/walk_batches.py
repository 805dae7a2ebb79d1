"""Batches of random walks over the training edges, for methods that protect nothing."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor
from torch.utils.data import Dataset
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import adjacency
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


def random_walks(
    adjacency: csr_array,
    count: int,
    length: int,
    rng: np.random.Generator,
    *,
    p: float = 1.0,
    q: float = 1.0,
) -> NDArray[np.int64]:
    """Draw walks from nodes drawn uniformly among all nodes with an edge.

    A step is proposed uniformly and accepted in proportion to its weight: 1/p back to the last
    node, 1 to its neighbors, 1/q elsewhere.

    Args:
        adjacency: Symmetric adjacency matrix of shape ``(N, N)``.
        count: Number of walks B.
        length: Number of nodes L of a walk.
        rng: Source of randomness.
        p: Return parameter.
        q: In-out parameter.

    Returns:
        Walks of shape ``(B, L)``.
    """
    degree = np.diff(adjacency.indptr)
    keys = None
    if p != 1 or q != 1:
        rows = np.repeat(np.arange(len(degree), dtype=np.int64), degree)
        keys = np.sort(rows * len(degree) + adjacency.indices)
    top = max(1.0, 1 / p, 1 / q)
    walks = np.empty((count, length), dtype=np.int64)
    walks[:, 0] = rng.choice(np.flatnonzero(degree), count)
    for step in range(1, length):
        waiting = np.arange(count)
        while len(waiting):
            here = walks[waiting, step - 1]
            offset = (rng.random(len(here)) * degree[here]).astype(np.int64)
            there = adjacency.indices[adjacency.indptr[here] + offset]
            walks[waiting, step] = there
            if keys is None or step == 1:
                break
            last = walks[waiting, step - 2]
            edge = last * len(degree) + there
            at = np.minimum(np.searchsorted(keys, edge), len(keys) - 1)
            weight = np.where(keys[at] == edge, 1.0, 1 / q)
            weight[there == last] = 1 / p
            waiting = waiting[rng.random(len(waiting)) * top > weight]
    return walks
