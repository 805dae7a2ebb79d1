"""Exact counts of the edges of one graph, and sums over them, for edges in memory or in blocks."""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array
from torch import Tensor
from typing_extensions import Protocol, runtime_checkable

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.pair_numbers import pairs_of_keys
from lightning_dpg.graph.pair_space import PairSpace
from lightning_dpg.graph.stubs import count_links
from lightning_dpg.graph.wedges import BLOCK, count_wedges, wedges_over_blocks

# Edges whose rows are in memory at a time.
_CHUNK = 65_536
Pairs = Sequence[tuple[int, int]] | None
"""Column of the first and of the second end, for each matrix of mixing whose ends have an order; None of
an undirected graph, which has a matrix for each column."""
MIXING_UNIT = 1024
"""Units of a weight of 1."""
MOST_MIXING_NODES = 2**24
"""Number of nodes from which on fractions of units could overflow."""
MOST_MIXING_CELLS = 2**15
"""Number of cells from which on the shortfall of all fractions could exceed one unit."""
_FRACTION_BITS = 39
_BLOCK = 2**20
_COLUMNS = 16
"""Columns that are added up at a time: the sums of a block take memory in addition to the sums of all."""
_BITS = 52
"""Binary digits of a number of double precision behind its first one."""


def edge_moment(edges: Tensor, rows: Tensor, *, two_sided: bool = False) -> Tensor:
    """Compute S in double precision.

    Args:
        edges: Records of shape ``(M, 2)`` (private).
        rows: Rows y of all nodes (public), shape ``(N, r)``.
        two_sided: Whether the ends of an edge differ.

    Returns:
        Matrix of shape ``(r, r)``, symmetric unless ``two_sided``.
    """
    total = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.double)
    for part in torch.split(edges, _CHUNK):
        first, second = rows.double()[part].unbind(1)
        total += first.T @ second
    return total if two_sided else (total + total.T) / 2


def as_vector(matrix: Tensor) -> Tensor:
    r"""Write a symmetric matrix ``(r, r)`` as a vector of the same length, ``(r (r + 1) / 2,)``.

    Entries beside the diagonal occur twice in the matrix, so they are multiplied by
    :math:`\sqrt 2`. Noise of standard deviation s on the vector is noise of s on the diagonal of
    the matrix, and of :math:`s / \sqrt 2` beside it.
    """
    return (matrix * _weights(len(matrix)))[*_upper(len(matrix))]


def as_matrix(vector: Tensor) -> Tensor:
    """Undo :func:`as_vector`."""
    rank = math.isqrt(2 * len(vector))
    upper = torch.zeros(rank, rank, dtype=vector.dtype)
    upper[*_upper(rank)] = vector
    return (upper + upper.triu(1).T) / _weights(rank)


def bilinear_form(
    moment: Tensor, rows: Tensor, ridge: float, others: Tensor | None = None
) -> Tensor:
    r"""Weights :math:`(Y^T Y + \lambda I)^{-1} S (Z^T Z + \lambda I)^{-1}` of the scores of pairs.

    They solve the ridge regression of the adjacency matrix on products of attributes.

    Args:
        moment: Released S, shape ``(r, r)``.
        rows: Public rows Y of the nodes that can be first ends, shape ``(N, r)``.
        ridge: The ridge lambda.
        others: Public rows Z of those that can be second ends; by default Y.
    """
    gram = _ridge_gram(rows, ridge)
    other = gram if others is None else _ridge_gram(others, ridge)
    half = torch.linalg.solve(gram, moment)
    # Row by row as in a release: both then score by the same order of sums.
    return torch.linalg.solve(other, half.T).T.contiguous()


def moment_of_form(form: Tensor, rows: Tensor, ridge: float) -> Tensor:
    """Undo :func:`bilinear_form`: the moment S of shape ``(r, r)`` behind released weights."""
    gram = _ridge_gram(rows, ridge)
    return gram @ form @ gram


def _ridge_gram(rows: Tensor, ridge: float) -> Tensor:
    gram = rows.double().T @ rows.double()
    gram.diagonal().add_(ridge)
    return gram


def _upper(rank: int) -> Tensor:
    return torch.triu_indices(rank, rank)


