"""Public rows of nodes: principal components of their weighted attributes, at length 1."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, vstack
from torch import Tensor, nn
from torch.nn.functional import normalize

from lightning_dpg.errors import Refusal
from lightning_dpg.nn.resized_buffers import resize_on_loading

# Nodes whose weighted attributes are in memory at a time.
_CHUNK = 4096
# Public seed of the first vector of the iteration that finds the components.
_PUBLIC_SEED = 0
# Bins of a number, and the quantiles that they are computed from.
_BINS = 16
_RESOLUTION = 1001
# More numbers are an embedding, or counts of words: their directions matter.
_MOST_BINNED = 32
# With fewer columns, and with fewer columns of mostly nonzero values, the matrix of covariances
# takes less time and memory than an iteration over all attributes.
_FEW_COLUMNS = 1024
_FEW_DENSE_COLUMNS = 4096
_DENSE = 1 / 8
# Smaller variances, relative to the mean square, are rounding errors.
_ROUNDING = 1e-12
_TINY = torch.finfo(torch.float32).tiny
_LARGEST = torch.finfo(torch.float32).max


class AttributeRows(nn.Module):
    r"""Maps attributes of F columns to rows of r components; fitted to public attributes.

    A column is weighted by its inverse document frequency: a rare word weighs more than a word of
    all nodes, and a column without zeros keeps its values. The weighted attributes are scaled to
    length 1, centered, projected, and scaled to length 1 again.

    Up to 32 columns of numbers, such as an age, are encoded piecewise linearly in 16 bins. The
    similarity of two nodes then falls with their distance. The bins are equal by the mean of the rank
    of a node and the size of its number, both between 0 and 1.
    Of more numbers each is divided by its standard deviation, after its mean is subtracted if no
    node has 0. A column holds numbers if it has more than one value beside 0, and negative values,
    values above 1, or mostly values other than 0. A single value beside 0 counts as 1 if it is
    negative or above 1.

    * Gorishniy, Rubachev, Babenko, "On Embeddings for Numerical Features in Tabular Deep Learning",
      2022, for the piecewise linear encoding.

    Args:
        rank: Number of components r. Fewer nodes or columns have fewer components, and the other
            entries of a row are 0.

    Attributes:
        column_weights: Weight of each column, shape ``(F,)``; 0 for an encoded number.
        offsets: Number that is subtracted from each column, shape ``(F,)``.
        binned: Columns of the C encoded numbers, shape ``(C,)``.
        bounds: Bounds of their bins, shape ``(17, C)``.
        center: Projected mean of the weighted attributes, shape ``(r,)``.
        basis: Principal components, shape ``(F + 16 C, r)``.
    """

    def __init__(self, rank: int) -> None:
        super().__init__()
        if rank < 1:
            raise Refusal(f"rank must be 1 or more, got {rank}")
        self.rank = rank
        self.column_weights: Tensor = nn.Buffer(torch.empty(0))
        self.offsets: Tensor = nn.Buffer(torch.empty(0))
        self.binned: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))
        self.bounds: Tensor = nn.Buffer(torch.empty(_BINS + 1, 0))
        self.center: Tensor = nn.Buffer(torch.empty(0))
        self.basis: Tensor = nn.Buffer(torch.empty(0, rank))
        resize_on_loading(self, "column_weights", "offsets", "binned", "bounds", "center", "basis")

    def fit(self, attributes: Tensor) -> None:
        """Find the components of attributes of shape ``(N, F)`` (public).

        Raises:
            Refusal: If an attribute is not finite.
        """
        device = self.basis.device
        self.to("cpu")
        attributes = attributes.detach().cpu()
        _check_finite(attributes)
        parts = torch.split(attributes, _CHUNK)
        present = torch.stack([torch.count_nonzero(part, 0) for part in parts]).sum(0).double()
        self.column_weights = (((1 + len(attributes)) / (1 + present)).log() + 1).float()
        are_numbers = _are_numbers(attributes, present)
        self.column_weights /= torch.where(are_numbers, 1.0, _single_values(attributes))
        self.offsets = torch.zeros_like(self.column_weights)
        self._fit_numbers(attributes, torch.nonzero(are_numbers)[:, 0])
        num_columns = attributes.shape[1] + _BINS * len(self.binned)
        density = float(present.sum()) / max(1, attributes.numel())
        is_dense = num_columns <= _FEW_DENSE_COLUMNS and density > _DENSE
        find = _by_covariances if num_columns <= _FEW_COLUMNS or is_dense else _by_iteration
        mean, components = find(self._weighted_parts(attributes), self.rank)
        self.basis = torch.zeros(num_columns, self.rank)
        self.basis[:, : components.shape[1]] = components
        self.center = mean @ self.basis
        self.to(device)

    def _fit_numbers(self, attributes: Tensor, numbers: Tensor) -> None:
        """Find the bins of columns that hold numbers, or their scales."""
        is_few = len(numbers) <= _MOST_BINNED
        self.binned = numbers if is_few else numbers[:0]
        values = attributes[:, self.binned].double().numpy()
        self.bounds = torch.from_numpy(_bounds(values)).float()
        if is_few:
            self.column_weights[numbers] = 0.0
            return
        for column in numbers.tolist():
            cells = attributes[:, column].double()
            self.column_weights[column] /= cells.std(correction=0).clamp(min=100 * _TINY)
            if cells.all():  # a large mean would leave few digits for the differences
                self.offsets[column] = cells.mean()

    def forward(self, attributes: Tensor) -> Tensor:
        """Compute rows of nodes; the nodes need not be those of the fit.

        Args:
            attributes: Attributes of shape ``(P, F)``.

        Returns:
            Rows of shape ``(P, r)`` and length 1, or of length 0 for a node without a component.

        Raises:
            Refusal: If the columns are not those of the fit, or an attribute is not finite.
        """
        if attributes.shape[1:] != self.column_weights.shape:
            raise Refusal(
                f"expected attributes of shape (P, {len(self.column_weights)}), one column for "
                f"each attribute of the fit, got {tuple(attributes.shape)}"
            )
        _check_finite(attributes)
        attributes = attributes.to(self.basis.device)
        rows = torch.cat([part @ self.basis for part in self._weighted_parts(attributes)])
        return normalize(rows - self.center)

    def weighted(self, attributes: Tensor) -> Tensor:
        """Weighted attributes at length 1, sparse, shape ``(P, F + 16 C)``; see :meth:`forward`."""
        attributes = attributes.to(self.basis.device)
        return torch.cat([part.to_sparse() for part in self._weighted_parts(attributes)])

    def _weighted_parts(self, attributes: Tensor) -> Iterator[Tensor]:
        """Weighted attributes at length 1, of some nodes at a time."""
        for part in torch.split(attributes, _CHUNK):
            # In place: a new table for each operation takes most of the time.
            joined = (part.float() - self.offsets).mul_(self.column_weights)
            if len(self.binned):
                joined = torch.cat([joined, self._encoded(part)], 1)
            joined.clamp_(-_LARGEST, _LARGEST)
            # Squares of large or small numbers leave the range of single precision.
            largest = torch.linalg.vector_norm(joined, math.inf, 1, keepdim=True)
            joined /= largest.clamp(min=_TINY)
            yield normalize(joined, out=joined)

    def _encoded(self, attributes: Tensor) -> Tensor:
        """Numbers of P nodes, encoded at about the length of a word of every 16th node."""
        low, high = self.bounds[:-1], self.bounds[1:]
        values = attributes[:, None, self.binned].float()
        above = (values > low).float()
        width = high - low
        share = torch.where(width > 0, (values - low) / width, above).clamp(0, 1)
        return ((1 + math.log(_BINS)) / math.sqrt(_BINS) * (2 * share - 1)).flatten(1)


def _check_finite(attributes: Tensor) -> None:
    """Refuse attributes that are not finite in single precision."""
    for part in torch.split(attributes, _CHUNK):
        finite = part.float().isfinite()
        if not bool(finite.all()):
            value = part[~finite][0].item()
            raise Refusal(f"attributes of nodes must be finite in single precision, got {value}")


def _single_values(attributes: Tensor) -> Tensor:
    """The value beside 0 of each column of a single one, where it is below 0 or above 1, else 1."""
    if not len(attributes):
        return torch.ones(attributes.shape[1])
    low, high = attributes.amin(0).float(), attributes.amax(0).float()
    return torch.where(low < 0, low, high.where(high > 1, 1.0))


def _bounds(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bounds of equal bins of the mean of the rank and the size of numbers ``(N, C)``."""
    shares = np.linspace(0, 1, _RESOLUTION)
    bounds = np.empty((_BINS + 1, values.shape[1]))
    for column, cells in enumerate(values.T):
        grid = np.quantile(cells, shares)
        size = (grid - grid[0]) / max(grid[-1] - grid[0], _TINY)
        bounds[:, column] = np.interp(np.linspace(0, 1, _BINS + 1), (shares + size) / 2, grid)
    return bounds


