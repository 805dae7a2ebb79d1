"""Graph classification in repeated cross-validation: kernel machines and a graph network.

The protocol of Morris et al., "TUDataset: A collection of benchmark datasets for learning with
graphs", 2020: a support vector machine on a kernel, ten folds, ten times. The cost C and one of
several kernels are chosen within each training part.
Kernels of graphs without privacy are those of shortest paths and of Weisfeiler and Lehman: inner
products of histograms, normalized to 1 for a graph with itself. On request they distinguish nodes by
the labels among the columns of ``x``.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, hstack, vstack
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import normalize
from sklearn.svm import SVC
from torch_geometric.data import Data

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.graph import adjacency
from lightning_dpg.metrics.classification import gin_accuracy
from lightning_dpg.metrics.queries import Answer

MAX_GRAPHS = 10_000
"""Largest number of graphs for kernels of all pairs, which take 800 MB each."""

_COSTS = 10.0 ** np.arange(-3, 4)
_WIDTHS = (0.1, 1.0, 10.0)
# A machine of large C that has not converged after so many steps would learn noise, slowly. The
# choice of C takes it as it is.
_MAX_STEPS = 5_000


class Accuracy(NamedTuple):
    """Accuracy in repeated cross-validation."""

    mean: float
    """Mean over the repetitions."""
    sd: float
    """Standard deviation between the repetitions; nan of a single one."""
    per_repetition: NDArray[np.float64]
    """Mean over the folds of each repetition, shape ``(R,)``."""


class Predictions(NamedTuple):
    """Labels that repeated cross-validation predicts for G graphs, in R repetitions."""

    labels: NDArray[np.int64]
    """Predicted labels, each by machines that did not learn the label of the graph: ``(R, G)``."""
    folds: NDArray[np.int64]
    """Number of the fold of each graph, ``(R, G)``."""

    def accuracy(self, labels: NDArray[np.int64]) -> Accuracy:
        """Return the mean over the folds, for the labels of the graphs, shape ``(G,)``."""
        accuracies = []
        for predicted, fold_of in zip(self.labels, self.folds, strict=True):
            right = predicted == labels
            parts = [right[fold_of == fold].mean() for fold in range(fold_of.max() + 1)]
            accuracies.append(float(np.mean(parts)))
        return _summary(iter(accuracies))


def cross_validated_predictions(
    grams: Sequence[NDArray[np.float64]],
    labels: ArrayLike,
    *,
    folds: int = 10,
    repetitions: int = 10,
    seed: int = 0,
) -> Predictions:
    """Predict labels by support vector machines on the best of some kernels.

    For each tested fold, the machines that choose C and the kernel learn from all other folds but
    one, and are compared on this one. This is done twice: with the fold before and the fold after
    the tested one, in the circle of folds. Neighboring folds are thus left out together, and the
    same machines serve both. The best choice then learns from all folds but the tested one.

    Args:
        grams: Kernels of all pairs of G graphs, shape ``(G, G)`` each, of which each training part
            takes one. Each is scaled to a mean of 1 on its diagonal. The values
            of C, from 0.001 to 1000, then mean the same for all. They should be positive
            semidefinite, see :func:`clip_spectrum`.
        labels: Class of each graph, shape ``(G,)``.
        folds: Number of folds, which have equal shares of the classes.
        repetitions: Number of random divisions into folds.
        seed: Public seed of the folds, which depend on the labels and not on the kernel.

    Raises:
        Refusal: If a kernel is not finite or does not fit the labels, or there are too few folds
            or too few graphs of a class.
    """
    classes = np.asarray(labels)
    candidates = [scaled(gram, len(classes)) for gram in grams]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        repeats = [
            _machines_predictions(candidates, classes, parts)
            for parts in _folds(classes, folds, repetitions, seed)
        ]
    predicted, fold_of = (np.stack(rows) for rows in zip(*repeats, strict=True))
    return Predictions(predicted, fold_of)


def predicted_labels(
    grams: Sequence[NDArray[np.float64]],
    labels: ArrayLike,
    *,
    folds: int = 10,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Predict labels of new graphs by a support vector machine on the labeled graphs.

    C and the kernel maximize the mean accuracy where each fold is left out once.

    Args:
        grams: Kernels of all pairs of L labeled and then T new graphs, shape ``(L + T, L + T)``.
        labels: Class of each of the labeled graphs, shape ``(L,)``.
        folds: Number of folds.
        seed: Public seed of the folds.

    Returns:
        Class of each new graph, shape ``(T,)``.

    Raises:
        Refusal: As :func:`cross_validated_predictions`.
    """
    classes = np.asarray(labels)
    candidates = [scaled(gram, len(grams[0])) for gram in grams]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        parts = next(_folds(classes, folds, 1, seed))
        trials = [
            _trials(candidates, classes, _without(parts, i), [part])[0]
            for i, part in enumerate(parts)
        ]
        choice = int(np.mean(trials, axis=0).argmax())
        gram, machine = _fitted(candidates, classes, np.arange(len(classes)), choice)
    return machine.predict(gram[len(classes) :])


