import math

import networkx as nx
import pytest
from torchmetrics.utilities.data import dim_zero_sum

from lightning_dpg.graph.io import from_networkx
from lightning_dpg.metrics.functional import STATISTICS
from lightning_dpg.metrics.statistics import GraphStatistic


def test_mean_over_graphs():
    metric = GraphStatistic(STATISTICS["max_degree"])
    for graph in (nx.star_graph(8), nx.path_graph(4), nx.path_graph(4)):
        metric.update(from_networkx(graph))
    assert metric.compute() == 4
    metric.reset()
    metric.update(from_networkx(nx.star_graph(3)))
    assert metric.compute() == 3


def test_state_is_summed_over_processes():
    metric = GraphStatistic(STATISTICS["wedges"])
    assert metric._reductions == {"total": dim_zero_sum, "count": dim_zero_sum}


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_undefined_without_graphs_and_on_an_undefined_statistic():
    metric = GraphStatistic(STATISTICS["assortativity"])
    assert math.isnan(metric.compute())
    metric.update(from_networkx(nx.cycle_graph(5)))
    assert math.isnan(metric.compute())
