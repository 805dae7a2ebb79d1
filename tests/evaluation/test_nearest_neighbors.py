"""Nearest neighbors come in the order of their ranks."""

import numpy as np
import pytest
import torch

from lightning_dpg.evaluation.public_nodes import nearest_neighbor_edges


@pytest.mark.parametrize("num_edges", [0, 5, 20, 60, 190, 300])
def test_edges_are_the_first_neighbors_of_all_nodes_then_the_second(num_edges):
    rows = torch.rand(20, 3, generator=torch.Generator().manual_seed(0))
    distance = np.linalg.norm(rows.numpy()[:, None] - rows.numpy(), axis=2)
    np.fill_diagonal(distance, np.inf)
    ranks = distance.argsort(1).argsort(1)
    first = {}
    for rank, length, i, j in sorted(
        (ranks[i, j], distance[i, j], i, j) for i in range(20) for j in range(20) if i != j
    ):
        first.setdefault((min(i, j), max(i, j)), (rank, length))
    found = nearest_neighbor_edges(rows, num_edges)
    assert found.shape == (min(num_edges, 190), 2)
    assert {tuple(edge) for edge in found.tolist()} == {*list(first)[:num_edges]}