def gin_cross_validated(
    graphs: Sequence[Data],
    labels: ArrayLike,
    *,
    folds: int = 10,
    repetitions: int = 1,
    seed: int = 0,
    steps: int = 800,
) -> Accuracy:
    """Return the accuracy of graph isomorphism networks on degrees, in the same folds.

    Nothing is chosen: a network learns from all folds but the tested one.

    Args:
        graphs: The G graphs; features of their nodes are not used.
        labels: Class of each graph, shape ``(G,)``.
        folds: Number of folds.
        repetitions: Number of random divisions into folds.
        seed: Public seed of the folds and of the networks.
        steps: Training steps of each network.
    """
    values, classes = np.unique(np.asarray(labels), return_inverse=True)
    labeled = [
        Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes, y=label)
        for graph, label in zip(graphs, torch.from_numpy(classes[:, None]), strict=True)
    ]

    def accuracy(tested: NDArray[np.int64], others: NDArray[np.int64]) -> float:
        train, test = ([labeled[i] for i in part] for part in (others, tested))
        return gin_accuracy(train, test, len(values), seed, steps)

    return _summary(
        float(np.mean([accuracy(part, _without(parts, i)) for i, part in enumerate(parts)]))
        for parts in _folds(classes, folds, repetitions, seed)
    )


def feature_kernels(features: ArrayLike) -> list[NDArray[np.float64]]:
    r"""Compute a linear and three Gaussian kernels of features.

    Columns are standardized, over all graphs: this reads the features of graphs that are tested
    later, but no label. Constant columns are dropped. The mean squared distance of two graphs is
    then :math:`2 F`, and the Gaussian kernels are :math:`\exp(-w \|x - y\|^2 / F)` with w = 0.1, 1,
    10.

    Args:
        features: One row per graph, shape ``(G, F)``.

    Raises:
        Refusal: If the features are no finite matrix, or of more than :data:`MAX_GRAPHS` graphs.
    """
    return column_kernels(standardized(features))


