"""Figures of training, over the batches and the processes that share them."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torchmetrics import MeanMetric, Metric, MetricCollection
from torchmetrics.classification import MulticlassF1Score


def mean_curves(names: Iterable[str]) -> MetricCollection:
    """Make a weighted mean for each curve, which each step takes over all processes.

    Args:
        names: Names of the curves in the logs.
    """
    # A value that is no number stays one: "disable" would do so, and forgets the weights.
    metrics: dict[str, Metric | MetricCollection] = {
        name: MeanMetric(dist_sync_on_step=True, nan_strategy=math.nan) for name in names
    }
    return MetricCollection(metrics, compute_groups=False)


class FoldAccuracy(Metric):
    """Accuracy of repeated cross-validation: mean over the folds, then over the repetitions.

    Args:
        repetitions: Number of repetitions R.
        folds: Number of folds F of each.
        **kwargs: Those of the base class.
    """

    full_state_update = False
    right: Tensor
    count: Tensor

    def __init__(self, repetitions: int, folds: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for name in ("right", "count"):
            self.add_state(name, torch.zeros(repetitions, folds), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor, folds: Tensor) -> None:
        """Count the right labels of P graphs; all shapes are ``(R, P)``, and P may be 0.

        Args:
            preds: Predicted labels.
            target: Labels.
            folds: Numbers of the folds.
        """
        self.right.scatter_add_(1, folds, (preds == target).to(self.right))
        self.count.scatter_add_(1, folds, torch.ones_like(folds).to(self.count))

    def compute(self) -> dict[str, Tensor]:
        """Return the accuracy, and its standard deviation between repetitions; nan of one."""
        accuracies = (self.right.double() / self.count).mean(1)
        sd = accuracies.std() if len(accuracies) > 1 else accuracies.new_tensor(math.nan)
        return {"accuracy": accuracies.mean(), "accuracy_sd": sd}


def label_metrics(repetitions: int, folds: int, num_classes: int) -> MetricCollection:
    """Accuracy and F1 score, mean of the classes, of repeated predictions of labels from 0 on."""
    metrics: dict[str, Metric | MetricCollection] = {
        "accuracy": FoldAccuracy(repetitions, folds),
        "macro_f1": MulticlassF1Score(num_classes, average="macro"),
    }
    return MetricCollection(metrics, prefix="test_", compute_groups=False)
