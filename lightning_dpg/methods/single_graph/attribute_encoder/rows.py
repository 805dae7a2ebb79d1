"""Public rows of nodes: principal components of their weighted attributes, at length 1."""

import numpy as np
import torch
from scipy.sparse import csr_array, vstack
from torch import Tensor, nn
from torch.nn.functional import normalize

from lightning_dpg.methods.graph_set.base import resized

PUBLIC_ATTRIBUTES = "Node attributes are public and were not computed from the edges."
# Nodes whose weighted attributes are in memory at a time.
_CHUNK = 4096
# Public seed of the first vector of the iteration that finds the components.
_PUBLIC_SEED = 0


class AttributeRows(nn.Module):
    """Maps attributes of F columns to rows of r components; fitted to public attributes.

    A column is weighted by its inverse document frequency: a rare word weighs more than a word of
    all nodes, and a column without zeros keeps its values. The weighted attributes are scaled to
    length 1, centered, projected, and scaled to length 1 again.

    Args:
        rank: Number of components r. Fewer nodes or columns have fewer components, and the other
            entries of a row are 0.

    Attributes:
        column_weights: Weight of each column, shape ``(F,)``.
        center: Projected mean of the weighted attributes, shape ``(r,)``.
        basis: Principal components, shape ``(F, r)``.
    """

    def __init__(self, rank: int) -> None:
        super().__init__()
        if rank < 1:
            raise ValueError(f"rank must be 1 or more, got {rank}")
        self.rank = rank
        self.column_weights: Tensor
        self.center: Tensor
        self.basis: Tensor
        self.register_buffer("column_weights", torch.empty(0))
        self.register_buffer("center", torch.empty(0))
        self.register_buffer("basis", torch.empty(0, rank))
        hook = resized("column_weights", "center", "basis")
        self.register_load_state_dict_pre_hook(hook)  # type: ignore[no-untyped-call]

    def fit(self, attributes: Tensor) -> None:
        """Find the components of attributes of shape ``(N, F)`` (public)."""
        attributes = attributes.cpu()
        num_nodes, num_columns = attributes.shape
        present = (attributes != 0).sum(0).double()
        column_weights = (((1 + num_nodes) / (1 + present)).log() + 1).float()
        parts = [
            _weighted(part, column_weights).numpy() for part in torch.split(attributes, _CHUNK)
        ]
        mean, components = _components([csr_array(part) for part in parts], self.rank)
        basis = torch.zeros(num_columns, self.rank)
        basis[:, : components.shape[1]] = components
        device = self.basis.device
        self.column_weights, self.basis = column_weights.to(device), basis.to(device)
        self.center = (mean @ basis).to(device)

    def forward(self, attributes: Tensor) -> Tensor:
        """Compute rows of nodes; the nodes need not be those of the fit.

        Args:
            attributes: Attributes of shape ``(P, F)``.

        Returns:
            Rows of shape ``(P, r)`` and length 1, or of length 0 for a node without a component.
        """
        attributes = attributes.to(self.basis.device)
        parts = torch.split(attributes, _CHUNK)
        rows = torch.cat([_weighted(part, self.column_weights) @ self.basis for part in parts])
        return normalize(rows - self.center)


def _weighted(attributes: Tensor, column_weights: Tensor) -> Tensor:
    return normalize(attributes.float() * column_weights)


def _components(parts: list[csr_array], count: int) -> tuple[Tensor, Tensor]:
    """Mean and leading principal components of rows that are given in parts."""
    # The import of scikit-learn takes almost a second, and generating graphs does not need it.
    from sklearn.decomposition import PCA

    rows = vstack(parts, format="csr")
    count = min(count, *rows.shape)
    mean = torch.from_numpy(np.asarray(rows.mean(0))).float()
    differs = rows.shape[0] > 1 and (rows - rows[[0] * rows.shape[0]]).count_nonzero() > 0
    if not differs:
        return mean, torch.zeros(rows.shape[1], 0)
    solver = "arpack" if count < min(rows.shape) else "covariance_eigh"
    fitted = PCA(count, svd_solver=solver, random_state=_PUBLIC_SEED).fit(rows)
    return mean, torch.from_numpy(fitted.components_.T.copy()).float()
