"""The records of one graph in a table on a server, which counts them."""

from collections.abc import Callable
from functools import cached_property

from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules.records import OneGraph
from lightning_dpg.datamodules.table_records import EdgeTable
from lightning_dpg.datamodules.table_statistics import TableStatistics
from lightning_dpg.graph.pair_space import Kind
from lightning_dpg.interfaces import PrivateColumns, PrivateLabels, Transfers


class TableGraph:
    """The records of a table (private), whose edges are read on demand only.

    Args:
        table: The table.
        nodes: A graph without edges, whose nodes have the public attributes of the nodes.
        assumptions: What a guarantee takes as public.
        private_columns: Private columns of the nodes, if there are any.
        private_labels: Labels of the nodes (private), if there are any.
        read: Reads the records with all edges into memory, once.

    Attributes:
        statistics: Counts of the edges and sums over them, which the server computes.
        transfers: None: with amounts or times, all rows are read.
    """

    def __init__(
        self,
        table: EdgeTable,
        nodes: Data,
        assumptions: list[str],
        private_columns: PrivateColumns | None,
        private_labels: PrivateLabels | None,
        read: Callable[[], OneGraph],
    ) -> None:
        self._nodes, self._read = nodes, read
        self.private_columns = private_columns
        self.private_labels = private_labels
        self.num_nodes = table.num_nodes
        self.node_names = table.node_names
        self.kind: Kind = table.kind
        self.num_left = table.num_left
        self.assumptions = assumptions
        self.statistics = TableStatistics(table, lambda: self.edges)
        self.transfers: Transfers | None = None  # with amounts or times, rows are read

    @property
    def classes(self) -> Tensor | None:
        """Class of each node, -1 where there is none, shape ``(N,)`` (public)."""
        classes: Tensor | None = self._nodes.y
        return classes

    @cached_property
    def edges(self) -> Tensor:
        """Records of shape ``(M, 2)`` in lexicographic order."""
        return self._read().edges

    @cached_property
    def graph(self) -> Data:
        """Graph of the edges, with all nodes."""
        return self._read().graph


class AttributedTableGraph(TableGraph):
    """The records of a table whose nodes have public attributes; these are read without the edges."""

    @property
    def attributes(self) -> Tensor:
        """Attributes of the N nodes, shape ``(N, F)`` (public)."""
        rows: Tensor = self._nodes.x
        return rows

    @property
    def attribute_names(self) -> list[str]:
        """Names of the F columns (public)."""
        return list(self._nodes.attribute_names)
