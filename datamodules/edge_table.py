"""One graph whose edges are the rows of a table: files are read, and servers count."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules.base import node_set_assumption, sides_assumption
from lightning_dpg.datamodules.edge_list import EdgeListDataModule
from lightning_dpg.datamodules.loading import FROM_EDGES, read_on_nodes
from lightning_dpg.datamodules.node_attributes import FROM_GRAPH, attribute_table
from lightning_dpg.datamodules.nodes import ColumnsGiven, Nodes, NodesGiven
from lightning_dpg.datamodules.records import OneGraph
from lightning_dpg.datamodules.server_engines import ServerEngine
from lightning_dpg.datamodules.table_engine import Chosen, TableEngine
from lightning_dpg.datamodules.table_nodes import (
    attributes_there,
    column_of_ids,
    ids_of_nodes,
    is_of_edges,
)
from lightning_dpg.datamodules.table_source import open_engine, parquet_file
from lightning_dpg.formats.arrow_edges import edges_of_table
from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.conversion import GraphReading, NodeSet
from lightning_dpg.formats.io import read
from lightning_dpg.formats.node_lists import given_names
from lightning_dpg.formats.row_names import refuse_row_names
from lightning_dpg.graph.attributes import AttributeTable
from lightning_dpg.graph.node_names import GraphFormatError
from lightning_dpg.graph.pair_space import Kind, PairSpace
from lightning_dpg.interfaces import Identity

if TYPE_CHECKING:
    from lightning_dpg.datamodules.table_graph import TableGraph
    from lightning_dpg.datamodules.table_records import EdgeTable

    TableSource: TypeAlias = str | Path | Any
else:
    TableSource = str | Any  # the help of the command line shows this


class EdgeTableDataModule(EdgeListDataModule):
    """One graph whose edges are the rows of a table: Parquet, CSV, DuckDB, PostgreSQL or Spark.

    Rows of files and of DuckDB are read into memory, and are edges as those of
    :class:`EdgeListDataModule`. PostgreSQL and Spark count where the rows are: methods that need counts
    alone (ErdosRenyi, ChungLu, BTER, DK2, and Attributed with one of them), or sums over neighbors
    (NeighborVotes, NodeNeighborVotes, AggregationPerturbation), leave the edges there; for all others
    the rows are read at their first use. The records are those of a file of the same ids.

    Amounts and times of transfers are read if their columns are named, and then all rows are, once.
    Other columns are not read. The connection only reads.
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
            undirected: Say that rows have no direction, as they have none by default.
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
        self._without_edges: Data

    @cached_property
    def _engine(self) -> TableEngine:
        """The engine of the table, opened at the first use."""
        return open_engine(self.source)

    @cached_property
    def _chosen(self) -> Chosen:
        """Columns and rows of the table."""
        return self._engine.chosen(self.table, self.columns, self.where)

    @cached_property
    def _is_counted(self) -> bool:
        """Whether a server counts the edges, which stay there as long as nobody asks for them."""
        return (
            not (self.val_fraction or self.test_fraction or self.columns.values)
            and parquet_file(self.source) is None
            and isinstance(self._engine, ServerEngine)
            and self._engine.may_keep
        )

    def _attributes_beside(self) -> AttributeTable | None:
        """Read the attributes in a file, or in a table of the same database."""
        nodes = self.nodes
        if nodes.attributes == FROM_GRAPH:
            raise GraphFormatError(
                f"nodes.attributes: {FROM_GRAPH}, and a table of edges holds no attributes of nodes\n"
                "give their table: --attributes people.parquet, or 'customers(id)' of the same database"
            )
        place = column_of_ids(nodes.attributes)
        if place is None:
            return attribute_table(nodes.attributes, nodes.policies, nodes.column)
        return attributes_there(self._engine, place)

    def _given_ids(self, ids: str | Sequence[str] | None) -> str | Sequence[str] | None:
        """Read ids of nodes from a file, or from a table of the same database."""
        if ids is None or (isinstance(ids, str) and ids == FROM_EDGES):
            return ids
        return ids_of_nodes(self._engine, ids, self.nodes.column)

    def _load(self, ids: str | Sequence[str] | None) -> GraphReading:
        """Read the rows of the table as those of any other list of edges."""
        path = parquet_file(self.source) if self.where is None and self.table is None else None
        names = None if ids is None or ids == FROM_EDGES else given_names(ids)
        if path is not None:
            return read_on_nodes(read(path, self.columns), ids, names)
        chosen = self._chosen
        reading = edges_of_table(
            self._engine.read(chosen), chosen.columns, self.columns, chosen.place, "table"
        )
        reading = read_on_nodes(reading, ids, names)
        is_list = reading.node_set is NodeSet.LIST and not self._are_of_edges
        return reading if is_list else reading._replace(node_set=NodeSet.LINES)

    @property
    def _are_of_edges(self) -> bool:
        """Whether the ids of nodes that are given are those of the table of the edges."""
        nodes = self.nodes
        ids = nodes.ids or nodes.attributes, nodes.left, nodes.right
        return is_of_edges(self._chosen.relation, self._engine, *ids)

    @cached_property
    def _table(self) -> "EdgeTable":
        """The table with its numbered nodes, which its server counts."""
        from lightning_dpg.datamodules.table_records import EdgeTable  # Start-up time: Ibis

        self._check_kind()
        self._attribute_table, ids, sides = self._public_nodes()
        if self.kind == "bipartite" and ids is not None and sides is None:
            raise GraphFormatError(
                "the side of each node is not known\ngive the ids of both sides: nodes.left and "
                "nodes.right (--data.nodes.left 'customers(id)' --data.nodes.right 'shops(id)')"
            )
        given = [] if ids is None or ids == FROM_EDGES else [given_names(ids)]
        assert isinstance(self._engine, ServerEngine)
        return EdgeTable(
            self._engine,
            self._chosen,
            self.columns,
            given if sides is None else [*sides],
            self.kind,
            order=self._order if self.nodes.are_numbered(self._node_set) else None,
        )

    @property
    def _node_set(self) -> NodeSet:
        """Origin of the nodes: a column of the edges themselves is no list beside them."""
        nodes, is_bipartite = self.nodes, self.kind == "bipartite"
        given = nodes.left if is_bipartite else nodes.ids or nodes.attributes
        is_list = given not in (None, FROM_EDGES) and not self._are_of_edges
        return NodeSet.LIST if is_list else NodeSet.LINES

    def _split_edges(self) -> None:
        """Read and split the edges only where a server does not count them."""
        if not self._is_counted:
            super()._split_edges()
            return
        self._check_arguments()
        table = self._table
        node_set = self._node_set
        if node_set is NodeSet.LINES:
            header = table.chosen.columns.ends
            refuse_row_names(table.names, table.chosen.place, are_of_rows=True, header=header)
        self.summary = table.summary()
        are_numbered = self.nodes.are_numbered(node_set)
        self.assumptions.append(
            node_set_assumption(table.num_nodes, node_set, are_numbered=are_numbered)
        )
        self._without_edges = table.space.graph(torch.empty(0, 2).long(), table.names)
        if self._attribute_table is not None:
            self._add_attributes(self._without_edges, self._attribute_table)
        if self.kind == "bipartite":
            self.assumptions.append(sides_assumption(node_set))
        if are_numbered:
            self._without_edges, _ = self._numbered(self._without_edges, torch.empty(0, 2).long())
        self.val_links = self.test_links = None
        self._is_set_up = True

    def _read_graph(self) -> tuple[Data, Tensor]:
        """Read all edges; of a table that is counted, nothing else changes."""
        if not self._is_counted:
            return super()._read_graph()
        stated = list(self.assumptions), self.summary
        nodes, edges = super()._read_graph()
        self.assumptions[:], self.summary = stated
        if nodes.node_names != self._without_edges.node_names:
            raise GraphFormatError(
                f"{self._chosen.place}: the table changed while it was read\nread it again"
            )
        return nodes, edges

    @property
    def space(self) -> PairSpace:
        """Return the pairs of nodes that may be linked (public)."""
        return self._table.space if self._is_counted else super().space

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes N (public)."""
        return self._table.num_nodes if self._is_counted else super().num_nodes

    @property
    def num_edges(self) -> int:
        """Return the number of edges including held-out edges (private)."""
        return self._table.counts.edges if self._is_counted else super().num_edges

    @property
    def _nodes(self) -> Data:
        """The nodes alone."""
        return self._without_edges if self._is_counted else super()._nodes

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the numbering of a resumed run, and count in this one.

        Raises:
            MisconfigurationException: See :meth:`EdgeListDataModule.load_state_dict`.
        """
        before = self._numbering
        super().load_state_dict(state_dict)
        if self._numbering != before and vars(self).pop("_table", None) is not None:
            vars(self).pop("_table_graph", None)
            self._split_edges()

    def identity(self) -> Identity:
        """Return the canonical content of the whole graph; edges that are counted are not kept."""
        found = super().identity()
        if self._is_counted and "edges" not in vars(self):
            self._forget()
        return found

    @cached_property
    def _table_graph(self) -> "TableGraph":
        from lightning_dpg.datamodules.table_graph import (  # Start-up time: Ibis
            AttributedTableGraph,
            TableGraph,
        )

        has_attributes = getattr(self._without_edges, "attribute_names", None)
        kind = AttributedTableGraph if has_attributes else TableGraph
        nodes, private = (
            self._published(self._without_edges),
            (self.private_columns, self.private_labels),
        )
        return kind(self._table, nodes, self._held, self.assumptions, *private)

    @property
    def records(self) -> OneGraph:
        """Return the training records (private), after ``setup``.

        They are the graph in memory as soon as there is one: an audit puts edges into it.
        """
        if "edges" in vars(self) or not self._is_counted:
            return super().records
        self.times_read += 1
        return self._table_graph

    @cached_property
    def edges(self) -> Tensor:  # type: ignore[override]
        """Training records of shape ``(M, 2)``; those that a server counts are read at the first use."""
        _, edges = self._once()
        self.train_transfers = self.transfers
        return edges
