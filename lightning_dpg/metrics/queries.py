"""Queries that compare a synthetic graph with the real one (read the private graph).

The first fifteen are from "PGB: Benchmarking Differentially Private Synthetic Graph Generation
Algorithms", 2024. After them come the other statistics of NetGAN, the overlap of the edges, and the
similarities in the evaluations of PrivCom and DPGGAN.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch_geometric.data import Data

from lightning_dpg.graph.graph import component_labels
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.metrics import functional
from lightning_dpg.metrics.alignment import align
from lightning_dpg.metrics.communities import (
    adjusted_mutual_information,
    average_f1,
    library_of,
    louvain,
    modularity,
    normalized_mutual_information,
    why_left_out,
)
from lightning_dpg.metrics.functional import (
    STATISTICS,
    Estimate,
    LocalClustering,
    degrees,
    edge_overlap,
    eigenvector_centrality,
)
from lightning_dpg.metrics.motifs import MotifCounts, motif_cosine, motif_counts
from lightning_dpg.metrics.paths import Distances, distances
from lightning_dpg.metrics.sampled import (
    LEFT_OUT,
    How,
    Sampled,
    how_noted,
    note_on_motifs,
    notes_on_samples,
    sampled_distances,
    sampled_wedges,
)

# Smallest probability of the second distribution, without which a divergence may be infinite.
PROBABILITY_FLOOR = float(np.finfo(np.float64).eps)


def kl_divergence(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    r"""Return the divergence :math:`\sum_k p_k \ln(p_k / \max(q_k, \epsilon))` of two histograms.

    Args:
        first: Counts whose shares are p, shape ``(K,)``.
        second: Counts whose shares are q, shape ``(L,)``. The floor :math:`\epsilon` is
            :data:`PROBABILITY_FLOOR`. A value without probability then costs up to 36 nats.
    """
    p, q = _shares(first, second)
    present = p > 0
    ratio = p[present] / np.maximum(q[present], PROBABILITY_FLOOR)
    # The floor and rounding errors add a little to q, which must not make the sum negative.
    return max(float((p[present] * np.log(ratio)).sum()), 0.0)


def _shares(*histograms: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return the shares of the values of histograms, all of one length."""
    size = max(map(len, histograms))
    return [np.pad(counts, (0, size - len(counts))) / counts.sum() for counts in histograms]


def distance_divergence(first: Distances, second: Distances) -> tuple[float, float]:
    """Return :func:`kl_divergence` of the distances of two graphs, and its standard error.

    The standard error is that of the first order in the errors of the counts, and 0 where no
    distances were sampled. It knows nothing of distances that no sampled node has.

    Args:
        first: Distances of the first graph.
        second: Distances of the second graph.
    """
    divergence = kl_divergence(first.counts, second.counts)
    p, q = _shares(first.counts, second.counts)
    floored = np.maximum(q, PROBABILITY_FLOOR)
    # Derivatives by the counts; a count of 0 has no error.
    by_first = np.where(p > 0, np.log(np.where(p > 0, p, 1) / floored) - divergence, 0)
    by_second = np.where(q > 0, p[q > 0].sum() - p / floored, 0)
    variance = 0.0
    for measured, slope in ((first, by_first), (second, by_second)):
        slope = slope[: len(measured.counts)] / measured.counts.sum()
        variance += float(slope @ measured.covariance @ slope)
    return divergence, math.sqrt(max(variance, 0.0))


TOP_SHARE = 0.01
DEGREE_BINS = 50

# These statistics are queries already, the last one under the name avg_path_length.
_REPEATED = ("assortativity", "triangles", "transitivity", "characteristic_path_length")

QUERIES: tuple[str, ...] = (
    "num_nodes",
    "num_edges",
    "triangles",
    "avg_degree",
    "degree_variance",
    "degree_distribution_kl",
    "diameter",
    "avg_path_length",
    "distance_distribution_kl",
    "global_clustering",
    "avg_clustering",
    "community_nmi",
    "modularity",
    "assortativity",
    "eigenvector_centrality_mae",
    *(name for name in STATISTICS if name not in _REPEATED),
    "edge_overlap",
    "community_ami",
    "community_f1",
    "degree_cosine",
    "motif_cosine",
)