def _weights(rank: int) -> Tensor:
    weights = torch.full((rank, rank), math.sqrt(2), dtype=torch.double)
    weights.fill_diagonal_(1.0)
    return weights


def degree_cells(largest_two: int, largest: int) -> NDArray[np.int64]:
    """List all pairs of degrees a <= b that the ends of an edge may have.

    Args:
        largest_two: Largest sum of both degrees.
        largest: Largest degree.

    Returns:
        Rows a, b of shape ``(C, 2)`` in ascending order.
    """
    starts, sizes = _rows(largest_two, largest)
    first = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    return np.stack([first, np.arange(len(first)) - np.repeat(starts, sizes) + first], axis=1)


def num_degree_cells(largest_two: int, largest: int) -> int:
    """Count the rows of :func:`degree_cells`."""
    return int(_rows(largest_two, largest)[1].sum())


def joint_degrees(
    edges: NDArray[np.int64], degrees: NDArray[np.int64], largest_two: int
) -> NDArray[np.int64]:
    """Count edges by the degrees of their ends.

    Args:
        edges: Edges of shape ``(M, 2)``.
        degrees: Degrees of all N nodes, shape ``(N,)``.
        largest_two: Largest sum of both degrees; other edges are left out.

    Returns:
        Edges of each row of :func:`degree_cells`, shape ``(C,)``.
    """
    pairs = np.sort(degrees[edges], axis=1)
    pairs = pairs[pairs.sum(axis=1) <= largest_two]
    return cells_of_counts(pairs, np.ones(len(pairs), dtype=np.int64), largest_two, len(degrees))


def cells_of_counts(
    pairs: NDArray[np.int64], counts: NDArray[np.int64], largest_two: int, num_nodes: int
) -> NDArray[np.int64]:
    """Add counts of pairs of degrees to their cells.

    Args:
        pairs: Degrees a <= b of shape ``(P, 2)``, whose sum is at most ``largest_two``.
        counts: Count of each pair, shape ``(P,)``.
        largest_two: Largest sum of both degrees.
        num_nodes: Number of nodes N.

    Returns:
        Sum of each row of :func:`degree_cells`, shape ``(C,)``.
    """
    starts, sizes = _rows(largest_two, num_nodes - 1)
    first, second = pairs.T
    sums = np.zeros(int(sizes.sum()), dtype=np.int64)
    np.add.at(sums, starts[first - 1] + second - first, counts)
    return sums


