"""Graph classification accuracy on released features, with a majority-class baseline."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from lightning_dpg.metrics.kernel_svm import cross_validated_accuracy, gin_cross_validated
from lightning_dpg.metrics.queries import Answer

LABEL_QUERIES = ("accuracy", "gin_accuracy_real")
"""Queries in the order of the tables; higher is better in each."""


def compare_labels(
    graphs: Sequence[Data],
    grams: Sequence[NDArray[np.float64]],
    *,
    classify: bool = False,
    seed: int = 0,
) -> dict[str, Answer]:
    """Return the accuracy of support vector machines in ten folds.

    Args:
        graphs: The G graphs, each with its label ``y`` of shape ``(1,)``.
        grams: Candidate kernels between them, each of shape ``(G, G)``, from what was released.
        classify: Whether to train graph isomorphism networks on the private graphs, an upper bound.
        seed: Public seed of the folds.

    Returns:
        Answers by query; ``real`` of the accuracy is the majority-class baseline.
    """
    labels = np.array([int(graph.y) for graph in graphs])
    majority = float(np.bincount(labels - labels.min()).max() / len(labels))
    mean = cross_validated_accuracy(grams, labels, repetitions=1, seed=seed).mean
    answers = {"accuracy": Answer(majority, mean, mean, "real: share of the most frequent label")}
    if classify:
        network = gin_cross_validated(graphs, labels, seed=seed).mean
        answers["gin_accuracy_real"] = Answer(network, math.nan, network, "from the real graphs")
    return answers
