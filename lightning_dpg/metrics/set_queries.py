"""Queries that compare a set of synthetic graphs with the real one (read the private graphs).

They are the evaluation of Yang et al., "Secure Deep Graph Generation with Link Differential
Privacy" (DPGGAN), 2021: Table 1, Table 2 with baselines of the accuracy; and four discrepancies of
the sets.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import laplacian
from scipy.spatial.distance import cdist
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import adjacency
from lightning_dpg.metrics.classification import classification_accuracies
from lightning_dpg.metrics.functional import degrees, local_clustering
from lightning_dpg.metrics.graph_sets import SET_STATISTICS, mean_of_defined
from lightning_dpg.metrics.motifs import MotifCounts, motif_cosine, motif_counts, small_motif_counts
from lightning_dpg.metrics.queries import Answer, degree_cosine

# The spectrum needs a dense matrix of the graph's size.
MAX_SPECTRUM_NODES = 5_000


# Motif of each orbit, of which the edge is the last one, and the nodes of the motif that are in it
_MOTIF_OF_ORBIT = np.array([8, 0, 0, 1, 3, 3, 2, 2, 5, 4, 4, 4, 6, 6, 7])
_NODES_OF_ORBIT = np.array([2, 2, 1, 3, 2, 2, 3, 1, 4, 1, 2, 1, 2, 2, 4])


class Descriptor(NamedTuple):
    """A map of graphs to vectors, and the scale on which these are compared."""

    describe: Callable[[Data], NDArray[np.float64]]
    """Vector of a graph; missing entries at its end count as 0."""
    bandwidth: float
    """Standard deviation of the Gaussian kernel."""


def degree_histogram(graph: Data) -> NDArray[np.float64]:
    """Return the shares of nodes of degree 0, 1, ..., up to the largest degree."""
    return _shares(np.bincount(degrees(graph)))


def clustering_histogram(graph: Data) -> NDArray[np.float64]:
    """Return the shares of nodes by local clustering coefficient, in 100 bins from 0 to 1."""
    return _shares(np.histogram(local_clustering(graph), bins=100, range=(0, 1))[0])


def orbit_means(graph: Data) -> NDArray[np.float64]:
    """Return the mean of each of the 15 orbit counts over nodes, ``(15,)``; not a histogram.

    The orbits are the roles of a node in an edge and in the motifs of 3 and 4 nodes, numbered as in
    Pržulj, "Biological network comparison using graphlet degree distribution", 2007.
    """
    counts = np.append(small_motif_counts(graph), graph.num_edges // 2)
    return counts[_MOTIF_OF_ORBIT] * _NODES_OF_ORBIT / graph.num_nodes


def spectrum_histogram(graph: Data) -> NDArray[np.float64]:
    """Return the shares of eigenvalues of the normalized Laplacian, in 200 bins from -1e-5 to 2.

    A node without an edge has the eigenvalue 0.

    Raises:
        Refusal: If the graph has more than :data:`MAX_SPECTRUM_NODES` nodes.
    """
    if graph.num_nodes > MAX_SPECTRUM_NODES:
        raise Refusal(
            f"graph has {graph.num_nodes} nodes, more than the {MAX_SPECTRUM_NODES} "
            "of which the whole spectrum can be computed; leave out the spectrum"
        )
    normalized = laplacian(adjacency(graph), normed=True)
    # Rounding errors would drop eigenvalues of 2, which bipartite graphs have.
    values = np.linalg.eigvalsh(normalized.toarray()).clip(0, 2)
    return _shares(np.histogram(values, bins=200, range=(-1e-5, 2))[0])


DESCRIPTORS: dict[str, Descriptor] = {
    "degree": Descriptor(degree_histogram, 1.0),
    "clustering": Descriptor(clustering_histogram, 0.1),
    "orbit": Descriptor(orbit_means, 30.0),
    "spectrum": Descriptor(spectrum_histogram, 1.0),
}


def gaussian_tv(
    first: NDArray[np.float64], second: NDArray[np.float64], bandwidth: float
) -> NDArray[np.float64]:
    r"""Return the total-variation kernel :math:`\exp(-\|x - y\|_1^2 / 8 \sigma^2)`.

    Args:
        first: Vectors x, shape ``(A, K)``. The total variation of two of them is half the sum of
            the absolute differences, also where they are no histograms.
        second: Vectors y, shape ``(B, K)``.
        bandwidth: Standard deviation :math:`\sigma`.

    Returns:
        Kernel of shape ``(A, B)``. It need not be positive definite.
    """
    distance = cdist(first, second, "cityblock") / 2
    return np.exp(-(distance**2) / (2 * bandwidth**2))


def squared_mmd(
    real: Sequence[NDArray[np.float64]], synthetic: Sequence[NDArray[np.float64]], bandwidth: float
) -> float:
    """Return the squared discrepancy :math:`E k(x, x') + E k(y, y') - 2 E k(x, y)`.

    The means go over all pairs, including pairs of a vector with itself, as in GraphRNN and GRAN.
    So it is 0 for equal sets, and above 0 for two samples of one distribution. As the kernel need
    not be positive definite, it is slightly below 0 for rare sets.

    Args:
        real: Vectors x, one or more.
        synthetic: Vectors y, one or more.
        bandwidth: Standard deviation of the kernel, see :func:`gaussian_tv`.
    """
    if not (real and synthetic):
        raise Refusal(f"both sets need a graph, got {len(real)} and {len(synthetic)}")
    size = max(len(vector) for vector in (*real, *synthetic))
    x, y = (
        np.stack([np.pad(vector, (0, size - len(vector))) for vector in vectors])
        for vectors in (real, synthetic)
    )
    within = gaussian_tv(x, x, bandwidth).mean() + gaussian_tv(y, y, bandwidth).mean()
    return float(within - 2 * gaussian_tv(x, y, bandwidth).mean())


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return counts / counts.sum()


TABLE_1 = ("LCC", "TC", "CPL", "GINI", "REDE")

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
        name: _answer(
            mean_of_defined(ours).value, mean_of_defined(theirs).value, np.abs(ours - theirs)
        )
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
    score, undefined = mean_of_defined(errors)
    note = f"undefined for {undefined} of {len(errors)} graphs" if undefined else ""
    return Answer(ours, theirs, score, note)
