"""Quality of synthetic graphs whose nodes have rows of categories.

Figures compare edges of shape ``(M, 2)``, each undirected edge once, and the category of each node in
each of J columns, shape ``(N, J)``. Nodes of the two graphs need not be the same.
"""

import math
import warnings
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.stats.contingency import association
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score

_STEPS = 1000


def mixing_shares(
    edges: NDArray[np.int64], categories: NDArray[np.int64], size: int
) -> NDArray[np.float64]:
    """Return the share of ends of edges between each pair of categories, which sum to 1.

    Args:
        edges: Edges of shape ``(M, 2)``.
        categories: Category of each node, integers from 0 below K, shape ``(N,)``.
        size: Number of categories K.

    Returns:
        Symmetric matrix of shape ``(K, K)``; nan without an edge.
    """
    first, second = categories[edges].T
    cells = np.concatenate([first * size + second, second * size + first])
    counts = np.bincount(cells, minlength=size**2).reshape(size, size)
    return np.divide(counts, len(cells), out=np.full((size, size), math.nan), where=len(cells) > 0)


def categorical_assortativity(edges: NDArray[np.int64], categories: NDArray[np.int64]) -> float:
    r"""Return Newman's coefficient :math:`(\sum_a e_{aa} - \sum_a e_a^2) / (1 - \sum_a e_a^2)`.

    Here :math:`e_{ab}` are the :func:`mixing_shares` and :math:`e_a` their sums. It is 1 where all
    edges are within categories and 0 where chance links nodes; nan where one category has all edges.

    * Newman, "Mixing patterns in networks", 2003.
    """
    shares = mixing_shares(edges, categories, int(categories.max(initial=0)) + 1)
    return float(assortativity_of_shares(shares))


