"""Leading eigenpairs of large matrices by products with blocks of vectors.

Lanczos' method with thick restarts, see Wu, Simon, "Thick-restart Lanczos method for large symmetric
eigenvalue problems", 2000. Vectors join the basis by blocks: a block is made orthogonal by products
of matrices, which take a fraction of the time of as many vectors one by one.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float32]
"""Columns of shape ``(N, K)``."""

BLOCK = 8
_ROOM = 2.5  # most basis vectors for each wanted one
_LEAST_BLOCKS = 10
_SEED = 0  # of the start (public)
_NOTHING = 1e-5  # share of the largest eigenvalue below which a vector is rounding only


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
