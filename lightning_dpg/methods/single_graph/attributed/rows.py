"""Rows of private columns: tables of the nodes, and the distribution that is fitted to them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.rows import (
    Marginal,
    count_pairs,
    fit_joint,
    tables_of_pairs,
    times_counted,
)
from lightning_dpg.interfaces import HoldsPrivateColumns, PrivateColumns
from lightning_dpg.methods.single_graph.bter import degree_classes, merged_classes
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation
from lightning_dpg.privacy.sensitivity.private_columns import row_table_sensitivity

DRAWN_ROWS = "Rows of the synthetic table are drawn: the row beside a name is not that person's."
"""Sentence of the statement of each release with drawn rows."""

# Nodes of a class of degrees per unit of noise in their tables, below which classes are merged.
_NODES_PER_NOISE = 10


def private_columns_of(records: object) -> PrivateColumns:
    """Return the private columns that records hold, which a check of the data has found."""
    columns = records.private_columns if isinstance(records, HoldsPrivateColumns) else None
    assert columns is not None
    return columns


def row_record(domains: Mapping[str, Sequence[str]] | None) -> str:
    """Return the unit of protection of rows, with the names of the columns."""
    names = list(domains or ())
    if not names:
        return ""  # that of the relation, before the data are known
    return f"private column{'s' * (len(names) > 1)} {', '.join(names)} of one node"


def table_entry(epsilon: float, sizes: Sequence[int], record: str) -> LedgerEntry:
    """Plan the read of the tables of nodes.

    Args:
        epsilon: Its cost to the columns of one node.
        sizes: Number of values of each private column (public).
        record: Unit of protection in words.
    """
    tables = sum(times_counted(1 + len(sizes)))
    return LedgerEntry.proved(
        "row_tables",
        "nodes by private columns and classes of released degrees",
        Pure(epsilon),
        row_table_sensitivity,
        tables,
        relation=Relation.ATTRIBUTES,
        record=record,
        public={"tables": tables},
    )


class NodeGroups(NamedTuple):
    """Groups of the classes of released degrees, in which tables count nodes.

    Attributes:
        of_class: Group of each class, shape ``(K,)``.
        sizes: Number of nodes of each group, shape ``(G,)``.
        of_node: Group of each node, shape ``(N,)``.
    """

    of_class: NDArray[np.int64]
    sizes: NDArray[np.float64]
    of_node: NDArray[np.int64]


def node_groups(degrees: NDArray[np.int64], read: LedgerEntry, num_columns: int) -> NodeGroups:
    """Merge classes of released degrees until each has enough nodes for the noise of the tables.

    Args:
        degrees: Released degrees of all nodes, shape ``(N,)``.
        read: Read of the tables.
        num_columns: Number of private columns.
    """
    classes = degree_classes(degrees)
    # The first table has the class.
    least = _NODES_PER_NOISE * read.scale / times_counted(1 + num_columns)[0]
    of_class = merged_classes(np.bincount(classes).astype(np.float64), least)
    of_node = of_class[classes]
    sizes = np.bincount(of_node, minlength=int(of_class.max()) + 1).astype(np.float64)
    return NodeGroups(of_class, sizes, of_node)


def exact_tables(
    groups: NodeGroups, rows: NDArray[np.int64], sizes: Sequence[int]
) -> NDArray[np.int64]:
    """Count nodes by each pair of group and columns: rows of shape ``(N, J)`` (private)."""
    return count_pairs(np.column_stack([groups.of_node, rows]), [len(groups.sizes), *sizes])


def fitted_joint(
    noisy: NDArray[np.float64], groups: NodeGroups, sizes: Sequence[int], scale: float
) -> NDArray[np.float64]:
    """Fit the joint distribution of group and columns to noisy tables of :func:`exact_tables`."""
    all_sizes = [len(groups.sizes), *sizes]
    marginals = [Marginal((0,), groups.sizes, 0.0)]
    tables = tables_of_pairs(noisy, all_sizes)
    for (axes, table), count in zip(tables.items(), times_counted(len(all_sizes)), strict=True):
        marginals.append(Marginal(axes, table / count, scale / count))
    return fit_joint(marginals, all_sizes)
