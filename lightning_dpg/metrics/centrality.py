"""Eigenvector centrality of nodes, also where components tie."""

import contextlib
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from torch_geometric.data import Data

from lightning_dpg.graph.graph import component_labels, index_type

_SMALL = 16
"""Nodes of a component up to which all components of its size are solved at once."""
_FEW, _BASIS = 20, 80
"""Basis vectors: a few are enough for most graphs, but long thin graphs have close eigenvalues."""
_RESTARTS = 5
"""Of the method with few basis vectors."""
_PRECISION = 1e-12
"""Relative, of eigenvalues; it is below :data:`_TIE`."""
_TIE = 1e-9


def eigenvector_centrality(
    graph: Data, components: NDArray[np.int32] | None = None
) -> NDArray[np.float64]:
    """Return the nonnegative leading eigenvector of the adjacency matrix; empty without edges.

    Where components tie for the leading eigenvalue, it is the projection of equal values for all
    nodes, as power iteration finds it. Its norm is 1.

    Args:
        graph: The graph.
        components: Its :func:`component_labels`, if they have been found.
    """
    if not graph.num_edges:
        return np.zeros(0)
    parts = component_labels(graph) if components is None else components
    degrees = np.bincount(graph.edge_index[0].cpu().numpy(), minlength=graph.num_nodes)
    found = [leading for nodes in _candidates(degrees, parts) for leading in _leading(graph, nodes)]
    largest = max(value for value, _, _ in found)
    centrality = np.zeros(graph.num_nodes)
    for value, nodes, vector in found:
        if value >= largest * (1 - _TIE):
            centrality[nodes] = vector * vector.sum()
    return centrality / np.linalg.norm(centrality)


def _candidates(degrees: NDArray[np.int64], parts: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """Return components that may lead, those of a small size together, shape ``(C, size)``.

    The eigenvalue of a component lies between the root of its largest degree and this degree.
    """
    largest = np.zeros(parts.max() + 1)
    np.maximum.at(largest, parts, degrees)
    may_lead = largest >= np.sqrt(largest.max())
    sizes = np.bincount(parts)
    nodes = np.argsort(parts, kind="stable")
    blocks = []
    for size in np.unique(sizes[may_lead]):
        rows = nodes[(may_lead & (sizes == size))[parts[nodes]]].reshape(-1, size)
        blocks += [rows] if size <= _SMALL else [row[None] for row in rows]
    return blocks


def _leading_of_one(matrix: csr_array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest eigenvalue and its eigenvector, shapes ``(1,)`` and ``(N, 1)``."""
    size = matrix.shape[0]
    find = partial(eigsh, matrix, k=1, which="LA", v0=np.ones(size), tol=_PRECISION)
    with contextlib.suppress(ArpackNoConvergence):
        return find(ncv=min(_FEW, size), maxiter=_RESTARTS)
    return find(ncv=min(_BASIS, size))


def _leading(
    graph: Data, components: NDArray[np.int64]
) -> list[tuple[float, NDArray[np.int64], NDArray[np.float64]]]:
    """Return the leading eigenvalue and eigenvector of each of some components of one size.

    Args:
        graph: The graph.
        components: Nodes of each component in ascending order, shape ``(C, size)``.
    """
    count, size = components.shape
    number = np.full(graph.num_nodes, -1, dtype=np.int32)
    number[components.ravel()] = np.arange(count * size, dtype=np.int32)
    rows, columns = graph.edge_index.cpu().numpy()
    is_inner = (number >= 0)[rows]  # an edge leads to no other component
    others = number[columns]
    if not is_inner.all():
        others = others[is_inner]
    if size > _SMALL:
        degrees = np.bincount(rows, minlength=graph.num_nodes)[components[0]]
        starts = np.concatenate([[0], np.cumsum(degrees)]).astype(index_type(len(others)))
        inner = csr_array((np.ones(len(others)), others, starts), shape=(size, size))
        del is_inner, others  # memory
        values, vectors = _leading_of_one(inner)
        return [(float(values[0]), components[0], np.abs(vectors[:, 0]))]
    ends = number[rows[is_inner]]
    dense = np.zeros((count, size, size))
    dense[ends // size, ends % size, others % size] = 1
    values, vectors = np.linalg.eigh(dense)
    return [
        (float(value[-1]), row, np.abs(vector[:, -1]))
        for value, row, vector in zip(values, components, vectors, strict=True)
    ]
