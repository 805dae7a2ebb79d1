"""Nearest-neighbor classification by distances between graphs, without learning."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lightning_dpg.errors import Refusal


def neighbor_accuracy(
    distances: NDArray[np.float64], labels: ArrayLike, neighbors: int = 5
) -> float:
    """Return the leave-one-out accuracy of a majority vote among nearest neighbors.

    Among equally frequent labels the smallest wins.

    Args:
        distances: Distances of all pairs of G graphs, shape ``(G, G)``.
        labels: Label of each graph, shape ``(G,)``.
        neighbors: Number of neighbors, less than G.

    Raises:
        Refusal: If there are not as many neighbors.
    """
    values, classes = np.unique(np.asarray(labels), return_inverse=True)
    if not 1 <= neighbors < len(classes):
        raise Refusal(f"neighbors must be between 1 and {len(classes) - 1}, got {neighbors}")
    others = distances + np.diag(np.full(len(classes), np.inf))
    nearest = classes[np.argsort(others, axis=1, kind="stable")[:, :neighbors]]
    votes = (nearest[:, :, None] == np.arange(len(values))).sum(axis=1)
    return float(np.mean(votes.argmax(axis=1) == classes))
