"""A database: tables of nodes and of relations, each kind of which is a graph of its own."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow
import pytorch_lightning as pl
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.datamodules.base import GraphDataModule, secret_order, write_key_file
from lightning_dpg.datamodules.edge_table import EdgeTableDataModule
from lightning_dpg.datamodules.nodes import Nodes
from lightning_dpg.datamodules.small_database import small_database
from lightning_dpg.datamodules.table_engine import TableEngine
from lightning_dpg.datamodules.table_nodes import ColumnOfIds, attributes_there
from lightning_dpg.datamodules.table_source import open_engine
from lightning_dpg.errors import Refusal, nearest
from lightning_dpg.formats.attribute_tables import attributes_of_arrow, read_attributes
from lightning_dpg.formats.conversion import GraphReading
from lightning_dpg.formats.edge_columns import check_header
from lightning_dpg.formats.edge_lists import read_text_table
from lightning_dpg.formats.kinds import Sides, names_of_sides
from lightning_dpg.formats.node_lists import given_names
from lightning_dpg.formats.schema import in_schema_words, read_schema
from lightning_dpg.graph.attributes import AttributeTable
from lightning_dpg.graph.node_names import GraphFormatError, name_of
from lightning_dpg.interfaces import Identity

BUILT_IN_DATABASES = {"small_database": small_database}
"""Schemas of generated databases, whose tables are part of them (public)."""
RECORD = "relation of any kind"
"""Record of a database as a whole."""


class DatabaseDataModule(pl.LightningDataModule):
    """A database whose kinds of relations are read as one graph each, on nodes that they share.

    The nodes of all tables are public. Each kind of nodes has one secret order, in which its nodes are
    numbered in all graphs; in a bipartite one the nodes of the second table follow those of the first.
    Columns of nodes have the name of their table before them.

    >>> data = DatabaseDataModule("small_database")
    >>> list(data.schema.relations)
    ['owns', 'transfers', 'buys']
    >>> owns = data.relation("owns")
    >>> owns.setup("fit")
    >>> owns.kind, list(owns.private_columns.domains), owns.private_columns.right
    ('bipartite', ['person.age', 'person.region', 'account.type'], ('account.type',))

    Attributes:
        schema: The tables, and what is public of them.
    """

    def __init__(self, schema: str | Path | Mapping[str, Any] = "small_database") -> None:
        """Check the schema; no table is opened.

        Args:
            schema: YAML file, to which its paths are relative; its content, whose tables may be those
                of Python, such as DataFrames; or the name of a built-in database.
        """
        super().__init__()
        built_in = BUILT_IN_DATABASES.get(schema) if isinstance(schema, str) else None
        self.schema = read_schema(schema if built_in is None else built_in())
        for name, table in self.schema.nodes.items():
            with _placed(f"{self.schema.origin}: nodes.{name}"):
                Nodes(private_columns=list(table.private), domains=table.private)
        self._tables: dict[str, AttributeTable] = {}
        self._orders: dict[str, list[int]] = {}
        self._relations: dict[str, RelationDataModule] = {}

    def setup(self, stage: str) -> None:
        """Read all tables, so that a key of nobody is refused before the first fit."""
        for name in self.schema.relations:
            self.relation(name).setup(stage)

    def check(self) -> None:
        """Read the tables of nodes, and of all others the names of their columns.

        Raises:
            GraphFormatError: If a table or a column is missing, or the id of a node is repeated.
        """
        for name in self.schema.relations:
            self.relation(name).check()

    def identity(self) -> Identity:
        """Return the canonical content of all kinds of relations and their columns (private)."""
        parts = {name: self.relation(name).identity() for name in self.schema.relations}

        def joined(field: str) -> bytes:
            each = {name: getattr(part, field) for name, part in parts.items()}
            return json.dumps({name: text.hex() for name, text in each.items() if text}).encode()

        names = (name for node in self.schema.nodes for name in given_names(self.table(node).ids))
        has_columns = any(map(self.reads_columns, parts))
        return Identity(
            joined("edges"),
            joined("nodes"),
            RECORD,
            [*dict.fromkeys(names)],
            joined("rows") if has_columns else b"",
        )

    def relation(self, name: str) -> "RelationDataModule":
        """Return the graph of one kind of relations, which is read by its ``setup``."""
        if name not in self.schema.relations:
            raise Refusal(f"no relations {name!r}{nearest(name, self.schema.relations)}")
        if name not in self._relations:
            self._relations[name] = RelationDataModule(self, name)
        return self._relations[name]

    def table(self, node: str) -> AttributeTable:
        """Return the ids of a kind of nodes and the columns that the schema names, read once.

        Raises:
            GraphFormatError: If an id is missing or repeated, or a column is not there.
        """
        if node not in self._tables:
            with _placed(f"{self.schema.origin}: nodes.{node}"):
                self._tables[node] = self._read(node)
        return self._tables[node]

    def _read(self, node: str) -> AttributeTable:
        given = self.schema.nodes[node]
        names = [*given.private, *given.public]
        if given.table is None:
            ids = pyarrow.table({given.id: [*map(name_of, given.ids)]})
            read = attributes_of_arrow(ids, "ids", given.id)
        elif isinstance(given.table, str):
            place = ColumnOfIds(given.table, given.id)
            read = attributes_there(open_engine(self.schema.source), place, names)
        elif given.header is not None:
            rows = read_text_table(given.table, given.header)
            read = attributes_of_arrow(rows, str(given.table), given.id)
        else:
            read = read_attributes(given.table, given.id)
        if missing := [name for name in names if name not in read.columns]:
            raise GraphFormatError(
                f"{read.origin}: no column {missing[0]!r}{nearest(missing[0], read.columns)}\n"
                f"the columns are {', '.join(read.columns)[:100]}"
            )
        return read._replace(columns={f"{node}.{name}": read.columns[name] for name in names})

    def node_names(self, node: str) -> list[str]:
        """Return the ids of a kind of nodes (public) in the order of their numbers (private)."""
        names = given_names(self.table(node).ids)
        order = self.order((node,))
        return names if order is None else [names[place] for place in order]

    def order(self, nodes: Sequence[str]) -> list[int] | None:
        """Return the secret order of nodes of some kinds; None where their ids are published."""
        if self.schema.names == "ids":
            return None
        order: list[int] = []
        for node in nodes:
            if node not in self._orders:
                self._orders[node] = secret_order(len(self.table(node).ids))
            order += [len(order) + place for place in self._orders[node]]
        return order

    def reads_columns(self, name: str) -> bool:
        """Return whether a kind has private columns at one of its ends.

        Args:
            name: Kind of relations.
        """
        between = self.schema.relations[name].between
        return any(self.schema.nodes[node].private for node in between)

    def settings(self, nodes: Sequence[str]) -> Nodes:
        """Return the settings of a graph of one or two kinds of nodes, with the columns of both."""
        tables, given = [self.table(node) for node in nodes], self.schema.nodes
        private = {f"{n}.{name}": v for n in nodes for name, v in given[n].private.items()}
        public = {f"{n}.{name}": v for n in nodes for name, v in given[n].public.items()}
        ids: dict[str, Any] = {"ids": tables[0].ids}
        rows = tables[0]
        if len(nodes) == 2:
            ids = {"left": tables[0].ids, "right": tables[1].ids}
            before, behind = ([None] * len(each) for each in ids.values())
            columns = {name: [*cells, *behind] for name, cells in tables[0].columns.items()}
            columns |= {name: [*before, *cells] for name, cells in tables[1].columns.items()}
            names, is_exact = names_of_sides(Sides(**ids)), all(each.is_exact for each in tables)
            rows = AttributeTable(" and ".join(nodes), names, columns, is_exact=is_exact)
        return Nodes(
            **ids,
            names=self.schema.names,
            attributes=rows if private or public else None,
            policy=public,
            private_columns=list(private),
            right_columns=[n for n in private if n.startswith(f"{nodes[-1]}.")]
            if nodes[1:]
            else None,
            domains=private,
        )

    def write_key(self, folder: Path) -> bool:
        """Write a key file ``NODES.csv`` of numbers and names for each kind of nodes (private).

        Returns:
            Whether there are keys: there are none where the ids are published.
        """
        is_secret = self.schema.names == "numbers"
        folder.mkdir(parents=True, exist_ok=True)
        for node in self.schema.nodes if is_secret else ():
            write_key_file(folder / f"{node}.csv", self.node_names(node))
        return is_secret

    def read_key(self, folder: Path) -> None:
        """Number the nodes as the key files say, which goes before the first :meth:`relation`.

        Raises:
            GraphFormatError: If a file is missing, or is that of other nodes.
        """
        for node in self.schema.nodes if self.schema.names == "numbers" else ():
            place = {name: k for k, name in enumerate(given_names(self.table(node).ids))}
            try:
                with (folder / f"{node}.csv").open(encoding="utf-8", newline="") as file:
                    self._orders[node] = [place.pop(name) for _, name in [*csv.reader(file)][1:]]
            except (OSError, LookupError, ValueError):
                place[""] = -1
            if place:
                raise GraphFormatError(
                    f"{folder / node}.csv: no key of the nodes {node}\ngive the folder of the run"
                )
        self._relations.clear()


class RelationDataModule(EdgeTableDataModule):
    """The graph of one kind of relations; see :meth:`DatabaseDataModule.relation`.

    Attributes:
        ends: Kinds of its nodes: one, or those of the left and of the right nodes.
        given: The table, and what is public of it.
    """

    def __init__(self, database: DatabaseDataModule, name: str) -> None:
        """Read the tables of the nodes; that of the relations is read by ``setup``."""
        self.given = given = database.schema.relations[name]
        self.ends = tuple(dict.fromkeys(given.between))
        self._place = f"{database.schema.origin}: relations.{name}"
        is_in_source = isinstance(given.table, str)
        super().__init__(
            database.schema.source if is_in_source else given.table,
            table=given.table if is_in_source else None,
            columns=given.columns,
            where=given.where,
            nodes=database.settings(self.ends),
            kind=given.kind,
        )
        self._numbering = database.order(self.ends)

    def setup(self, stage: str) -> None:
        """Read the relations; an error says where the schema names them."""
        with _placed(self._place):
            super().setup(stage)

    def check(self) -> None:
        """Refuse a table that is not there, or lacks a column."""
        with _placed(self._place):
            if not self._is_list:
                _ = self._chosen
            elif isinstance(self.source, Path):
                check_header(self.source, self.columns)

    @property
    def _is_list(self) -> bool:
        """Whether the table is a text file or one of Python, all rows of which are read."""
        if isinstance(self.source, Path):
            is_text = self.source.suffix != ".parquet" and self.source.is_file()
            return is_text and self.where is None and self.given.header is None
        return not isinstance(self.source, str)

    @cached_property
    def _engine(self) -> TableEngine:
        return open_engine(self.source, self.given.header)

    @cached_property
    def _is_counted(self) -> bool:
        return not self._is_list and super()._is_counted

    def _given_ids(self, ids: str | Sequence[str] | None) -> str | Sequence[str] | None:
        return ids

    def _load(self, ids: str | Sequence[str] | None) -> GraphReading:
        return GraphDataModule._load(self, ids) if self._is_list else super()._load(ids)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a run, whose nodes have the numbers of its key files.

        Raises:
            MisconfigurationException: If they have others, of which no other graph would know.
        """
        is_alone = self.trainer is None or self.trainer.world_size == 1
        if is_alone and state_dict.get("numbering") != self._numbering:
            raise MisconfigurationException(
                "the checkpoint has another order of the nodes than the other graphs of its database\n"
                "read the key files of the run first: DatabaseDataModule.read_key(folder)"
            )
        super().load_state_dict(state_dict)


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Say where in the schema an error is."""
    try:
        yield
    except GraphFormatError as error:
        raise in_schema_words(place, error) from None