# Scores of all other queries are errors. An overlap of 1 is a copy of the real graph.
HIGHER_IS_BETTER: frozenset[str] = frozenset(
    {
        *("community_nmi", "community_ami", "community_f1"),
        *("degree_cosine", "motif_cosine", "edge_overlap"),
    }
)

# These statistics change with nodes without an edge, besides the numbers of nodes and degrees.
_OF_ALL_NODES = ("gini", "relative_edge_distribution_entropy")

ALIGNED = ("community_nmi", "edge_overlap", "community_ami", "community_f1")
"""Queries about nodes, which must be the same in both graphs."""
_OF_COMMUNITIES = ("modularity", "community_nmi", "community_ami", "community_f1")


class Answer(NamedTuple):
    """Comparison of two graphs by one query; nan where a number is undefined."""

    real: float
    """Value of the real graph; nan where the query is about both graphs."""
    synthetic: float
    """Value of the synthetic graph; nan where the query is about both graphs."""
    score: float
    """Relative error, or the divergence, agreement, similarity or mean error named by the query."""
    note: str = ""
    """Note on the estimation, or the reason why a number is missing."""

    @property
    def how(self) -> How:
        """Origin of the figure by its note: measured, sampled or left out."""
        return how_noted(self.note)

    def for_json(self) -> dict[str, float | str | None]:
        """Return all fields, the score as ``error``, with None in place of nan and infinity."""
        numbers = {"real": self.real, "synthetic": self.synthetic, "error": self.score}
        finite = {key: value if math.isfinite(value) else None for key, value in numbers.items()}
        return {**finite, "note": self.note}


class Profile(NamedTuple):
    """Measurements of one graph for the queries."""

    graph: Data
    values: dict[str, float]
    """Answers to the queries about a single graph."""
    degree_counts: NDArray[np.float64]
    """Nodes of degree 0, 1, ..."""
    distances: Distances
    """Lengths of shortest paths."""
    clustering: LocalClustering
    """Local clustering at the nodes."""
    sampled: dict[str, Sampled]
    """Sampled ones among the values."""
    communities: NDArray[np.int64]
    """Louvain community of each node, shape ``(N,)``; empty if they were left out."""
    centrality: NDArray[np.float64]
    """Eigenvector centrality of each node, shape ``(N,)``; empty without an edge."""
    motifs: MotifCounts
    """Connected induced subgraphs of 3 to 5 nodes."""


class Comparison(NamedTuple):
    """Answers to the queries, with the measurements of the synthetic graph behind them."""

    answers: dict[str, Answer]
    """Answers to all of :data:`QUERIES`, in their order."""
    real: Profile
    """Measurements of the real graph, with the nodes of the synthetic graph that it lacks."""
    synthetic: Profile
    """Measurements of the synthetic graph, on the same nodes if the nodes were matched."""
    is_matched: bool
    """Whether the nodes were matched by name."""


def profile(graph: Data, networkx_edges: int | None = None) -> Profile:
    """Measure a graph of two nodes or more.

    Args:
        graph: The graph.
        networkx_edges: As for :func:`lightning_dpg.metrics.communities.louvain`.
    """
    measured = distances(graph)
    communities = louvain(graph, networkx_edges)
    triangles, clustering = functional.measure_clustering(graph)
    closed = functional.triangle_statistics(graph, triangles.value)
    errors = functional.triangle_statistics(graph, triangles.standard_error)
    errors |= {"global_clustering": errors["transitivity"]}
    errors |= {"avg_clustering": clustering.average.standard_error}
    values = _of_all_nodes(graph) | {
        "num_edges": graph.num_edges / 2,
        "diameter": float(len(measured.counts) - 1),
        "avg_path_length": measured.mean,
        "global_clustering": closed["transitivity"],
        "avg_clustering": clustering.average.value,
        "modularity": modularity(graph, communities),
        "assortativity": functional.assortativity(graph),
    }
    components = component_labels(graph)
    values |= functional.sizes_of_components(components)
    others = {*STATISTICS} - {*_REPEATED, *closed, *values}
    values |= closed | {name: STATISTICS[name](graph) for name in others}
    return Profile(
        graph,
        values,
        np.bincount(degrees(graph)).astype(np.float64),
        measured,
        clustering,
        sampled_distances(measured) | sampled_wedges(errors),
        communities,
        eigenvector_centrality(graph, components),
        motif_counts(graph),
    )


