"""Edges and attributes of nodes as Parquet tables, where pandas and pyarrow are installed."""

import importlib.util
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from scipy.sparse import csr_array
from torch_geometric.data import Data

from lightning_dpg.graph.attribute_files import read_stored
from lightning_dpg.graph.attributes import LABELS
from lightning_dpg.graph.pair_space import space_of


def check_parquet() -> None:
    """Refuse Parquet where it cannot be written.

    Raises:
        MisconfigurationException: If pandas or pyarrow is not installed.
    """
    missing = [name for name in ("pandas", "pyarrow") if importlib.util.find_spec(name) is None]
    if missing:
        raise MisconfigurationException(
            f"formats: parquet is written by pandas and pyarrow, and {' and '.join(missing)} is not "
            f"installed\npip install {' '.join(missing)}, or leave parquet out of formats"
        )


def write_parquet(graph: Data, file: BinaryIO) -> None:
    """Write columns ``source`` and ``target`` of names; nodes without edges are lost."""
    names = np.array(graph.node_names, dtype=object)
    edges = space_of(graph).edges(graph).numpy()
    _write({"source": names[edges[:, 0]], "target": names[edges[:, 1]]}, file)


def write_attribute_table(names: list[str], arrays: Mapping[str, Any], file: BinaryIO) -> None:
    """Write a column ``node`` of names, and a column for each attribute and for the classes.

    Args:
        names: Names of all nodes.
        arrays: Their attributes as in NetGAN's archives.
        file: Opened file.
    """
    matrix, columns, labels = read_stored(arrays)
    table: dict[str, NDArray[Any]] = {"node": np.array(names, dtype=object)}
    if matrix is not None:
        dense = matrix.toarray() if isinstance(matrix, csr_array) else matrix
        table |= {name: dense[:, i] for i, name in enumerate(columns or [])}
    if labels is not None:
        table[LABELS] = labels
    _write(table, file)


def _write(columns: Mapping[str, NDArray[Any]], file: BinaryIO) -> None:
    import pandas  # optional

    pandas.DataFrame(dict(columns)).to_parquet(file, engine="pyarrow", index=False)