def assortativity_of_shares(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the coefficient of :func:`categorical_assortativity` for matrices ``(..., K, K)``."""
    chance = (shares.sum(axis=-1) ** 2).sum(axis=-1)
    coefficients = np.full(np.shape(chance), math.nan)
    within = np.trace(shares, axis1=-2, axis2=-1)
    return np.divide(within - chance, 1 - chance, out=coefficients, where=chance < 1)


def pair_association(rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return Cramer's V of each pair of columns, from 0 to 1: shape ``(J, J)``.

    It is nan where a column has one category only.
    """
    count = rows.shape[1]
    associations = np.full((count, count), math.nan)
    for one, other in combinations(range(count), 2):
        places = [np.unique(rows[:, column], return_inverse=True)[1] for column in (one, other)]
        table = np.zeros([place.max(initial=-1) + 1 for place in places], dtype=np.int64)
        np.add.at(table, tuple(places), 1)
        if min(table.shape) > 1:
            associations[one, other] = associations[other, one] = association(
                table, method="cramer"
            )
    return associations


def total_variation(
    first: NDArray[np.int64], second: NDArray[np.int64], sizes: Sequence[int], columns: int
) -> float:
    """Return the total variation distance of the tables by some columns, mean over all choices.

    Args:
        first: Rows of shape ``(N, J)``.
        second: Rows of shape ``(N', J)``.
        sizes: Number of categories of each column.
        columns: Number of columns of a table; 1 compares each column by itself.
    """
    distances = []
    for chosen in combinations(range(len(sizes)), columns):
        shape = [sizes[column] for column in chosen]
        one, other = (
            np.bincount(
                np.ravel_multi_index(tuple(rows[:, chosen].T), shape), minlength=math.prod(shape)
            )
            / (len(rows) or math.nan)  # of no edges
            for rows in (first, second)
        )
        distances.append(np.abs(one - other).sum() / 2)
    return float(np.mean(distances)) if distances else math.nan


def degree_by_category(
    edges: NDArray[np.int64], categories: NDArray[np.int64], size: int
) -> NDArray[np.float64]:
    """Return the mean degree of the nodes of each category, nan for one without nodes: ``(K,)``.

    Nodes of the category -1 have none.
    """
    degrees = np.bincount(edges.ravel(), minlength=len(categories))[categories >= 0]
    categories = categories[categories >= 0]
    nodes = np.bincount(categories, minlength=size)
    sums = np.bincount(categories, degrees, minlength=size)
    return np.divide(sums, nodes, out=np.full(size, math.nan), where=nodes > 0)


def prediction_score(
    train: tuple[NDArray[np.int64], NDArray[np.int64]],
    test: tuple[NDArray[np.int64], NDArray[np.int64]],
    sizes: Sequence[int],
    column: int,
) -> float:
    """Predict a column on one graph by a logistic regression that learned from another.

    The regression sees the share of each category among the neighbors of a node, the other columns
    of the node, and the logarithm of its degree plus 1.

    Args:
        train: Edges ``(M, 2)`` and rows ``(N, J)`` to learn from.
        test: Edges and rows to predict.
        sizes: Number of categories of each column.
        column: The column that is predicted.

    Returns:
        The area under the ROC curve where the tested column has two categories, else the macro F1
        score of its categories; chance where there is one category to learn from.
    """
    known, wanted = train[1][:, column], test[1][:, column]
    present = np.unique(wanted)
    seen = np.isin(known, present)
    features = _features(*train, sizes, column)[seen]
    if len(np.unique(known[seen])) < 2:
        return 0.5 if len(present) == 2 else float(f1_score(wanted, 0 * wanted, average="macro"))
    model = LogisticRegression(max_iter=_STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features, known[seen])
    tested = _features(*test, sizes, column)
    if len(present) == 2:
        return float(roc_auc_score(wanted, model.decision_function(tested)))
    return float(f1_score(wanted, model.predict(tested), labels=present, average="macro"))


def _features(
    edges: NDArray[np.int64], rows: NDArray[np.int64], sizes: Sequence[int], column: int
) -> NDArray[np.float64]:
    num_nodes = len(rows)
    linked = coo_array((np.ones(len(edges)), edges.T), shape=(num_nodes, num_nodes)).tocsr()
    degrees = np.bincount(edges.ravel(), minlength=num_nodes)
    values = np.eye(sizes[column])[rows[:, column]]
    around = (linked @ values + linked.T @ values) / np.maximum(degrees, 1)[:, None]
    others = [np.eye(size)[rows[:, place]] for place, size in enumerate(sizes) if place != column]
    return np.concatenate([around, *others, np.log1p(degrees)[:, None]], axis=1)


QUANTILE = 0.95
"""Share of the releases without an association that show less than the noise."""
_DRAWS = 1000
_SEED = 0


def assortativity_noise(shares: NDArray[np.float64], total: float, scale: float) -> float:
    """Return the size of the assortativity that noise alone shows in released mixing.

    Args:
        shares: Share of the ends of edges of each of K categories, shape ``(K,)``.
        total: Released weight of all edges.
        scale: Scale of the Laplace noise of each pair of categories; 0 without noise.

    Returns:
        The 0.95 quantile of the absolute value; nan for one category.
    """
    size = len(shares)
    noise = _noise(scale, (size, size))
    lower = np.tril(noise)
    ends = 2 * total * np.outer(shares, shares) + lower + lower.swapaxes(1, 2)
    return _quantile(assortativity_of_shares(_as_shares(ends)))


def association_noise(
    first: NDArray[np.float64], second: NDArray[np.float64], scale: float
) -> float:
    """Return Cramer's V that noise alone shows in a released table of two columns.

    Args:
        first: Number of nodes of each category of one column, shape ``(K,)``.
        second: Number of nodes of each category of the other column, shape ``(K',)``.
        scale: Scale of the Laplace noise of each cell; 0 without noise.

    Returns:
        The 0.95 quantile; nan if a column has one category.
    """
    least = min(len(first), len(second)) - 1
    if least < 1:
        return math.nan
    table = np.outer(first, second) / first.sum() + _noise(scale, (len(first), len(second)))
    shares = _as_shares(table)
    chance = shares.sum(axis=2, keepdims=True) * shares.sum(axis=1, keepdims=True)
    ratios = np.divide(shares**2, chance, out=np.zeros_like(shares), where=chance > 0)
    return _quantile(np.sqrt(np.maximum(ratios.sum(axis=(1, 2)) - 1, 0) / least))


def _noise(scale: float, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Draw noise of shape ``(R, K, K')``."""
    return np.random.default_rng(_SEED).laplace(scale=scale, size=(_DRAWS, *shape))


def _as_shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale noisy counts to a sum of 1; negative ones are 0, as in a fit."""
    counts = np.maximum(counts, 0)
    sums = counts.sum(axis=(1, 2), keepdims=True)
    return np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)


def _quantile(values: NDArray[np.float64]) -> float:
    known = np.abs(values[np.isfinite(values)])
    return float(np.quantile(known, QUANTILE)) if len(known) else math.nan
