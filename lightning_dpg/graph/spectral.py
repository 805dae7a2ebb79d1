"""Structure of a graph from a noisy list of its edges, by leading eigenpairs of its matrix.

The eigenpairs of large matrices come from products with blocks of vectors: Lanczos' method with thick
restarts, see Wu, Simon, "Thick-restart Lanczos method for large symmetric eigenvalue problems", 2000.
Vectors join the basis by blocks: a block is made orthogonal by products of matrices, which take a
fraction of the time of as many vectors one by one.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor

Vectors: TypeAlias = NDArray[np.float32]
"""Columns of shape ``(N, K)``."""
BLOCK = 8
_ROOM = 2.5  # most basis vectors for each wanted one
_LEAST_BLOCKS = 10
_SEED = 0  # of the start (public)
_NOTHING = 1e-5  # share of the largest eigenvalue below which a vector is rounding only
_FIRST_RANK = 16
_DENSE_NODES = 64  # up to here all eigenpairs are computed, and repetitions are equal
_MANY_NODES = 20_000  # beyond, eigenvectors by blocks: one by one they would take minutes
_TOLERANCE = 1e-2  # of eigenvalues; eigenvalues of noise are so close that exact ones take minutes
# Tuned on planted partitions: smallest share of the mean degree of a row, and weight of noise.
_LEAST_SHARE = 0.3
_NOISE_WEIGHT = 2.0


class BlockLanczos:
    """Largest eigenvalues of a symmetric matrix, and their eigenvectors, in single precision.

    Args:
        product: Product of the matrix with a block of columns ``(N, 8)``.
        size: Number of rows N, many times the number of wanted eigenvalues.
        tolerance: Largest norm of the residual of an eigenpair, as a share of the eigenvalue.
    """

    def __init__(self, product: Callable[[Vectors], Vectors], size: int, tolerance: float) -> None:
        self._product, self._tolerance = product, tolerance
        self._rng = np.random.default_rng(_SEED)
        start = self._rng.standard_normal((size, BLOCK), dtype=np.float32)
        self._basis = np.linalg.qr(start).Q
        self._multiplied = 0  # vectors of the basis; the block behind them comes next
        self._projected = np.zeros((BLOCK, BLOCK))
        self._rest = np.zeros((BLOCK, BLOCK))  # of the last product, in the block that came of it

    def leading(self, count: int, most: int, bound: float) -> tuple[NDArray[np.float64], Vectors]:
        """Return the largest eigenvalues, descending, and their eigenvectors.

        Args:
            count: Number of them; it doubles while none of them is below the bound.
            most: Largest number of them.
            bound: Value from which on eigenvalues are of interest.
        """
        while True:
            self._grow(max(int(_ROOM * count), count + _LEAST_BLOCKS * BLOCK))
            values, rotation = self._ritz_pairs()
            # No eigenvalue is below its estimate.
            if count < most and values[count - 1] >= bound:
                count = min(2 * count, most)
                continue
            errors = np.linalg.norm(self._rest @ rotation[-BLOCK:, :count], axis=0)
            # Eigenvalues near 0 are as exact as the largest one allows.
            sizes = np.maximum(np.abs(values[:count]), self._tolerance * np.abs(values).max())
            if (errors <= self._tolerance * sizes).all():
                return values[:count], self._rotated(rotation[:, :count])
            self._restart(values, rotation, count + BLOCK)

    def _grow(self, room: int) -> None:
        """Multiply the last block and make the product orthogonal to the basis, up to its size."""
        self._make_room(room + 2 * BLOCK)
        while self._multiplied < room:
            start, stop = self._multiplied, self._multiplied + BLOCK
            basis, block = self._basis[:, :stop], self._product(self._basis[:, start:stop])
            within = _remove(basis, block).astype(np.float64)
            least = _NOTHING * max(np.abs(self._projected).max(), np.abs(within).max())
            block, first = self._orthonormal(block, basis, least)
            within += _remove(basis, block) @ first  # rounding, which matters in small vectors
            block, second = self._orthonormal(block, basis, least=0.0)
            self._rest = second @ first
            self._projected[:stop, start:stop] = within
            self._projected[start:stop, :stop] = within.T
            self._basis[:, stop : stop + BLOCK] = block
            self._multiplied = stop

    def _make_room(self, most: int) -> None:
        held, (size, now) = self._multiplied + BLOCK, self._basis.shape
        if now >= most:
            return
        basis = np.empty((size, most), dtype=np.float32, order="F")
        projected = np.zeros((most, most))
        basis[:, :held] = self._basis[:, :held]
        projected[:held, :held] = self._projected[:held, :held]
        self._basis, self._projected = basis, projected

    def _orthonormal(
        self, block: Vectors, basis: Vectors, least: float
    ) -> tuple[Vectors, NDArray[np.float64]]:
        """Write a block that is orthogonal to a basis as orthonormal columns times ``(8, 8)``.

        Where it has only rounding below ``least``, the basis holds all that the matrix makes of it,
        and random vectors go on.
        """
        exact = block.astype(np.float64)  # squares would lose the digits of a small vector
        squares, directions = np.linalg.eigh(exact.T @ exact)
        sizes = np.sqrt(np.maximum(squares, 0))
        is_empty = sizes <= least
        sizes[is_empty] = 0
        columns = (exact @ (directions / np.where(is_empty, 1, sizes))).astype(np.float32)
        if is_empty.any():
            others = np.concatenate([basis, columns[:, ~is_empty]], axis=1)
            fresh = self._rng.standard_normal((len(basis), is_empty.sum()), dtype=np.float32)
            for _ in range(2):
                _remove(others, fresh)
                fresh = np.linalg.qr(fresh).Q
            columns[:, is_empty] = fresh
        return columns, sizes[:, None] * directions.T

    def _ritz_pairs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return all eigenpairs of the matrix within the basis, in descending order."""
        values, rotation = np.linalg.eigh(self._projected[: self._multiplied, : self._multiplied])
        return values[::-1], rotation[:, ::-1]

    def _rotated(self, rotation: NDArray[np.float64]) -> Vectors:
        return np.asarray(self._basis[:, : self._multiplied] @ rotation.astype(np.float32))

    def _restart(
        self, values: NDArray[np.float64], rotation: NDArray[np.float64], kept: int
    ) -> None:
        """Keep the leading vectors of the basis, and the last block."""
        held = self._multiplied
        wanted = self._rotated(rotation[:, :kept])
        self._basis[:, kept : kept + BLOCK] = self._basis[:, held : held + BLOCK].copy()
        self._basis[:, :kept] = wanted
        self._projected[:] = 0
        self._projected[:kept, :kept] = np.diag(values[:kept])
        self._multiplied = kept