def _are_numbers(attributes: Tensor, present: Tensor) -> Tensor:
    """Mask of the columns that hold numbers rather than words or categories, shape ``(F,)``."""
    if not len(attributes):
        return torch.zeros(attributes.shape[1], dtype=torch.bool)
    low, high = attributes.amin(0), attributes.amax(0)
    # A column of a single value beside 0 is a category, whatever the value is.
    columns = torch.nonzero((low < 0) | (high > 1) | (2 * present > len(attributes)))[:, 0]
    are_numbers = torch.zeros(attributes.shape[1], dtype=torch.bool)
    for column in columns.tolist():
        values = attributes[:, column]
        values = values[values != 0]
        are_numbers[column] = bool((values != values[:1]).any())
    return are_numbers


def _by_covariances(parts: Iterator[Tensor], count: int) -> tuple[Tensor, Tensor]:
    """Mean and leading principal components of rows that are given in parts, in O(F^2) memory."""
    total, squares, num_rows = np.zeros(0), np.zeros((0, 0)), 0
    for part in parts:
        block = part.double().numpy()
        num_rows += len(block)
        total = block.sum(0) + (total if len(total) else 0)
        squares = block.T @ block + (squares if len(squares) else 0)
    mean = total / max(1, num_rows)
    size = len(mean)
    covariances = squares / max(1, num_rows) - np.outer(mean, mean)
    first = max(0, size - min(count, num_rows))
    values, vectors = eigh(covariances, subset_by_index=[first, size - 1])
    components = vectors[:, values > _ROUNDING][:, ::-1]
    return torch.from_numpy(mean).float(), torch.from_numpy(components.copy()).float()