def column_kernels(columns: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Compute the kernels of :func:`feature_kernels` of columns of any variance.

    Distances are divided by the sum of the variances, in place of F: a column of small variance
    counts little, and a column of zeros nothing.

    Args:
        columns: Columns of mean 0, shape ``(G, F)``.
    """
    total = float((columns**2).sum()) / max(len(columns), 1) or 1.0
    distances = cdist(columns, columns, "sqeuclidean") / total
    return [columns @ columns.T / total, *(np.exp(-width * distances) for width in _WIDTHS)]


def standardized(features: ArrayLike) -> NDArray[np.float64]:
    """Return the columns with mean 0 and variance 1, without constant ones.

    Args:
        features: One row per graph, shape ``(G, F)``.

    Raises:
        Refusal: If the features are no finite matrix, or of more than :data:`MAX_GRAPHS` graphs.
    """
    x = np.asarray(features, dtype=np.float64)
    if x.ndim != 2 or not np.isfinite(x).all():
        raise Refusal(f"features must be finite and of shape (G, F), got shape {x.shape}")
    check_number_of_graphs(len(x))
    x = x[:, np.ptp(x, axis=0) > 0]
    result: NDArray[np.float64] = (x - x.mean(axis=0)) / x.std(axis=0)
    return result


def clip_spectrum(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Set negative eigenvalues to 0: the nearest positive semidefinite matrix.

    It serves similarities that are no kernels, such as similarities from distances between graphs.
    The spectrum is that of all graphs. Graphs tested later affect the kernel between the others, by
    their similarities but not by their labels: the accuracy is transductive, and a new graph needs
    a new decomposition.

    Args:
        gram: Symmetric matrix of shape ``(G, G)``.

    References:
        Chen, Garcia, Gupta, Rahimi, Cazzanti, "Similarity-based Classification: Concepts and
        Algorithms", 2009, section 4.1.
    """
    values, vectors = np.linalg.eigh(gram)
    return (vectors * values.clip(min=0)) @ vectors.T


def check_number_of_graphs(count: int) -> None:
    """Refuse sets of graphs whose kernels would not fit into memory.

    Raises:
        Refusal: If there are more than :data:`MAX_GRAPHS` graphs.
    """
    if count > MAX_GRAPHS:
        raise Refusal(
            f"{count} graphs, more than the {MAX_GRAPHS} for which kernels of all pairs are made\n"
            "classify a part of them"
        )


def scaled(gram: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Scale the kernel to a mean of 1 on its diagonal; a zero kernel stays."""
    if gram.shape != (count, count) or not np.isfinite(gram).all():
        raise Refusal(
            f"a kernel of {count} graphs must be finite and of shape ({count}, {count}), "
            f"got shape {gram.shape}"
        )
    mean = float(gram.trace()) / count
    return gram / mean if mean > 0 else gram


def _folds(
    labels: NDArray[np.int64], folds: int, repetitions: int, seed: int
) -> Iterator[list[NDArray[np.int64]]]:
    """Yield the graph numbers of each fold, for each repetition."""
    if folds < 3:
        raise Refusal(f"folds must be at least 3: test, choose, learn; got {folds}")
    smallest = int(np.unique(labels, return_counts=True)[1].min())
    if smallest < folds:
        raise Refusal(f"the smallest class has {smallest} graphs; choose no more folds, of {folds}")
    splitter = RepeatedStratifiedKFold(n_splits=folds, n_repeats=repetitions, random_state=seed)
    tests = [tested for _, tested in splitter.split(labels, labels)]
    for start in range(0, len(tests), folds):
        yield tests[start : start + folds]


def _without(parts: Sequence[NDArray[np.int64]], *left_out: int) -> NDArray[np.int64]:
    return np.concatenate([part for i, part in enumerate(parts) if i not in left_out])


def _machines_predictions(
    grams: Sequence[NDArray[np.float64]],
    labels: NDArray[np.int64],
    parts: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Predict each fold by the machine chosen without it; return labels, and numbers of folds."""
    accuracies = np.zeros((len(parts), len(grams) * len(_COSTS)))
    for fold in range(len(parts)):
        pair = [fold, (fold + 1) % len(parts)]
        # Each of the two folds is the validation fold of the other one.
        others = [parts[i] for i in reversed(pair)]
        accuracies[pair] += _trials(grams, labels, _without(parts, *pair), others)
    predicted, fold_of = np.empty_like(labels), np.empty(len(labels), dtype=np.int64)
    for fold, choice in enumerate(accuracies.argmax(axis=1)):
        gram, machine = _fitted(grams, labels, _without(parts, fold), int(choice))
        predicted[parts[fold]] = machine.predict(gram[parts[fold]])
        fold_of[parts[fold]] = fold
    return predicted, fold_of


def _trials(
    grams: Sequence[NDArray[np.float64]],
    labels: NDArray[np.int64],
    train: NDArray[np.int64],
    tests: Sequence[NDArray[np.int64]],
) -> NDArray[np.float64]:
    """Return accuracies on each test of the machines of all choices, shape ``(T, K * C)``."""
    tested = np.concatenate(tests)
    ends = np.cumsum([len(test) for test in tests])[:-1]
    accuracies = []
    for gram in grams:
        own, across = gram[np.ix_(train, train)], gram[np.ix_(tested, train)]
        for cost in _COSTS:
            machine = _machine(cost).fit(own, labels[train])
            # One prediction for all tests: for small sets the checks of scikit-learn take longest.
            right = machine.predict(across) == labels[tested]
            accuracies.append([part.mean() for part in np.split(right, ends)])
    return np.array(accuracies).T


def _fitted(
    grams: Sequence[NDArray[np.float64]],
    labels: NDArray[np.int64],
    train: NDArray[np.int64],
    choice: int,
) -> tuple[NDArray[np.float64], SVC]:
    """Return the kernel with the training graphs and the fitted machine of a choice."""
    gram = grams[choice // len(_COSTS)][:, train]
    return gram, _machine(_COSTS[choice % len(_COSTS)]).fit(gram[train], labels[train])


def _machine(cost: float) -> SVC:
    return SVC(C=cost, kernel="precomputed", max_iter=_MAX_STEPS)


def _summary(accuracies: Iterator[float]) -> Accuracy:
    values = np.array(list(accuracies))
    sd = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Accuracy(float(values.mean()), sd, values)


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
    predictions = cross_validated_predictions(grams, labels, repetitions=1, seed=seed)
    mean = predictions.accuracy(labels).mean
    answers = {"accuracy": Answer(majority, mean, mean, "real: share of the most frequent label")}
    if classify:
        network = gin_cross_validated(graphs, labels, seed=seed).mean
        answers["gin_accuracy_real"] = Answer(network, math.nan, network, "from the real graphs")
    return answers


# Number of nodes whose paths are measured at a time: 24 MB in a graph of 6,000 nodes.
_SOURCES = 512


def shortest_path_kernel(graphs: Sequence[Data], *, labelled: bool = False) -> NDArray[np.float64]:
    """Compute the kernel of shortest path lengths over all pairs of connected nodes.

    Args:
        graphs: G graphs; one without an edge is similar to none, also not to itself.
        labelled: Whether paths must also agree in the labels of their ends, from start to end.

    Returns:
        Kernel of shape ``(G, G)``.

    Raises:
        Refusal: If there are too many graphs, or ``labelled`` is set and they have no labels.

    References:
        Borgwardt, Kriegel, "Shortest-path kernels on graphs", 2005, section 4.
    """
    check_number_of_graphs(len(graphs))
    sizes = [graph.num_nodes for graph in graphs]
    colors = node_labels(graphs) if labelled else np.zeros(sum(sizes), dtype=np.int64)
    count = int(colors.max(initial=0)) + 1
    rows = [
        _path_histogram(graph, part, count)
        for graph, part in zip(graphs, np.split(colors, np.cumsum(sizes)[:-1]), strict=True)
    ]
    width = max(1, *(row.shape[1] for row in rows))
    for row in rows:
        row.resize(1, width)
    return _cosines(vstack(rows, format="csr"))


def weisfeiler_lehman_kernel(
    graphs: Sequence[Data], iterations: int = 4, *, labelled: bool = False
) -> NDArray[np.float64]:
    """Compute the kernel of node colors, refined repeatedly by the colors of neighbors.

    Args:
        graphs: G graphs of one node or more each.
        iterations: Number of refinements h; the histograms of all h + 1 colorings count.
        labelled: Whether nodes start with their labels as colors, instead of their degrees.

    Returns:
        Kernel of shape ``(G, G)``.

    Raises:
        Refusal: If there are too many graphs, or ``labelled`` is set and they have no labels.

    References:
        Shervashidze et al., "Weisfeiler-Lehman Graph Kernels", 2011, definition 4.
    """
    check_number_of_graphs(len(graphs))
    sizes = np.array([graph.num_nodes for graph in graphs])
    starts = np.cumsum(sizes) - sizes
    ends = [graph.edge_index + start for graph, start in zip(graphs, starts.tolist(), strict=True)]
    union = adjacency(Data(edge_index=torch.cat(ends, dim=1), num_nodes=int(sizes.sum())))
    colors = node_labels(graphs) if labelled else np.diff(union.indptr).astype(np.int64)
    graph_of = np.repeat(np.arange(len(graphs)), sizes)
    histograms = [_color_histogram(colors, graph_of, len(graphs))]
    for _ in range(iterations):
        colors = _refined(colors, union)
        histograms.append(_color_histogram(colors, graph_of, len(graphs)))
    return _cosines(hstack(histograms, format="csr"))


def node_labels(graphs: Sequence[Data]) -> NDArray[np.int64]:
    """Return the label of each node, of the first graph first, shape ``(N,)``: numbers from 0.

    The labels are the columns of ``x`` that hold zeros and ones only; nodes with equal columns have
    the same label. Other columns are attributes, which these kernels ignore.

    Raises:
        Refusal: If a graph has no ``x``, or none of its columns is a label.
    """
    if any(graph.x is None for graph in graphs):
        raise Refusal("the graphs have no node features x; set labelled=False")
    x = torch.cat([graph.x for graph in graphs]).numpy()
    x = x[:, ((x == 0) | (x == 1)).all(axis=0)]
    if not x.shape[1]:
        raise Refusal("no column of the node features x is a label; set labelled=False")
    # Rows of single bits are sorted ten times faster than rows of numbers.
    return np.unique(np.packbits(x == 1, axis=1), axis=0, return_inverse=True)[1].ravel()


def _path_histogram(graph: Data, labels: NDArray[np.int64], num_labels: int) -> csr_array:
    """Count ordered node pairs by distance and labels of both ends, in one row."""
    matrix = adjacency(graph)
    counts = np.zeros(0, dtype=np.int64)
    for sources in np.array_split(np.arange(graph.num_nodes), -(-graph.num_nodes // _SOURCES)):
        lengths = dijkstra(matrix, unweighted=True, indices=sources)
        first, second = np.nonzero(np.isfinite(lengths) & (lengths > 0))
        ends = labels[sources[first]] * num_labels + labels[second]
        # Lengths come before labels: longer paths only add columns at the end.
        cells = lengths[first, second].astype(np.int64) * num_labels**2 + ends
        more = np.bincount(cells)
        longer, shorter = (more, counts) if len(more) > len(counts) else (counts, more)
        longer[: len(shorter)] += shorter
        counts = longer
    return csr_array(counts[None].astype(np.float64))


def _refined(colors: NDArray[np.int64], union: csr_array) -> NDArray[np.int64]:
    """Give equal colors to nodes of equal color whose neighbors have equal multisets of colors.

    A multiset of colors is identified by the sum of random 64-bit numbers, one per color. Among a
    million nodes two multisets have the same sum with a probability below one in ten million, while
    hashing them one by one, as ``torch_geometric.nn.WLConv`` does, takes a hundred times as long.
    """
    numbers = np.random.default_rng(0).integers(2**64, size=(2, colors.max() + 1), dtype=np.uint64)
    neighbors = csr_array((np.ones(union.nnz, np.uint64), union.indices, union.indptr), union.shape)
    sums = neighbors @ numbers[0][colors] + numbers[1][colors]
    return np.unique(sums, return_inverse=True)[1]


def _color_histogram(
    colors: NDArray[np.int64], graph_of: NDArray[np.int64], num_graphs: int
) -> csr_array:
    shape = (num_graphs, int(colors.max()) + 1)
    return csr_array((np.ones(len(colors)), (graph_of, colors)), shape=shape)


def _cosines(histograms: csr_array) -> NDArray[np.float64]:
    """Return cosines of the angles between rows; an empty row has cosine 0 with all."""
    rows = normalize(histograms)
    return (rows @ rows.T).toarray()


def neighbor_accuracy(
    distances: NDArray[np.float64], labels: ArrayLike, neighbors: int = 5
) -> float:
    """Return the leave-one-out accuracy of a majority vote among nearest neighbors.

    Among equally frequent labels the smallest wins.

    Args:
        distances: Distances of all pairs of G graphs, shape ``(G, G)``.
        labels: Label of each graph, shape ``(G,)``.
        neighbors: Number of neighbors, less than G.

    Raises:
        Refusal: If there are not as many neighbors.
    """
    values, classes = np.unique(np.asarray(labels), return_inverse=True)
    if not 1 <= neighbors < len(classes):
        raise Refusal(f"neighbors must be between 1 and {len(classes) - 1}, got {neighbors}")
    others = distances + np.diag(np.full(len(classes), np.inf))
    nearest = classes[np.argsort(others, axis=1, kind="stable")[:, :neighbors]]
    votes = (nearest[:, :, None] == np.arange(len(values))).sum(axis=1)
    return float(np.mean(votes.argmax(axis=1) == classes))