def _remove(basis: Vectors, block: Vectors) -> Vectors:
    """Subtract from a block its parts in an orthonormal basis; return them, ``(J, K)``."""
    parts = basis.T @ block
    block -= basis @ parts
    return np.asarray(parts)


class Spectrum(NamedTuple):
    r"""Leading eigenpairs of an estimated adjacency matrix, normalized on both sides.

    Attributes:
        values: Eigenvalues :math:`\lambda_k` of shape ``(K,)``, descending, none below 0.
        vectors: Eigenvectors of shape ``(N, K)``.
        scale: Square roots of the regularized degrees, shape ``(N,)``.
        bulk: Size of the eigenvalues that noise alone would give.
    """

    values: Tensor
    vectors: Tensor
    scale: Tensor
    bulk: float


def spectrum(
    reported: Tensor,
    num_nodes: int,
    rank: int,
    true_rate: float = 1.0,
    false_rate: float = 0.0,
    *,
    weights: Tensor | None = None,
    scale: Tensor | None = None,
) -> Spectrum:
    r"""Compute eigenpairs of :math:`D^{-1/2} \hat A D^{-1/2}`, where :math:`\hat A` estimates A.

    :math:`\hat A_{ij} = (B_{ij} - q) / (p - q)` off the diagonal, where B are the reports, p is the
    rate of true reports and q the rate of false reports. D are the estimated degrees plus the false
    reports of a node and the mean of both: where noise prevails D is nearly constant, and otherwise
    hubs do not take all of the eigenvectors.

    Args:
        reported: Reported edges of shape ``(K, 2)``, rows ``i < j``.
        num_nodes: Number of nodes N.
        rank: Most eigenpairs to compute; fewer where the rest is far below the noise.
        true_rate: Probability p with which an edge is reported.
        false_rate: Probability q with which a non-edge is reported.
        weights: Weight of each report, shape ``(K,)``; 1 by default.
        scale: Divisor of rows and columns instead of the roots of D, shape ``(N,)``.
    """
    reports = _matrix(reported, num_nodes, weights)
    roots = (
        _regular_degrees(reports.sum(axis=0), true_rate, false_rate) ** 0.5
        if scale is None
        else scale.double().numpy()
    )

    if not len(reported):
        nothing = torch.zeros(num_nodes, 1, dtype=torch.float64)
        return Spectrum(nothing[0], nothing, torch.from_numpy(roots), 0.0)
    noise = (false_rate * (1 - false_rate) * num_nodes) ** 0.5 / (true_rate - false_rate)
    bulk = 2 * noise * float((1 / roots**2).mean())
    values, vectors = _above(bulk, rank, reports, roots, (true_rate, false_rate))
    order = np.argsort(-values)
    return Spectrum(
        torch.from_numpy(np.maximum(values[order], 0.0)),
        torch.from_numpy(vectors[:, order].astype(np.float64, copy=False)),
        torch.from_numpy(roots),
        bulk,
    )


