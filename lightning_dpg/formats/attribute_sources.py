"""Attributes of nodes that objects of other libraries hold."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.attributes import AttributeTable, Matrix
from lightning_dpg.graph.node_names import GraphFormatError


def attributes_of_networkx(graph: nx.Graph, names: list[str], origin: str) -> AttributeTable | None:
    """Collect the attributes of nodes that are single values."""
    usual = graph.graph.get("node_default", {})  # of GraphML and GEXF, also as networkx reads it
    held = [{**usual, **attributes} for _, attributes in graph.nodes(data=True)]
    columns = sorted({str(name) for attributes in held for name in attributes})
    nested = {
        str(name)
        for attributes in held
        for name, value in attributes.items()
        if not isinstance(value, str | int | float | np.number | np.bool_ | None)
    }
    cells = {
        name: [attributes.get(name) for attributes in held]
        for name in columns
        if name not in nested
    }
    return AttributeTable(str(origin), names, cells) if cells else None


def attributes_of_pyg(data: Data, names: list[str]) -> AttributeTable | None:
    """Return features ``x``, with the names ``attribute_names`` if there are any, and classes."""
    x, y = (value if isinstance(value, Tensor) else None for value in (data.x, data.y))
    if x is not None and x.dtype == torch.bfloat16:  # NumPy has no such type
        x = x.float()
    matrix = None if x is None or x.shape[:1] != (len(names),) else x.numpy(force=True)
    labels = None if y is None or y.shape != (len(names),) else y.numpy(force=True)
    if labels is not None and labels.dtype.kind not in "iu":
        labels = None
    return numbers_of_nodes("Data", names, matrix, getattr(data, "attribute_names", None), labels)


def numbers_of_nodes(
    origin: str | Path,
    ids: Sequence[str],
    matrix: Matrix | None,
    names: Sequence[str] | None,
    labels: NDArray[Any] | None,
) -> AttributeTable | None:
    """Build a table of numbers that have no columns of a table, and of classes.

    Args:
        origin: Place that an error names.
        ids: Names of the nodes.
        matrix: Numbers of shape ``(N, F)`` or ``(N,)``.
        names: Names of the F columns; ``x0``, ``x1``, ... by default.
        labels: Classes of shape ``(N,)``.
    """
    if matrix is None and labels is None:
        return None
    if labels is not None and len(labels) != len(ids):
        raise GraphFormatError(f"{origin}: {len(labels)} classes of {len(ids)} nodes")
    classes = None if labels is None else labels.astype(np.int64)
    if matrix is None:
        return AttributeTable(str(origin), ids, {}, labels=classes)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    values = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if matrix.ndim != 2 or matrix.shape[0] != len(ids) or values.dtype.kind not in "biuf":
        raise GraphFormatError(
            f"{origin}: attributes of shape {matrix.shape} and type {values.dtype}\n"
            f"expected numbers of shape ({len(ids)}, F), one row per node"
        )
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(values.astype(np.float32)).all()
    if not is_finite:
        raise GraphFormatError(
            f"{origin}: attributes that are not finite in single precision\nexpected numbers"
        )
    width = matrix.shape[1]
    columns = [str(name) for name in names] if names is not None else []
    if len(columns) != width:
        columns = [f"x{i}" for i in range(width)]
    return AttributeTable(str(origin), ids, {}, matrix, columns, classes)