def _by_iteration(parts: Iterator[Tensor], count: int) -> tuple[Tensor, Tensor]:
    """As :func:`_by_covariances`, in O(r F) memory and a sparse copy of the rows."""
    # The import of scikit-learn takes almost a second, and generating graphs does not need it.
    from sklearn.decomposition import PCA

    rows = vstack([csr_array(part.numpy()) for part in parts], format="csr")
    count = min(count, *rows.shape)
    mean = torch.from_numpy(np.asarray(rows.mean(0))).float()
    differs = rows.shape[0] > 1 and (rows - rows[[0] * rows.shape[0]]).count_nonzero() > 0
    if not differs:
        return mean, torch.zeros(rows.shape[1], 0)
    solver = "arpack" if count < min(rows.shape) else "covariance_eigh"
    fitted = PCA(count, svd_solver=solver, random_state=_PUBLIC_SEED).fit(rows)
    return mean, torch.from_numpy(fitted.components_.T.copy()).float()


def fit_rows(
    features: AttributeRows, right: AttributeRows | None, attributes: Tensor, num_left: int | None
) -> Tensor:
    """Find the components, and compute the rows of all nodes.

    The sides of a bipartite graph may have different columns, and one side may have far more nodes:
    common components would describe the larger side alone.

    Args:
        features: Rows of all nodes, or of the left ones.
        right: Rows of the right nodes; None without sides.
        attributes: Attributes of shape ``(N, F)`` (public).
        num_left: Number of left nodes, which come first; None without sides.

    Returns:
        Rows of shape ``(N, r)``.
    """
    if right is None:
        features.fit(attributes)
        return features(attributes)
    parts = attributes[:num_left], attributes[num_left:]
    features.fit(parts[0])
    right.fit(parts[1])
    return torch.cat([features(parts[0]), right(parts[1])])


def rows_of_pairs(
    features: AttributeRows, right: AttributeRows | None, first: Tensor, second: Tensor
) -> Tensor:
    """Compute the rows of both ends of pairs of new nodes.

    Args:
        features: Rows of all nodes, or of the left ones.
        right: Rows of the right nodes; None without sides.
        first: Attributes of the first ends, shape ``(P, F)``.
        second: Attributes of the second ends, shape ``(P, F)``.

    Returns:
        Rows of shape ``(P, 2, r)``.
    """
    other = features if right is None else right
    return torch.stack([features(first), other(second)], 1)


def common_directions(left: AttributeRows, right: AttributeRows) -> Tensor:
    """Products of the components of both sides, shape ``(r, r)``: zero if no column is common."""
    binned = left.binned[torch.isin(left.binned, right.binned)]
    return _directions(right, binned).T @ _directions(left, binned)


def _directions(side: AttributeRows, binned: Tensor) -> Tensor:
    """Components of one side, with the bins of the columns ``binned`` only."""
    directions, width = side.basis, len(side.column_weights)
    bins = directions[width:].view(len(side.bounds) - 1, len(side.binned), directions.shape[1])
    own = bins[:, torch.isin(side.binned, binned)]
    return torch.cat([directions[:width], own.flatten(0, 1)])


def attributes_alone(
    attributes: Tensor, num_left: int | None = None, rank: int = 64
) -> Callable[[Tensor], Tensor]:
    """Build the control that reads no edge, epsilon 0: the cosine of the public rows.

    Args:
        attributes: Public attributes of shape ``(N, F)``.
        num_left: Number of left nodes, which come first; None without sides.
        rank: Number of principal components r.

    Returns:
        Function from pairs of shape ``(P, 2)`` to scores of shape ``(P,)``.
    """
    features, right = AttributeRows(rank), None if num_left is None else AttributeRows(rank)
    rows = seconds = fit_rows(features, right, attributes.cpu(), num_left)
    if right is not None:
        seconds = rows @ common_directions(features, right)

    def score(pairs: Tensor) -> Tensor:
        first, second = pairs.cpu().unbind(1)
        return (rows[first] * seconds[second]).sum(1)

    return score