def _rows(largest_two: int, largest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first cell and number of cells of each smaller degree a = 1, 2, ..."""
    first = np.arange(1, min(largest_two // 2, largest) + 1)
    sizes = np.minimum(largest_two - first, largest) - first + 1
    return np.cumsum(sizes) - sizes, sizes


def fitted_links(
    noisy: NDArray[np.int64],
    cells: NDArray[np.int64],
    noise_scales: NDArray[np.float64],
    degrees: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Estimate links between degree classes from noisy joint degrees where these stand out.

    The nodes of one of the given degrees are a class, and counts at other degrees belong to the
    nearest class. Chance would link classes in proportion to their sums of degrees. Of the
    difference R between counts and chance the part :math:`(1 - (t / R)^2)_+` is kept, after James
    and Stein, where noise alone exceeds t in about one of all cells; first in sums over many
    degrees, then one by one. So large noise leaves chance, and no noise the counts.

    Args:
        noisy: Noisy counts of shape ``(C,)``.
        cells: Degrees of both ends, shape ``(C, 2)``.
        noise_scales: Scale of the Laplace noise of each count, shape ``(C,)``.
        degrees: Degrees of the nodes, shape ``(N,)``.

    Returns:
        Links between class k and a class l <= k in row k and column l, shape ``(K, K)``, where
        classes ascend with degrees. They fit the classes' sums of degrees roughly.
    """
    values, sizes = np.unique(degrees, return_counts=True)
    count = len(values)
    nearest = np.searchsorted((values[1:] + values[:-1]) / 2, cells)
    places = nearest[:, 1] * count + nearest[:, 0]
    counts, variance = (
        np.bincount(places, weights, minlength=count**2).reshape(count, count)
        for weights in (noisy, 2 * noise_scales**2)
    )
    totals = (values * sizes).astype(np.float64)
    chance = np.tril(np.outer(totals, totals) / max(totals.sum(), 1.0))
    chance[np.diag_indices(count)] /= 2
    possible = np.tril(np.outer(sizes, sizes)).astype(np.float64)
    possible[np.diag_indices(count)] = sizes * (sizes - 1) / 2
    links = chance
    # First by degrees from one power of two to the next, then one by one.
    for classes in (np.frexp(values)[1].astype(np.int64), np.arange(count)):
        _, starts, group = np.unique(classes, return_index=True, return_inverse=True)
        expected, observed, noise = (
            np.add.reduceat(np.add.reduceat(part, starts, axis=0), starts, axis=1)
            for part in (links, counts, variance)
        )
        excess = _standing_out(observed - expected, noise)
        ratio = 1 + excess / np.where(expected > 0, expected, np.inf)
        links = links * np.maximum(ratio, 0)[np.ix_(group, group)]
    return np.minimum(links, possible)


def _standing_out(
    values: NDArray[np.float64], variance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Shrink values toward 0 by how likely they are under noise of the given variance."""
    # A single Laplace variate exceeds its scale times the logarithm of C once in C times.
    threshold = np.sqrt(variance / 2) * math.log(max(int(np.count_nonzero(variance)), 2))
    size = np.maximum(np.abs(values), 1e-9)
    return values * np.maximum(1 - (threshold / size) ** 2, 0)


def check_mixing(num_nodes: int, sizes: Sequence[int], pairs: Pairs = None) -> None:
    """Refuse a graph, or columns, for which sums are not known to be exact enough.

    Args:
        num_nodes: Number of nodes (public).
        sizes: Number of values of each column (public).
        pairs: Columns of each matrix whose ends have an order, see :data:`Pairs`.

    Raises:
        Refusal: If there are too many nodes or cells.
    """
    # A node of a directed graph has up to two records with each other one.
    most = MOST_MIXING_NODES if pairs is None else MOST_MIXING_NODES // 2
    if num_nodes >= most:
        raise Refusal(f"{num_nodes:,} nodes: mixing of private columns is for fewer than {most:,}")
    if (cells := sum(num_mixing_cells(sizes, pairs))) >= MOST_MIXING_CELLS:
        raise Refusal(
            f"{cells:,} pairs of values of private columns\ngive fewer columns, or fewer "
            f"values, so that there are fewer than {MOST_MIXING_CELLS:,}"
        )


def num_mixing_cells(sizes: Sequence[int], pairs: Pairs = None) -> list[int]:
    """Return the number of cells {a, b} of each column, or of cells (a, b) of each of ``pairs``."""
    if pairs is None:
        return [size * (size + 1) // 2 for size in sizes]
    return [sizes[first] * sizes[second] for first, second in pairs]


def exact_mixing(
    edges: NDArray[np.int64],
    degrees: NDArray[np.int64],
    rows: NDArray[np.int64],
    sizes: Sequence[int],
    max_weight: int,
    pairs: Pairs = None,
) -> NDArray[np.int64]:
    r"""Sum the weights of edges by the values of their ends, in units of 1 / 1024 rounded down.

    An edge weighs :math:`\min(1, D / \max(d_u, d_v))`. Edges of a cell are counted by the larger degree
    k of their ends. Then :math:`n_k` of them have :math:`1024 n_k \min(D, k) / k` units, a whole number
    and a fraction. The whole numbers are exact, and each fraction is rounded down to a multiple of
    :math:`2^{-39}`. There are fewer than :math:`2^{24}` degrees k, so that the sum of a cell falls short
    by less than :math:`2^{-15}` before its only rounding, as
    :mod:`lightning_dpg.privacy.sensitivity.private_columns` requires.

    Args:
        edges: Edges, each once, shape ``(M, 2)`` (private).
        degrees: True number of edges at each node, in any direction, shape ``(N,)`` (private).
        rows: Value of each node in each column, shape ``(N, J)``, from 0 to ``sizes[j] - 1`` (private).
        sizes: Number of values of each column (public).
        max_weight: Largest weight D of all edges of a node together, a whole number (public).
        pairs: Columns of each matrix whose ends have an order, see :data:`Pairs`.

    Returns:
        Cells {a, b} with a >= b of the first column, in the order (0, 0), (1, 0), (1, 1), (2, 0) and so
        on; then the same for the next columns. With ``pairs`` all cells (a, b) of each, row by row
        (private).

    Raises:
        Refusal: If :func:`check_mixing` refuses the sizes.
    """
    check_mixing(len(degrees), sizes, pairs)
    larger, place = np.unique(degrees[edges].max(axis=1), return_inverse=True)
    sums = []
    columns = [(j, j) for j in range(len(sizes))] if pairs is None else pairs
    for (one, other), size in zip(columns, num_mixing_cells(sizes, pairs), strict=True):
        first, second = rows[edges[:, 0], one], rows[edges[:, 1], other]
        places = mixing_cells(first, second, None if pairs is None else sizes[other])
        keys, counts = np.unique(places * len(larger) + place, return_counts=True)
        cells, degree = keys // len(larger), larger[keys % len(larger)]
        sums.append(mixing_of_counts(cells, degree, counts, size, max_weight))
    return np.concatenate(sums)


def mixing_cells(
    first: NDArray[np.int64], second: NDArray[np.int64], width: int | None
) -> NDArray[np.int64]:
    """Return the place of the cell of values of both ends: {a, b}, or (a, b) in rows of a width."""
    if width is not None:
        return first * width + second
    low, high = np.minimum(first, second), np.maximum(first, second)
    return np.asarray(high * (high + 1) // 2 + low)


def mixing_of_counts(
    cells: NDArray[np.int64],
    larger: NDArray[np.int64],
    counts: NDArray[np.int64],
    size: int,
    max_weight: int,
) -> NDArray[np.int64]:
    """Sum the weights of counted edges of one matrix, see :func:`exact_mixing`.

    Args:
        cells: Cells as :func:`mixing_cells` numbers them, each with each degree once, shape ``(C,)``
            (private).
        larger: Larger degree of the ends, shape ``(C,)`` (private).
        counts: Edges of the cell with this larger degree, shape ``(C,)`` (private).
        size: Number of cells of the matrix (public).
        max_weight: Largest weight of all edges of a node together (public).
    """
    whole, rest = np.divmod(MIXING_UNIT * counts * np.minimum(max_weight, larger), larger)
    total, fraction = np.zeros((2, size), dtype=np.int64)
    np.add.at(total, cells, whole)
    np.add.at(fraction, cells, (rest << _FRACTION_BITS) // larger)
    return total + (fraction >> _FRACTION_BITS)


def mixing_matrices(
    cells: NDArray[np.float64], sizes: Sequence[int], pairs: Pairs = None
) -> list[NDArray[np.float64]]:
    """Arrange cells of :func:`exact_mixing` as matrices.

    Args:
        cells: Cells of all matrices, shape ``(C,)``.
        sizes: Number of values of each column (public).
        pairs: Columns of each matrix whose ends have an order, see :data:`Pairs`.

    Returns:
        A matrix of shape ``(K, K)`` per column, 0 above the diagonal; or one of shape ``(K, L)`` per pair.
    """
    parts = np.split(cells, np.cumsum(num_mixing_cells(sizes, pairs), dtype=np.int64)[:-1])
    if pairs is not None:
        shapes = [(sizes[first], sizes[second]) for first, second in pairs]
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=False)]
    matrices = []
    for size, part in zip(sizes, parts, strict=True):
        matrices.append(np.zeros((size, size)))
        matrices[-1][np.tril_indices(size)] = part
    return matrices


def neighbor_sums(edges: Tensor, rows: Tensor) -> Tensor:
    """Sum the rows of each node's neighbors, A U, see :func:`on_grid`.

    Args:
        edges: Undirected edges of shape ``(M, 2)``, each once.
        rows: Rows U of all nodes, shape ``(N, k)``.

    Returns:
        Sums of shape ``(N, k)``.
    """
    return sums_over_blocks(torch.split(edges, block_size(len(rows))), rows)


def block_size(num_nodes: int) -> int:
    """Number of edges from which on a block costs more time than the sums that it is added to."""
    return max(_BLOCK, num_nodes)


def sums_over_blocks(blocks: Iterable[Tensor], rows: Tensor) -> Tensor:
    """As :func:`neighbor_sums`, of edges in blocks; one block is in memory at a time.

    Args:
        blocks: Undirected edges of shape ``(P, 2)`` of whole numbers, each edge in one block.
        rows: Rows U of all nodes, shape ``(N, k)``.
    """
    values, step = on_grid(rows)
    sums = np.zeros_like(values)
    for block in blocks:
        both = torch.cat([block, block.flip(1)]).cpu().numpy().T
        links = coo_array((np.ones(both.shape[1]), both), shape=(len(values), len(values)))
        for start in range(0, values.shape[1], _COLUMNS):
            few = slice(start, start + _COLUMNS)
            sums[:, few] += links @ values[:, few]
    sums *= step
    return torch.from_numpy(sums).to(rows)


def on_grid(rows: Tensor) -> tuple[NDArray[np.float64], float]:
    r"""Round rows toward 0 to whole numbers of steps, whose sums have no rounding errors.

    The step is :math:`2^{e + n - 52}` for N nodes with :math:`N < 2^n` and rows with entries below
    :math:`2^e`, where e is 1 for rows that are at most 1 long. A sum over fewer than N neighbors is
    then a whole number below :math:`2^{52}`, and so are all partial sums: double precision and
    whole numbers of 64 bits hold each of them. The sums are the same bit for bit in memory, in
    blocks of edges, and in each engine, whatever the order of the edges. An edge changes them by the
    rounded rows of its ends, which are no longer than the rows, and by nothing else: the
    sensitivities need nothing for the arithmetic of an engine. The step follows from public facts, as
    the rows do.

    Args:
        rows: Rows of all nodes (public, or functions of earlier releases), shape ``(N, k)``.

    Returns:
        Rows in steps, which are whole numbers in double precision, shape ``(N, k)``; and the step.
    """
    values: NDArray[np.float64] = rows.detach().cpu().double().numpy()
    _, exponent = math.frexp(np.abs(values).max(initial=1.0))
    step = math.ldexp(1.0, exponent + len(values).bit_length() - _BITS)
    steps: NDArray[np.float64] = values / step
    return np.trunc(steps, out=steps), step


class CountsWedges(Protocol):
    """Chosen wedges of one graph."""

    def wedges(
        self,
        slots: NDArray[np.int64],
        classes: NDArray[np.int64],
        closures_per_edge: int,
        seed: int,
    ) -> NDArray[np.int64]:
        """Wedges and closed wedges by class, shape ``(2, K)``; each edge is in few of them.

        Args:
            slots: Number of slots of each node (public), shape ``(N,)``.
            classes: Class of each node (public), shape ``(N,)``.
            closures_per_edge: Number of wedges that a link may close (public).
            seed: Seed of the choice of wedges (public).
        """


class GraphStatisticsSource(CountsWedges, Protocol):
    """Exact counts of the edges of one graph, and sums over them (private), wherever the edges are.

    Each count and sum has its own sensitivity; a source adds no noise and books nothing. It rounds
    nothing but public rows, see :func:`lightning_dpg.graph.edge_statistics.on_grid`.
    """

    @property
    def edges(self) -> Tensor:
        """All edges, shape ``(M, 2)`` in ascending order; a table is read into memory."""

    def num_edges(self) -> int:
        """Number of edges M."""

    def degrees(self) -> Tensor:
        """Number of edges at each entry of the degree vector of the pairs."""

    def mixing(self, classes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Edges by the classes of their ends, shape ``(K, K)``, given public classes ``(N,)``."""

    def column_mixing(
        self, rows: NDArray[np.int64], sizes: Sequence[int], max_weight: int, pairs: Pairs = None
    ) -> NDArray[np.int64]:
        """Weights of edges by the values of their ends, see :func:`exact_mixing`.

        Args:
            rows: Value of each node in each private column, shape ``(N, J)`` (private).
            sizes: Number of values of each column (public).
            max_weight: Largest weight of all edges of a node together (public).
            pairs: Columns of each matrix of a directed or bipartite graph, see :data:`Pairs`.
        """

    def joint_degrees(self, largest_two: int) -> NDArray[np.int64]:
        """Edges by the degrees of their ends, whose sum is at most ``largest_two`` (public)."""

    def neighbor_sums(self, rows: Tensor) -> Tensor:
        """Sum of the rows of each node's neighbors, shape ``(N, k)``, in an undirected graph.

        Args:
            rows: Rows of all nodes, shape ``(N, k)``: public, or functions of earlier releases.
        """


@runtime_checkable
class HoldsStatistics(Protocol):
    """Records of one graph in a table, whose edges are counted and not handed over.

    Attributes:
        statistics: The counts (private).
    """

    statistics: GraphStatisticsSource


class EdgeStatistics:
    """Exact counts of edges in memory (private).

    Args:
        edges: Records of shape ``(M, 2)`` (private).
        space: Pairs of nodes that may be linked (public).

    Attributes:
        edges: The records.
    """

    def __init__(self, edges: Tensor, space: PairSpace) -> None:
        self.edges, self._space = edges, space

    def num_edges(self) -> int:
        """Count the edges."""
        return len(self.edges)

    def degrees(self) -> Tensor:
        """Count the edges at each entry of the degree vector, shape ``(num_ends,)``."""
        return self._space.degrees(self.edges)

    def mixing(self, classes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count edges by the classes of their ends, see :func:`count_links`: shape ``(K, K)``."""
        return count_links(classes, self.edges.numpy())

    def column_mixing(
        self, rows: NDArray[np.int64], sizes: Sequence[int], max_weight: int, pairs: Pairs = None
    ) -> NDArray[np.int64]:
        """Sum weights by the values of private columns, see :func:`exact_mixing`."""
        edges = self.edges.numpy()
        degrees = np.bincount(edges.ravel(), minlength=len(rows))
        return exact_mixing(edges, degrees, rows, sizes, max_weight, pairs)

    def joint_degrees(self, largest_two: int) -> NDArray[np.int64]:
        """Count edges by the degrees of their ends, see :func:`joint_degrees`: ``(C,)``."""
        return joint_degrees(self.edges.numpy(), self.degrees().numpy(), largest_two)

    def neighbor_sums(self, rows: Tensor) -> Tensor:
        """Sum the rows of each node's neighbors, see :func:`neighbor_sums`: shape ``(N, k)``."""
        return neighbor_sums(self.edges, rows)

    def wedges(
        self,
        slots: NDArray[np.int64],
        classes: NDArray[np.int64],
        closures_per_edge: int,
        seed: int,
    ) -> NDArray[np.int64]:
        """Count chosen wedges and closed wedges, see :func:`count_wedges`: shape ``(2, K)``."""
        return count_wedges(self.edges.numpy(), slots, classes, closures_per_edge, seed)


class NumberedEdges:
    """Counts of edges that are one number each, see :func:`pair_numbers`: half the memory.

    Args:
        numbers: Numbers of shape ``(M,)``; sorted in place, since neighbors then touch near memory.
        num_nodes: Number of nodes N.
    """

    def __init__(self, numbers: NDArray[np.int64], num_nodes: int) -> None:
        numbers.sort()
        self._numbers, self._num_nodes = numbers, num_nodes

    def degrees(self) -> NDArray[np.int64]:
        """Count the edges of each node: shape ``(N,)``."""
        counts = np.zeros(self._num_nodes, dtype=np.int64)
        for edges in self._blocks():
            np.add.at(counts, edges, 1)
        return counts

    def wedges(
        self,
        slots: NDArray[np.int64],
        classes: NDArray[np.int64],
        closures_per_edge: int,
        seed: int,
    ) -> NDArray[np.int64]:
        """Count chosen wedges and closed wedges, see :func:`count_wedges`: shape ``(2, K)``."""
        return wedges_over_blocks(self._blocks, slots, classes, closures_per_edge, seed)

    def _blocks(self) -> Iterator[NDArray[np.int64]]:
        for start in range(0, len(self._numbers), BLOCK):
            yield pairs_of_keys(self._numbers[start : start + BLOCK], self._num_nodes)
