"""Curves of training: figures of a step, averaged over the processes that share its batch."""

import math
from collections.abc import Iterable

from torchmetrics import MeanMetric, Metric, MetricCollection


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
