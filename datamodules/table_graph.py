"""The records of one graph in a table on a server, which counts them."""

from collections.abc import Callable
from functools import cached_property

from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules.records import AttributedGraph, OneGraph
from lightning_dpg.datamodules.table_records import EdgeTable
from lightning_dpg.datamodules.table_statistics import TableStatistics
from lightning_dpg.interfaces import PrivateColumns, PrivateLabels


class TableGraph(OneGraph):
    """The records of a table (private), whose edges are read on demand only.

    Args:
        table: The table.
        nodes: A graph without edges, whose nodes have the public attributes and the names of a release.
        read: Reads the records with all edges into memory, once.
        assumptions: What a guarantee takes as public.
        private_columns: Private columns of the nodes, if there are any.
        private_labels: Labels of the nodes (private), if there are any.

    Attributes:
        statistics: Counts of the edges and sums over them, which the server computes.
    """

    def __init__(
        self,
        table: EdgeTable,
        nodes: Data,
        read: Callable[[], OneGraph],
        assumptions: list[str],
        private_columns: PrivateColumns | None,
        private_labels: PrivateLabels | None,
    ) -> None:
        private = private_columns, private_labels
        super().__init__(nodes, None, assumptions, *private, whole=lambda: read().graph)
        self._read = read
        self.statistics = TableStatistics(table, lambda: self.edges)

    @cached_property
    def edges(self) -> Tensor:  # type: ignore[override]
        """Records of shape ``(M, 2)`` in lexicographic order."""
        return self._read().edges


class AttributedTableGraph(TableGraph, AttributedGraph):
    """The records of a table whose nodes have public attributes; these are read without the edges."""