def _of_all_nodes(graph: Data) -> dict[str, float]:
    """Answer the quick queries that nodes without an edge change."""
    degree = degrees(graph)
    return {
        "num_nodes": float(graph.num_nodes),
        "avg_degree": float(degree.mean()),
        "degree_variance": float(degree.var(ddof=1)),
        **{name: STATISTICS[name](graph) for name in _OF_ALL_NODES},
    }


def extended(measured: Profile, graph: Data) -> Profile:
    """Return the measurements of a graph after the addition of nodes without an edge.

    Paths, triangles, communities and motifs are not measured again: such a node has no path and is
    in no triangle, and it is a community of its own.

    Args:
        measured: Measurements of a graph.
        graph: The graph with the added nodes, which have the last numbers.
    """
    before, after = measured.graph.num_nodes, graph.num_nodes
    if before == after:
        return measured
    share, added = before / after, np.arange(after - before)
    counts, average = measured.distances.counts.copy(), measured.clustering.average
    counts[0] = after
    average = Estimate(share * average.value, share * average.standard_error)
    sampled = dict(measured.sampled)
    if (sample := sampled.get("avg_clustering")) is not None:
        sampled["avg_clustering"] = sample._replace(standard_error=average.standard_error)
    communities, centrality = measured.communities, measured.centrality
    if communities.size:
        communities = np.concatenate([communities, communities.max() + 1 + added])
    if centrality.size:
        centrality = np.concatenate([centrality, np.zeros(len(added))])
    values = measured.values | _of_all_nodes(graph) | {"avg_clustering": average.value}
    values["num_components"] += len(added)
    return measured._replace(
        graph=graph,
        values=values,
        degree_counts=np.bincount(degrees(graph)).astype(np.float64),
        distances=measured.distances._replace(counts=counts),
        clustering=measured.clustering._replace(average=average),
        sampled=sampled,
        communities=communities,
        centrality=centrality,
    )


def compare(real: Profile, synthetic: Data) -> dict[str, Answer]:
    """Answer all of :data:`QUERIES` in their order.

    Args:
        real: Measured real graph.
        synthetic: Synthetic graph of two nodes or more. Nodes are matched by name, and a node that
            one graph lacks counts as a node without an edge, see :func:`align`. ``community_nmi``,
            ``community_ami``, ``community_f1`` and ``edge_overlap`` are nan if no name is common.
    """
    return compare_measured(real, synthetic).answers


