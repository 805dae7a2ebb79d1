"""Comparison of graphs by the rows of their nodes, and its agreement with their labels."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import normalized_mutual_info_score
from torch import Tensor

from lightning_dpg.graph.gromov import Matrix, Space, row_distances
from lightning_dpg.graph.gromov_kmeans import gromov_kmeans
from lightning_dpg.metrics.kernel_svm import neighbor_accuracy

# Barycenters of more graphs would take minutes.
_MOST_CLUSTERED = 500


def row_spaces(
    rows: Tensor, sizes: Tensor, distance: Literal["euclidean", "cosine", "correlation"]
) -> list[Space]:
    """Distances between the rows of each graph.

    Args:
        rows: Rows of all graphs, in the order of graphs, shape ``(N, h)``.
        sizes: Number of rows of each graph, shape ``(G,)``.
        distance: Distance between two rows.
    """
    parts = torch.split(rows.cpu().double(), sizes.tolist())
    return [Space(row_distances(part.numpy(), distance)) for part in parts]


def comparison_scores(
    discrepancies: Matrix,
    labels: NDArray[np.int64],
    spaces: Sequence[Space],
    tested: NDArray[np.intp],
) -> dict[str, float]:
    """Accuracy of nearest neighbors, and the mutual information of labels and clusters.

    Args:
        discrepancies: Discrepancies of all graphs, shape ``(G, G)``.
        labels: Label of each graph, shape ``(G,)``.
        spaces: Row distances of each graph.
        tested: Numbers of the graphs of the scores. Large numbers of graphs are not clustered.
    """
    distances, labels = discrepancies[np.ix_(tested, tested)], labels[tested]
    scores = {"test_accuracy_of_neighbors": neighbor_accuracy(distances, labels)}
    if len(tested) <= _MOST_CLUSTERED:
        clusters = gromov_kmeans([spaces[k] for k in tested], distances, len(np.unique(labels)))
        scores["test_clusters_nmi"] = normalized_mutual_info_score(labels, clusters.labels)
    return scores
