"""Statistics of sets of graphs from the evaluation of DPGGAN.

Yang et al., "Secure Deep Graph Generation with Link Differential Privacy" (DPGGAN), 2021, compare
each generated graph with its original, and average the differences of five statistics over the set
(Table 1). The names are theirs. Two of the five were not computed as their names say: both the
printed and the right variants are here.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.metrics.functional import (
    degrees,
    gini,
    largest_component_size,
    relative_edge_distribution_entropy,
    triangles,
)
from lightning_dpg.metrics.paths import characteristic_path_length


class SetMean(NamedTuple):
    """Mean over the graphs of a set, or over pairs of graphs of two sets."""

    value: float
    """Mean over defined numbers; nan without any."""
    undefined: int
    """Number of graphs or pairs left out, for instance because a graph has no edge."""


def printed_gini(graph: Data) -> float:
    """Return the Gini coefficient less :math:`2 / N`: the ranks of the paper began with 0.

    It is negative for graphs of almost equal degrees. The table prints 0.1222 for the original
    networks of IMDB, where it is -0.1222.
    """
    return gini(graph) - 2 / graph.num_nodes


def printed_entropy(graph: Data) -> float:
    r"""Return the entropy of edge ends, :math:`-\sum_i p_i \ln(p_i + 0.0001 / 2M) / \ln N`.

    The term added in the logarithm keeps it below 1 where all nodes have the same degree.
    """
    degree = degrees(graph).astype(np.float64)
    if degree.sum() == 0:
        return math.nan
    share = degree / degree.sum()
    return float(-(share * np.log(share + 1e-4 / degree.sum())).sum() / math.log(len(degree)))


SET_STATISTICS: dict[str, Callable[[Data], float]] = {
    "LCC": largest_component_size,
    "TC": triangles,
    "CPL": characteristic_path_length,
    "GINI": printed_gini,
    "REDE": printed_entropy,
    "right GINI": gini,
    "right REDE": relative_edge_distribution_entropy,
}


def set_differences(real: Sequence[Data], synthetic: Sequence[Data]) -> dict[str, SetMean]:
    """Return the mean absolute difference of each of :data:`SET_STATISTICS`, as in Table 1.

    Args:
        real: Graphs of two nodes or more.
        synthetic: For each real graph the graph generated in its place, in the same order.

    Raises:
        Refusal: If the sets differ in size.
    """
    if len(real) != len(synthetic):
        raise Refusal(f"sets must have equal sizes, got {len(real)} and {len(synthetic)}")
    pairs = list(zip(real, synthetic, strict=True))
    return {
        name: mean_of_defined(abs(statistic(first) - statistic(second)) for first, second in pairs)
        for name, statistic in SET_STATISTICS.items()
    }


def mean_of_defined(numbers: Iterable[float]) -> SetMean:
    """Return the mean of the numbers that are not nan."""
    values = np.array(list(numbers))
    defined = values[~np.isnan(values)]
    mean = float(defined.mean()) if len(defined) else math.nan
    return SetMean(mean, len(values) - len(defined))
