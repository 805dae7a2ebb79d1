"""Statistics of sets of graphs by which DPGGAN was judged.

Yang et al., "Secure Deep Graph Generation with Link Differential Privacy" (DPGGAN), 2021, compare
each generated graph with the one it stands for, and average over the set: Table 1 the differences
of five statistics, Table 2 the similarities of degrees and motifs. The names are theirs. Two of the
five were not computed as their names say. Here they are as in the table, and beside them as they
should be.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from torch_geometric.data import Data

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
    """Mean where the number is defined; nan if it is nowhere."""
    undefined: int
    """Number of graphs or pairs that were left out, for instance since a graph has no edge."""


def printed_gini(graph: Data) -> float:
    r"""Gini coefficient of the degrees less :math:`2 / N`, since their ranks began with 0.

    It is negative for graphs of almost equal degrees. The table prints 0.1222 for the original
    networks of IMDB, where it is -0.1222.
    """
    return gini(graph) - 2 / graph.num_nodes


def printed_entropy(graph: Data) -> float:
    r"""Entropy of the edges' ends, :math:`-\sum_i p_i \ln(p_i + 0.0001 / 2M) / \ln N`.

    The term added in the logarithm lets it end below 1 where all nodes have the same degree.
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
    """Mean absolute difference of each of :data:`SET_STATISTICS`: the other rows of Table 1.

    Args:
        real: Graphs of two nodes or more.
        synthetic: For each of them the graph that was generated in its place, in the same order.

    Raises:
        ValueError: If the sets differ in size.
    """
    if len(real) != len(synthetic):
        raise ValueError(f"sets must have equal sizes, got {len(real)} and {len(synthetic)}")
    pairs = list(zip(real, synthetic, strict=True))
    return {
        name: _mean(abs(statistic(first) - statistic(second)) for first, second in pairs)
        for name, statistic in SET_STATISTICS.items()
    }


def _mean(numbers: Iterable[float]) -> SetMean:
    values = np.array(list(numbers))
    defined = values[~np.isnan(values)]
    mean = float(defined.mean()) if len(defined) else math.nan
    return SetMean(mean, len(values) - len(defined))
