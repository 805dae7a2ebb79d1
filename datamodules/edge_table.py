"""One graph whose edges are the rows of a table, read and counted where the table is."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules.base import node_set_assumption, sides_assumption
from lightning_dpg.datamodules.edge_list import EdgeListDataModule
from lightning_dpg.datamodules.loading import FROM_EDGES
from lightning_dpg.datamodules.nodes import Columns, ColumnsGiven, Nodes, NodesGiven
from lightning_dpg.datamodules.records import OneGraph
from lightning_dpg.datamodules.table_nodes import attributes_beside, ids_of_nodes
from lightning_dpg.datamodules.table_records import EdgeTable, IdsOfNodes
from lightning_dpg.datamodules.table_source import open_engine
from lightning_dpg.datamodules.table_statistics import TableStatistics
from lightning_dpg.datamodules.table_transfers import TableTransfers
from lightning_dpg.formats.conversion import NodeSet
from lightning_dpg.formats.row_names import refuse_row_names
from lightning_dpg.graph.attributes import AttributeTable, share_attributes
from lightning_dpg.graph.node_names import GraphFormatError
from lightning_dpg.graph.pair_space import Kind, PairSpace
from lightning_dpg.interfaces import PrivateColumns, PrivateLabels, TransferBounds, Transfers

if TYPE_CHECKING:
    TableSource: TypeAlias = str | Path | Any
else:
    TableSource = str | Any  # the help of the command line shows this


class TableGraph:
    """The records of a table (private), whose edges are read on demand only.

    Args:
        table: The table.
        nodes: A graph without edges, whose nodes have the public attributes of the nodes.
        assumptions: What a guarantee takes as public.
        private_columns: Private columns of the nodes, if there are any.
        private_labels: Labels of the nodes (private), if there are any.

    Attributes:
        statistics: Counts of the edges and sums over them, which the engine of the table computes.
        transfers: Counts of transfers likewise, if amounts or times are read.
    """

    def __init__(
        self,
        table: EdgeTable,
        nodes: Data,
        assumptions: list[str],
        private_columns: PrivateColumns | None,
        private_labels: PrivateLabels | None,
    ) -> None:
        self._table, self._nodes = table, nodes
        self.private_columns = private_columns
        self.private_labels = private_labels
        self.num_nodes = table.num_nodes
        self.node_names = table.node_names
        self.kind: Kind = table.kind
        self.num_left = table.num_left
        self.assumptions = assumptions
        self.statistics = TableStatistics(table)
        self.transfers = None if table.values is None else TableTransfers(table)

    @property
    def classes(self) -> Tensor | None:
        """Class of each node, -1 where there is none, shape ``(N,)`` (public)."""
        classes: Tensor | None = self._nodes.y
        return classes

    @property
    def holds_edges(self) -> bool:
        """Whether the edges have been read."""
        return "edges" in vars(self.statistics)

    @property
    def edges(self) -> Tensor:
        """Records of shape ``(M, 2)`` in lexicographic order."""
        return self.statistics.edges

    @cached_property
    def graph(self) -> Data:
        """Graph of the edges, with all nodes."""
        return share_attributes(self._table.space.graph(self.edges, self.node_names), self._nodes)


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


class EdgeTableDataModule(EdgeListDataModule):
    """One graph whose edges are the rows of a table: Parquet, CSV, DuckDB, PostgreSQL or Spark.

    The engine of the table numbers the nodes, drops loops and repeated edges and counts them, for
    the owner only. Methods that need counts alone (ErdosRenyi, ChungLu, BTER, DK2, and Attributed with
    one of them), or sums over neighbors (NeighborVotes, NodeNeighborVotes, AggregationPerturbation),
    leave the edges there; for all others the edges are read at their first use. The records are those that
    :class:`EdgeListDataModule` reads from a file of the same ids.

    Amounts and times of transfers are read if their columns are named; they are counted likewise. Other
    columns are not read. The connection only reads.
    Needs the extra ``tables``, and ``spark`` for Spark.

    Attributes:
        train_graph: Graph of the training edges, with all nodes.
        edges: Training records of shape ``(M, 2)``.
    """

    def __init__(
        self,
        source: TableSource,
        *,
        table: str | None = None,
        columns: ColumnsGiven = Columns(),
        where: str | None = None,
        nodes: NodesGiven = Nodes(),
        kind: Kind = "undirected",
        undirected: bool = False,
        steps_per_epoch: int | None = None,
        val_fraction: float = 0.0,
        test_fraction: float = 0.0,
        num_graphs: int = 1,
        seed: int = 0,
    ) -> None:
        """Store the arguments; ``setup`` opens the table and checks them.

        Args:
            source: Parquet or CSV file, a pattern of such files (``'calls/*.csv'``),
                ``duckdb:///FILE``, ``postgresql://USER@HOST/DATABASE``, ``spark://HOST:PORT``, or
                from Python an Ibis table expression. A password belongs into ``~/.pgpass``.
            table: Table of a database, ``NAME`` or ``SCHEMA.NAME``.
            columns: Columns of the table that hold the relation.
            where: Condition in the SQL of the engine that a row must fulfill. It chooses edges, and is
                public like every setting.
            nodes: Ids of all nodes, or more of :class:`Nodes`. Ids and attributes are a
                ``TABLE(COLUMN)`` of the same database, with the column of the ids, or stand in files
                of their own. Names with spaces stand in double quotes, as in ``table``. Where
                ``names`` are numbers, the edges are read.
            kind: ``undirected``; ``directed``, where an edge is an ordered pair of nodes; or
                ``bipartite``, where an edge links a left and a right node, and the side of each node
                is public.
            undirected: Drop the directions of a table that looks directed instead of refusing it.
            steps_per_epoch: Batches per epoch of methods that do not say it themselves.
            val_fraction: Probability that an edge is held out for validation, by a public coin.
            test_fraction: Probability that an edge is held out for the test, by the same coin.
            num_graphs: Number of graphs to generate in ``predict``, from the seeds 0, 1, ...
            seed: Seed of the coin and of the sampled non-edges (public).
        """
        super().__init__(
            source,
            undirected=undirected,
            steps_per_epoch=steps_per_epoch,
            val_fraction=val_fraction,
            test_fraction=test_fraction,
            num_graphs=num_graphs,
            seed=seed,
            nodes=nodes,
            columns=columns,
            kind=kind,
        )
        self.table = table
        self.where = where
        self._attributes: AttributeTable | None = None
        self._without_edges: Data

    @cached_property
    def _table(self) -> EdgeTable:
        """The table with its numbered nodes, opened at the first use."""
        self._check_kind()
        if self.nodes.side_column is not None:
            raise GraphFormatError(
                "nodes.side_column is for files of nodes, which EdgeListDataModule reads\n"
                "expected ids as a table and its column, such as customers(id)"
            )
        engine, nodes = open_engine(self.source), self.nodes
        found = attributes_beside(engine, nodes.attributes, nodes.policies, nodes.column)
        self._attributes, ids = found or (None, None)
        table = EdgeTable(engine, self.table, self.columns, self.where, self._ids(ids), self.kind)
        table.check_directions(self.undirected)
        return table

    def _ids(self, of_attributes: IdsOfNodes | None) -> list[IdsOfNodes]:
        """Return all public ids, or those of both sides; none for the ids that occur in edges."""
        nodes = self.nodes
        if self.kind == "bipartite" and nodes.ids is not None:
            raise GraphFormatError(
                "the side of each node is not known\ngive the ids of both sides: nodes.left and "
                "nodes.right (--data.nodes.left 'customers(id)' --data.nodes.right 'shops(id)')"
            )
        if nodes.ids is None and of_attributes is not None and self.kind != "bipartite":
            return [of_attributes]
        if isinstance(nodes.ids, str) and nodes.ids == FROM_EDGES:
            return []
        given = (nodes.ids, nodes.left, nodes.right)
        return [ids_of_nodes(ids, nodes.column) for ids in given if ids is not None]

    def _stays_there(self) -> bool:
        """Return whether the edges may stay in the table."""
        are_numbered = self.nodes.are_numbered(self._table.node_set)
        return not (are_numbered or self.val_fraction or self.test_fraction)

    @property
    def space(self) -> PairSpace:
        """Return the pairs of nodes that may be linked (public)."""
        return self._table.space

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes N (public)."""
        return self._table.num_nodes

    @property
    def num_edges(self) -> int:
        """Return the number of edges including held-out edges (private)."""
        return self._table.counts.edges

    def _split_edges(self) -> None:
        """Open the table; read and split its edges only where something asks for them."""
        if not self._stays_there():
            super()._split_edges()
            return
        self._check_arguments()
        self._describe()
        self.val_links = self.test_links = None
        self._is_set_up = True

    def _describe(self) -> None:
        """State the assumptions, and summarize the table for the owner."""
        table = self._table
        self.summary = table.summary()
        if table.values is not None:
            self._state_bounds(TransferBounds(table.values.weight_max, table.values.window))
        node_set = table.node_set
        if node_set is NodeSet.LINES:
            header = table.columns
            refuse_row_names(table.node_names, table.place, are_of_rows=True, header=header)
        are_numbered = self.nodes.are_numbered(node_set)
        self.assumptions.append(
            node_set_assumption(table.num_nodes, node_set, are_numbered=are_numbered)
        )
        self._without_edges = table.space.graph(torch.empty(0, 2).long(), table.node_names)
        if self._attributes is not None:
            self._add_attributes(self._without_edges, self._attributes)
        if self.kind == "bipartite":
            self.assumptions.append(sides_assumption(node_set))

    def _read_graph(self) -> Data:
        """Read all edges of the table."""
        if self._stays_there():
            self._whole, self.transfers = self._table_graph.graph, self._read_transfers()
            return self._whole
        self._describe()
        table = self._table
        self.transfers = self._read_transfers()
        whole = table.space.graph(table.read_edges(), table.node_names)
        self._whole = share_attributes(whole, self._without_edges)
        are_numbered = self.nodes.are_numbered(table.node_set)
        return self._numbered(self._whole) if are_numbered else self._whole

    @cached_property
    def _table_graph(self) -> TableGraph:
        has_attributes = getattr(self._without_edges, "attribute_names", None)
        kind = AttributedTableGraph if has_attributes else TableGraph
        private = self.private_columns, self.private_labels
        return kind(self._table, self._without_edges, self.assumptions, *private)

    @property
    def records(self) -> OneGraph | TableGraph:  # type: ignore[override]
        """Return the training records (private), after ``setup``.

        They are the graph in memory as soon as there is one: an audit puts edges into it.
        """
        if "edges" not in vars(self):
            self.times_read += 1
            return self._table_graph
        if self._stays_there():
            self.transfers = self.transfers or self._read_transfers()
            self.train_transfers = self._of_training()
        return super().records

    def _read_transfers(self) -> Transfers | None:
        """Read all transfers into memory, if there are any."""
        return None if self._table.values is None else TableTransfers(self._table).read()

    def _whole_graph(self) -> Data:
        """Return the whole graph; edges that stay in the table are read, and not kept."""
        if self._whole is not None or not self._stays_there():
            return super()._whole_graph()
        return self._table.space.graph(self._table.read_edges(), self._table.node_names)

    def _transfer_rows(self) -> tuple[Tensor, Tensor | None, Tensor | None] | None:
        """Read payer and payee, amount and time of each row; they are not kept."""
        return None if self._table.values is None else TableTransfers(self._table).rows()

    @cached_property
    def edges(self) -> Tensor:  # type: ignore[override]
        """Training records of shape ``(M, 2)``, read from the table at the first use."""
        return self._table_graph.edges

    @cached_property
    def train_graph(self) -> Data:
        """Graph of the training edges, with all nodes."""
        return self._table_graph.graph