def compare_measured(
    real: Profile, synthetic: Data, networkx_edges: int | None = None
) -> Comparison:
    """Answer the queries as :func:`compare` does, and keep the measurements.

    Args:
        real: Measured real graph.
        synthetic: Synthetic graph of two nodes or more.
        networkx_edges: As for :func:`lightning_dpg.metrics.communities.louvain`, of the synthetic
            graph.
    """
    alignment = align(synthetic, real.graph)
    if alignment is not None:
        real, synthetic = extended(real, alignment.reference), alignment.graph
    other = profile(synthetic, networkx_edges)
    similarity, error = motif_cosine(real.motifs, other.motifs)
    divergence, spread = distance_divergence(real.distances, other.distances)
    pairs = {
        "degree_distribution_kl": kl_divergence(real.degree_counts, other.degree_counts),
        "distance_distribution_kl": divergence,
        "eigenvector_centrality_mae": top_error(real.centrality, other.centrality),
        "degree_cosine": degree_cosine(real.degree_counts, other.degree_counts),
        "motif_cosine": similarity,
    }
    notes = notes_on_samples((real.sampled, other.sampled), (real.values, other.values), spread)
    notes["motif_cosine"] = note_on_motifs(real.motifs, other.motifs, error)
    if alignment is None:
        pairs |= dict.fromkeys(ALIGNED, math.nan)
        notes |= dict.fromkeys(ALIGNED, "no node has a name in both graphs")
    else:
        pairs |= _of_equal_nodes(real, other)
        notes |= dict.fromkeys(("num_nodes", *ALIGNED), alignment.note)
    libraries = [library_of(graph) for graph in (real.graph, synthetic)]
    if None in libraries:
        largest = max(graph.num_edges // 2 for graph in (real.graph, synthetic))
        notes |= dict.fromkeys(_OF_COMMUNITIES, f"{LEFT_OUT}: {why_left_out(largest)}")
    elif "networkit" in libraries:
        for name in _OF_COMMUNITIES:
            notes[name] = "; ".join(filter(None, [notes.get(name), "Louvain by networkit"]))
    answers = {}
    for name in QUERIES:
        note = notes.get(name, "")
        if name in pairs:
            answers[name] = Answer(math.nan, math.nan, pairs[name], note)
        else:
            ours, theirs = real.values[name], other.values[name]
            answers[name] = Answer(ours, theirs, relative_error(ours, theirs), note)
    return Comparison(answers, real, other, alignment is not None)


def _of_equal_nodes(real: Profile, other: Profile) -> dict[str, float]:
    """Answer the queries about nodes, which are the same in both graphs."""
    overlap = edge_overlap(other.graph, real.graph)
    partitions = real.communities, other.communities
    if not all(labels.size for labels in partitions):
        return dict.fromkeys(ALIGNED, math.nan) | {"edge_overlap": overlap}
    return {
        "edge_overlap": overlap,
        "community_nmi": normalized_mutual_information(*partitions),
        "community_ami": adjusted_mutual_information(*partitions),
        "community_f1": average_f1(*partitions),
    }


def relative_error(real: float, synthetic: float) -> float:
    """Return :math:`|real - synthetic| / |real|`; 0 if both are 0, nan if only ``real`` is."""
    if real == synthetic:
        return 0.0
    return abs(real - synthetic) / abs(real) if real else math.nan


def degree_cosine(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the cosine of the angle between two degree histograms; nan without an edge.

    Of the :data:`DEGREE_BINS` bins, the k-th holds the nodes of degree k and the last one also the
    nodes of higher degrees, as in Yang et al., "Secure Deep Graph Generation with Link Differential
    Privacy", 2021. Nodes without an edge have no bin.

    Args:
        first: Nodes of degree 0, 1, ..., shape ``(K,)``.
        second: Nodes of degree 0, 1, ..., shape ``(L,)``.
    """
    ours, theirs = (
        np.bincount(np.arange(len(counts)).clip(max=DEGREE_BINS), counts, DEGREE_BINS + 1)[1:]
        for counts in (first, second)
    )
    norms = float(np.linalg.norm(ours) * np.linalg.norm(theirs))
    return min(float(ours @ theirs) / norms, 1.0) if norms else math.nan


def top_error(real: NDArray[np.float64], synthetic: NDArray[np.float64]) -> float:
    """Return the mean absolute difference of the largest values, whatever their nodes.

    Values are compared in descending order: a share :data:`TOP_SHARE` of the values of the real
    graph, rounded down, but at least one; nan where either graph has fewer.
    """
    count = max(int(TOP_SHARE * len(real)), 1)
    if min(len(real), len(synthetic)) < count:
        return math.nan
    ours, theirs = (np.sort(values)[::-1][:count] for values in (real, synthetic))
    return float(np.abs(ours - theirs).mean())


_ROWS_AT_ONCE = 1024


def num_directed_edges(graph: Data) -> float:
    """Count ordered pairs that are edges."""
    return float(len(space_of(graph).edges(graph)))


def reciprocity(graph: Data) -> float:
    """Return the share of directed edges whose opposite is an edge, too; nan without an edge."""
    space = space_of(graph)
    edges = space.edges(graph)
    if not len(edges):
        return math.nan
    mutual = np.isin(space.numbers(edges.flip(1)).numpy(), space.numbers(edges).numpy())
    return float(mutual.mean())


def butterflies(graph: Data) -> float:
    """Count butterflies of a bipartite graph: two left nodes with two common right neighbors.

    Wang, Fu, Cheng, "Rectangle counting in large bipartite graphs", 2014.
    """
    space = space_of(graph)
    edges, left = space.edges(graph).numpy(), space.num_left or 0
    shape = (left, space.num_nodes - left)
    links = csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1] - left)), shape=shape)
    by_left, by_right = links.sum(axis=1), links.sum(axis=0)
    if (by_left**2).sum() < (by_right**2).sum():  # fewer paths of two edges between right nodes
        links = csr_array(links.T)
    total = 0.0
    for start in range(0, links.shape[0], _ROWS_AT_ONCE):
        common = (links[start : start + _ROWS_AT_ONCE] @ links.T).tocoo()
        others = common.data[common.row + start != common.col]
        total += float((others * (others - 1) / 2).sum())
    return total / 2


def part_degrees(graph: Data, part: int) -> NDArray[np.float64]:
    """Count nodes of degree 0, 1, ... in one part of the degree vector.

    Args:
        graph: A directed or bipartite graph.
        part: 0 for out-degrees or left nodes, 1 for in-degrees or right nodes.
    """
    space = space_of(graph)
    entries = space.parts[part]
    degrees = space.degrees(space.edges(graph))[entries.start : entries.stop]
    return np.bincount(degrees.numpy()).astype(np.float64)


_VALUES: dict[str, dict[str, Callable[[Data], float]]] = {
    "undirected": {},
    "directed": {"num_directed_edges": num_directed_edges, "reciprocity": reciprocity},
    "bipartite": {"butterflies": butterflies},
}
_DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "undirected": (),
    "directed": ("out_degree_distribution_kl", "in_degree_distribution_kl"),
    "bipartite": ("left_degree_distribution_kl", "right_degree_distribution_kl"),
}
KIND_QUERIES: dict[str, tuple[str, ...]] = {
    kind: (*_VALUES[kind], *_DISTRIBUTIONS[kind]) for kind in _VALUES
}
"""Queries beside the common ones, by the kind of the graphs."""


def compare_kinds(real: Data, synthetic: Data) -> dict[str, Answer]:
    """Answer :data:`KIND_QUERIES` of two graphs of one kind.

    Args:
        real: Real graph.
        synthetic: Synthetic graph of the same kind. Nodes are matched by name, and a node that one
            graph lacks counts as a node without an edge.
    """
    kind = space_of(real).kind
    answers = {}
    for name, value in _VALUES[kind].items():
        ours, theirs = value(real), value(synthetic)
        answers[name] = Answer(ours, theirs, relative_error(ours, theirs))
    for part, name in enumerate(_DISTRIBUTIONS[kind]):
        counts = part_degrees(real, part), part_degrees(synthetic, part)
        counts[0][0] += _lacked(real, synthetic, part)
        counts[1][0] += _lacked(synthetic, real, part)
        answers[name] = Answer(math.nan, math.nan, kl_divergence(*counts))
    return answers


def _lacked(graph: Data, other: Data, part: int) -> int:
    """Count nodes of one part of another graph that a graph lacks; 0 if no name is common."""
    names = {*graph.node_names}
    if names.isdisjoint(other.node_names):
        return 0
    sides = other.sides.tolist() if "sides" in other else [part] * other.num_nodes
    return sum(
        side == part and name not in names
        for name, side in zip(other.node_names, sides, strict=True)
    )
