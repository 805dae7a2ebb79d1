"""Statistics of graphs as a metric."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torchmetrics import Metric


class GraphStatistic(Metric):
    """Mean of a statistic over graphs, nan without any.

    ``update`` takes a graph, ``compute`` returns a scalar in double precision.

    Args:
        statistic: One of :data:`lightning_dpg.metrics.functional.STATISTICS` or another function
            of a graph.
        **kwargs: Arguments of torchmetrics, such as ``sync_on_compute``.
    """

    is_differentiable = False
    full_state_update = False
    total: Tensor
    count: Tensor

    def __init__(self, statistic: Callable[[Data], float], **kwargs: Any) -> None:
        """Start without a graph."""
        super().__init__(**kwargs)
        self.statistic = statistic
        self.add_state("total", torch.tensor(0.0, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, graph: Data) -> None:
        """Take one more graph into account."""
        self.total += self.statistic(graph)
        self.count += 1

    def compute(self) -> Tensor:
        """Mean over all graphs so far."""
        return self.total / self.count
