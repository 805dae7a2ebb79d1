"""Queries that compare a set of synthetic graphs with the real one (read the private graphs).

They are the evaluation of Yang et al., "Secure Deep Graph Generation with Link Differential
Privacy" (DPGGAN), 2021: Table 1, Table 2 with baselines of the accuracy; and four discrepancies of
the sets.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.metrics.classification import classification_accuracies
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.graph_sets import SET_STATISTICS
from lightning_dpg.metrics.mmd import DESCRIPTORS, squared_mmd
from lightning_dpg.metrics.motifs import MotifCounts, motif_cosine, motif_counts
from lightning_dpg.metrics.queries import Answer, degree_cosine

TABLE_1 = ("LCC", "TC", "CPL", "GINI", "REDE")
"""Statistics of Table 1, as printed."""

# Few trees suffice per graph: the mean over many graphs has a smaller error.
_TREES = 20_000
# Accuracies, each with its bound from the originals.
_ACCURACIES = {"gin_accuracy": "gin", "size_accuracy": "size", "majority_accuracy": "majority"}

SET_QUERIES: tuple[str, ...] = (
    *SET_STATISTICS,
    "degree_cosine",
    "motif_cosine",
    *(f"{name}_mmd" for name in DESCRIPTORS),
    *_ACCURACIES,
)

SET_HIGHER_IS_BETTER: frozenset[str] = frozenset({"degree_cosine", "motif_cosine", *_ACCURACIES})


class SetProfile(NamedTuple):
    """Measurements of a set of G graphs for the queries."""

    graphs: Sequence[Data]
    statistics: dict[str, NDArray[np.float64]]
    """Each of :data:`SET_STATISTICS` of each graph, shape ``(G,)``; nan where it is undefined."""
    degree_counts: list[NDArray[np.float64]]
    """Nodes of degree 0, 1, ... of each graph."""
    motifs: list[MotifCounts]
    """Connected induced subgraphs of 3 to 5 nodes of each graph."""
    descriptions: dict[str, list[NDArray[np.float64]]]
    """Each of the descriptors of the discrepancies, of each graph."""


def profile_set(graphs: Sequence[Data]) -> SetProfile:
    """Measure a set of graphs of two nodes or more."""
    return SetProfile(
        graphs,
        {
            name: np.array([statistic(graph) for graph in graphs])
            for name, statistic in SET_STATISTICS.items()
        },
        [np.bincount(degrees(graph)).astype(np.float64) for graph in graphs],
        [motif_counts(graph, _TREES, exact_up_to=_TREES) for graph in graphs],
        {
            name: [descriptor.describe(graph) for graph in graphs]
            for name, descriptor in DESCRIPTORS.items()
        },
    )


def compare_sets(
    real: SetProfile, synthetic: Sequence[Data], *, classify: bool = True
) -> dict[str, Answer]:
    """Answer :data:`SET_QUERIES` in their order.

    The answers to the statistics are means over the graphs, and their score is the mean absolute
    difference of two graphs that belong together. The score of an accuracy is what a classifier
    reaches that learned from the synthetic graphs; ``real`` is what it reaches with the originals.

    Args:
        real: Measured real set.
        synthetic: For each real graph the graph generated in its place, in the same order.
        classify: Whether to train classifiers, which takes longest. Without it, or without labels
            of the real graphs, their queries are left out.
    """
    if len(real.graphs) != len(synthetic):
        raise Refusal(f"sets must have equal sizes, got {len(real.graphs)}, {len(synthetic)}")
    other = profile_set(synthetic)
    answers = {
        name: _answer(_mean(ours), _mean(theirs), np.abs(ours - theirs))
        for name, ours in real.statistics.items()
        for theirs in [other.statistics[name]]
    }
    cosines = {
        "degree_cosine": map(degree_cosine, real.degree_counts, other.degree_counts),
        "motif_cosine": (
            motif_cosine(*pair)[0] for pair in zip(real.motifs, other.motifs, strict=True)
        ),
    }
    answers |= {name: _answer(math.nan, math.nan, [*values]) for name, values in cosines.items()}
    for name, descriptor in DESCRIPTORS.items():
        sets = real.descriptions[name], other.descriptions[name]
        distance = squared_mmd(*sets, descriptor.bandwidth)
        answers[f"{name}_mmd"] = Answer(math.nan, math.nan, distance)
    if classify and all(graph.y is not None for graph in real.graphs):
        accuracies = classification_accuracies(real.graphs, synthetic)
        for query, name in _ACCURACIES.items():
            upper = accuracies.get(f"{name}_real", accuracies[name])
            answers[query] = Answer(upper, accuracies[name], accuracies[name])
    return answers


def _answer(ours: float, theirs: float, errors: Sequence[float] | NDArray[np.float64]) -> Answer:
    undefined = int(np.isnan(errors).sum())
    note = f"undefined for {undefined} of {len(errors)} graphs" if undefined else ""
    return Answer(ours, theirs, _mean(errors), note)


def _mean(values: Sequence[float] | NDArray[np.float64]) -> float:
    """Return the mean of the numbers that are defined; nan if none is."""
    defined = np.asarray(values)[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else math.nan