def _matrix(reported: Tensor, num_nodes: int, weights: Tensor | None) -> csr_array:
    """Return the symmetric matrix of reports, whose parts do not stay in memory."""
    ends = reported.numpy().T
    values = np.ones(len(reported)) if weights is None else weights.double().numpy()
    half = coo_array((values, (ends[0], ends[1])), shape=(num_nodes, num_nodes)).tocsr()
    return half + half.T


def noise_scale(degrees: Tensor, true_rate: float, false_rate: float) -> Tensor:
    r"""Return row scales :math:`\sqrt{1 + 2b / d}` that remove the weight of a row's noise.

    The noise b of a row's sum exceeds most degrees d at small budgets; rows of hubs, which keep
    their weight, then lead eigenvectors. Without noise all rows keep it.

    Args:
        degrees: Estimated degrees of shape ``(N,)``.
        true_rate: Probability p with which an edge is reported.
        false_rate: Probability q with which a non-edge is reported.
    """
    size, mean = len(degrees), float(degrees.double().mean())
    noise = (size * false_rate * (1 - false_rate)) ** 0.5 / (true_rate - false_rate)
    regular = degrees.double().clamp(min=0) + _LEAST_SHARE * max(mean, 1 / size)
    return (1 + _NOISE_WEIGHT * noise / regular).sqrt()


def _regular_degrees(sums: np.ndarray, true_rate: float, false_rate: float) -> np.ndarray:
    """Return degrees estimated from sums of reports, plus false reports and the mean of both."""
    false_sums = false_rate * (len(sums) - 1)
    degrees = np.maximum(sums - false_sums, 0) / (true_rate - false_rate)
    regular = degrees + false_sums / (true_rate - false_rate)
    return regular + max(float(regular.mean()), 1e-12)


def _above(
    bulk: float, rank: int, reports: csr_array, roots: np.ndarray, rates: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues and their eigenvectors, until one is within the bulk."""
    size, (true_rate, false_rate) = len(roots), rates
    is_large = size > _MANY_NODES
    if is_large:
        reports, roots = reports.astype(np.float32), roots.astype(np.float32)

    def normalized(columns: np.ndarray) -> np.ndarray:
        scaled = (columns.T / roots).T
        expected_false = false_rate * (scaled.sum(axis=0) - scaled)
        return ((reports @ scaled - expected_false).T / ((true_rate - false_rate) * roots)).T

    most = min(rank, size - 1)
    count = min(_FIRST_RANK, most)
    if is_large:
        return BlockLanczos(normalized, size, _TOLERANCE).leading(count, most, bulk)
    operator = LinearOperator((size, size), matvec=normalized, dtype=np.float64)
    while True:
        values, vectors = _leading(operator, count)
        if values.min() < bulk or count >= most:
            return values, vectors
        count = min(2 * count, most)


def _leading(operator: LinearOperator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``count`` largest eigenvalues and their eigenvectors."""
    size = operator.shape[0]
    if size <= _DENSE_NODES:
        values, vectors = np.linalg.eigh(operator @ np.eye(size))
        return values[-count:], vectors[:, -count:]
    start = np.random.default_rng(0).random(size)  # the default is not reproducible
    return eigsh(operator, k=count, which="LA", v0=start, tol=_TOLERANCE)


def leading(spectrum: Spectrum, rank: int) -> Spectrum:
    """Return the first ``rank`` eigenpairs, or all where there are fewer."""
    values, vectors = spectrum.values[:rank], spectrum.vectors[:, :rank]
    return spectrum._replace(values=values, vectors=vectors)


def diffused(spectrum: Spectrum, steps: int) -> Tensor:
    r"""Return rows with inner products :math:`\sum_k \lambda_k^t v_{ik} v_{jk}`, shape ``(N, K)``.

    The inner product measures how much two nodes see of each other in a walk of t steps. Noise,
    whose eigenvalues are small, fades faster than communities.
    """
    return spectrum.vectors * spectrum.values ** (steps / 2)


def shrunken(spectrum: Spectrum) -> Tensor:
    r"""Return rows whose inner products estimate the expected number of edges between nodes.

    Eigenvalues are shrunk to :math:`\sqrt{\lambda^2 - b^2}` with the bulk b of the noise, the best
    there is in squared error for independent noise, and the normalization is undone.

    References:
        Gavish, Donoho, "Optimal shrinkage of singular values", 2017, equation 7.
    """
    values = (spectrum.values**2 - spectrum.bulk**2).clamp(min=0).sqrt()
    return spectrum.scale[:, None] * spectrum.vectors * values.sqrt()
