"""Attributes of nodes as arrays: the keys of NetGAN's archives.

An archive holds them as a sparse matrix, because a bag of words is mostly zeros: Cora-ML's 2,879
words of 2,995 nodes are 151,171 numbers, and 8.6 million with the zeros.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.attributes import Matrix, NodeAttributes

ATTRIBUTE_KEYS = {"attr_data", "attr_matrix", "labels"}
"""Keys of which an archive with attributes of nodes has one."""

_PARTS = ("data", "indices", "indptr", "shape")


def read_stored(
    archive: Mapping[str, NDArray[Any]],
) -> tuple[Matrix | None, list[str] | None, NDArray[Any] | None]:
    """Return matrix, names of its columns, and classes of the nodes; None for an absent one.

    Args:
        archive: Arrays ``attr_data``, ``attr_indices``, ``attr_indptr`` and ``attr_shape`` of NetGAN
            and PyG, or a dense ``attr_matrix``; ``attr_names`` and ``labels``.
    """
    matrix: Matrix | None = None
    if all(f"attr_{part}" in archive for part in _PARTS):
        data, indices, indptr, shape = (archive[f"attr_{part}"] for part in _PARTS)
        sparse = csr_array((data, indices, indptr), shape=tuple(shape))
        sparse.check_format(full_check=True)
        sparse.sum_duplicates()
        matrix = sparse
    elif "attr_matrix" in archive and archive["attr_matrix"].ndim == 2:
        matrix = archive["attr_matrix"]
    names = [str(name) for name in archive["attr_names"]] if "attr_names" in archive else None
    labels = archive.get("labels")
    is_classes = labels is not None and labels.ndim == 1 and labels.dtype.kind in "iu"
    return matrix, names, labels if is_classes else None


def stored(attributes: NodeAttributes) -> dict[str, Any]:
    """Return the arrays that :func:`read_stored` reads."""
    matrix = csr_array(attributes.x.numpy(force=True))
    arrays: dict[str, Any] = {
        "attr_data": matrix.data,
        "attr_indices": matrix.indices,
        "attr_indptr": matrix.indptr,
        "attr_shape": np.array(matrix.shape),
        "attr_names": np.array(attributes.names, dtype=np.str_),
    }
    if attributes.y is not None:
        arrays["labels"] = attributes.y.numpy(force=True)
    return arrays


def packed(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Make plain values of arrays, for a checkpoint that is read without running code."""
    return {
        name: array.tolist() if array.dtype.kind == "U" else torch.from_numpy(array)
        for name, array in arrays.items()
    }


def unpacked(values: Mapping[str, Any]) -> NodeAttributes:
    """Return the attributes that :func:`packed` has made plain values of."""
    return restored({name: np.asarray(value) for name, value in values.items()})


def restored(archive: Mapping[str, NDArray[Any]]) -> NodeAttributes:
    """Return the attributes of arrays that :func:`stored` has made.

    Raises:
        Refusal: If they are not such arrays.
    """
    matrix, names, labels = read_stored(archive)
    if matrix is None or names is None or matrix.shape[1:] != (len(names),):
        raise Refusal("no attributes of nodes, or no names of all of them")
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    x = torch.from_numpy(np.ascontiguousarray(dense, dtype=np.float32))
    if not bool(x.isfinite().all()):
        raise Refusal("attributes that are not finite")
    if labels is not None and labels.shape != (len(x),):
        raise Refusal(f"{len(labels)} classes of {len(x)} nodes")
    return NodeAttributes(x, names, None if labels is None else torch.from_numpy(labels))
