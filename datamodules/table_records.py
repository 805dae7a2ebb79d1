"""Canonical records of a table, computed by its engine: dense node numbers and each edge once.

The nodes have the numbers that an edge list with the same ids gives them, in the natural order of
the ids. The ids of edges stay in the engine; the names of nodes are read once each.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.datamodules.nodes import Columns
from lightning_dpg.datamodules.table_cells import value_rows
from lightning_dpg.datamodules.table_engine import TableEngine, nearest
from lightning_dpg.datamodules.table_values import kept_rows
from lightning_dpg.formats.conversion import NodeSet, check_share_of_mutual
from lightning_dpg.formats.edge_columns import recognized_header, shown, value_columns
from lightning_dpg.formats.transfer_columns import TransferColumns
from lightning_dpg.graph.node_names import MISSING_NAMES, GraphFormatError
from lightning_dpg.graph.pair_space import Kind, PairSpace, pair_space

_MOST_DIGITS = 1000
"""Longest id that the regular expressions of all engines can pad."""
_WHOLE = re.compile("0|[1-9][0-9]{0,17}")
_NAME_COLUMNS = "name the columns: columns.source and columns.target\n(--source NAME --target NAME)"


class ColumnOfIds(NamedTuple):
    """A column of public ids, written as ``table(column)``."""

    table: str
    column: str


IdsOfNodes: TypeAlias = ColumnOfIds | Sequence[str]
"""Public ids in a table of the engine, or read from elsewhere."""


class TableCounts(NamedTuple):
    """Counts of a table by its engine (private)."""

    rows: int
    num_missing: int
    edges: int
    links: int
    """Different ordered pairs of two nodes."""
    loops: int


class EdgeTable:
    """The edges of a table (private) between numbered nodes (public).

    The engine computes everything; edges are read at their first use.

    Args:
        engine: The engine.
        table: Name of the table, or None where the source is one.
        columns: Columns of both ids.
        where: Condition in SQL that rows must fulfill, or None.
        node_ids: All ids, or those of the left and of the right nodes; empty for the ids that occur.
        kind: Kind of the graph.
    """

    def __init__(
        self,
        engine: TableEngine,
        table: str | None,
        columns: Columns,
        where: str | None,
        node_ids: Sequence[IdsOfNodes],
        kind: Kind,
    ) -> None:
        self.engine, self.kind, self.table = engine, kind, table
        self.values: TransferColumns | None = None
        self._of_values = ""  # for the owner
        self._define_rows(table, columns, where)
        self._check_rows(where, columns.drops_missing)
        self._define_nodes(node_ids)
        self._define_edges()
        self._check_edges()

    def _define_rows(self, table: str | None, columns: Columns, where: str | None) -> None:
        """Define ``edge_rows``: both ids of each row, and its amount and time if they are read."""
        engine = self.engine
        if table is None and engine.relation is None:
            tables = engine.tables()
            raise GraphFormatError(
                f"{engine.origin}: table is not set\nit holds {', '.join(tables[:8]) or 'none'}"
            )
        if table is not None and engine.relation is not None:
            raise GraphFormatError(
                f"{engine.origin}: table {table!r} is for databases: leave it out"
            )
        relation = self._edges = engine.relation or engine.table(str(table))
        types = engine.columns(relation, table)
        self.columns = _chosen_columns(engine.origin, list(types), columns.pair)
        self._name_values(list(types), columns.transfers)
        read = {*self.columns, *(self.values.names if self.values else ())}
        self.others = [name for name in types if name not in read]
        kinds = [_kind_of_ids(engine.origin, name, types[name]) for name in self.columns]
        if kinds[0] != kinds[1]:
            one, other = (f"{name!r} holds {types[name]}" for name in self.columns)
            raise GraphFormatError(
                f"{engine.origin}: {one} and {other}\nexpected ids of one type at both ends\n"
                "make a view that casts one of them, and read the view"
            )
        self._kind_of_ids = kinds[0]
        first, second = (self._id(name) for name in self.columns)
        condition = "" if where is None else f" WHERE ({engine.predicate(where, relation)})"
        cells = [f"{first} AS source", f"{second} AS target"]
        asked = {} if self.values is None else self.values._asdict()
        for part, column in (("amount", asked.get("weight")), ("time", asked.get("time"))):
            if column is not None:
                cells.append(f"{engine.column(column)} AS {part}_cell")
        rows = f"SELECT {', '.join(cells)} FROM {relation}{condition}"
        if self.values is not None:
            rows = value_rows(engine, rows, self.values, types, self.place)
        engine.define("edge_rows", rows)

    def _name_values(self, names: list[str], asked: TransferColumns | None) -> None:
        """Find the columns of amounts and times, which can be given by their numbers."""
        if asked is None:
            return
        first, second = map(names.index, self.columns)
        places = value_columns(self.place, names, asked.names, (first, second))
        found = dict(zip(asked.names, (names[place] for place in places), strict=True))
        self.values = asked._replace(
            weight=None if asked.weight is None else found[asked.weight],
            time=None if asked.time is None else found[asked.time],
        )

    @property
    def place(self) -> str:
        """Name of the table for an error."""
        return f"{self.engine.origin}{'' if self.table is None else f': table {self.table}'}"

    def _id(self, column: str) -> str:
        """Return the SQL of an id in canonical form."""
        name = self.engine.column(column)
        if self._kind_of_ids == "int64":
            return f"CAST({name} AS BIGINT)"
        text = "STRING" if self.engine.dialect == "pyspark" else "TEXT"
        return f"TRIM(BOTH '{self.engine.spaces}' FROM CAST({name} AS {text})){self.engine.order}"

    def _check_rows(self, where: str | None, drops_missing: bool) -> None:
        """Count rows and missing ids; keep the rows without missing ids as ``edge_ids``."""
        rows = self._value_rows()
        is_bad = self._is_missing(rows.source) | self._is_missing(rows.target)
        self._rows_total, self._missing = (
            int(count or 0)
            for count in self._row(rows.aggregate(rows=rows.count(), bad=is_bad.sum()))
        )
        self.engine.expect(self._rows_total)
        origin = self.engine.origin
        if not self._rows_total:
            reason = "no rows" if where is None else f"where {where!r} matches no row"
            raise GraphFormatError(f"{origin}: {reason}\nexpected two node ids per row")
        if self._missing and not drops_missing:
            raise GraphFormatError(
                f"{origin}: {self._missing:,} of {self._rows_total:,} rows lack an id "
                f"({self.columns[0]!r} or {self.columns[1]!r} is NULL or empty)\n"
                "set columns.missing_ids to drop (--missing-ids drop) "
                "to leave these rows out"
            )
        if self._missing == self._rows_total:
            raise GraphFormatError(f"{origin}: each row lacks an id\nexpected two node ids per row")
        there = rows.filter(~is_bad)
        if self.values is not None:
            kept = kept_rows(there, self._row, self.values, self.place)
            there, self._of_values = kept.rows, kept.summary
            self._rows_total -= kept.left_out
        self.define("edge_ids", there)
        if self._kind_of_ids == "int64":
            ids = self._rows()
            (least,) = self._row(
                ids.aggregate(least=_ibis_module().least(ids.source, ids.target).min())
            )
            if int(least) < 0:
                raise GraphFormatError(
                    f"{origin}: an id is below 0\nexpected ids of 0 or more, or text"
                )

    def _is_missing(self, column: Any) -> Any:
        if self._kind_of_ids == "int64":
            return column.isnull()
        return column.isnull() | column.lower().isin(sorted(MISSING_NAMES))

    def _define_nodes(self, given: Sequence[IdsOfNodes]) -> None:
        """Define ``nodes``: ids with side and number, in the order of an edge list."""
        ibis, rows = _ibis_module(), self._rows()
        self._are_nodes_given = bool(given)
        lists = [self.engine.table(ids.table) for ids in given if isinstance(ids, ColumnOfIds)]
        self.node_set = NodeSet.LINES if not given else _origin_of_nodes(self._edges, lists)
        ends = [rows.select(id=rows.source), rows.select(id=rows.target)]
        if given:
            for place, ids in enumerate(given):
                if isinstance(ids, ColumnOfIds):
                    self._define_ids(f"node_ids_{place}", ids)
                else:
                    self._upload_ids(f"node_ids_{place}", ids)
            names = [f"node_ids_{k}" for k in range(len(given))]
            tables = [ibis.table({"id": self._kind_of_ids}, name=name) for name in names]
        elif self.kind == "bipartite":
            tables = ends
        else:
            tables = [ibis.union(*ends)]
        sides = [
            ids.distinct().mutate(side=ibis.literal(place)) for place, ids in enumerate(tables)
        ]
        ids = sides[0] if len(sides) == 1 else ibis.union(*sides)
        self.define("node_set", ids, keep=True)
        node_set = ibis.table({"id": self._kind_of_ids, "side": "int64"}, name="node_set")
        order = [node_set.side, *self._natural_order(node_set)]
        number = ibis.row_number().over(order_by=order).cast("int32")
        self.define("nodes", node_set.mutate(number=number), keep=True)
        nodes = self._nodes()
        total, num_left = self._row(
            nodes.aggregate(total=nodes.count(), left=(1 - nodes.side).sum())
        )
        self.num_nodes = int(total)
        self.num_left = int(num_left or 0) if self.kind == "bipartite" else None
        if self.num_nodes < 2 or self.num_left in (0, self.num_nodes):
            raise GraphFormatError(
                f"{self.engine.origin}: {self.num_nodes} node(s)\nexpected two nodes or more"
            )

    def _define_ids(self, name: str, ids: ColumnOfIds) -> None:
        """Define the ids of a public column, whose type must be that of the ends of edges."""
        engine = self.engine
        if engine.relation is not None:
            raise GraphFormatError(
                f"nodes {ids.table}({ids.column}): {engine.origin} has no second table\n"
                "give a file of ids, such as customers.parquet(id), or put both tables into a database"
            )
        relation = engine.table(ids.table)
        types = engine.columns(relation, ids.table)
        if ids.column not in types:
            raise GraphFormatError(
                f"nodes: {ids.table} has no column {ids.column!r}\n{nearest(ids.column, list(types))}"
            )
        if _kind_of_ids(engine.origin, ids.column, types[ids.column]) != self._kind_of_ids:
            raise GraphFormatError(
                f"nodes: {ids.table}.{ids.column} holds {types[ids.column]}, and the edges have ids "
                f"of another type\nexpected ids of one type\nmake a view that casts one of them"
            )
        column = self._id(ids.column)
        engine.define(name, f"SELECT DISTINCT {column} AS id FROM {relation}")
        table = _ibis_module().table({"id": self._kind_of_ids}, name=name)
        is_bad = self._is_missing(table.id)
        (num_missing,) = self._row(table.aggregate(bad=is_bad.sum()))
        if int(num_missing or 0):  # PostgreSQL hands over sums as text
            raise GraphFormatError(
                f"nodes: an id of {ids.table}.{ids.column} is missing (NULL or empty)\n"
                "expected ids only"
            )

    def _upload_ids(self, name: str, ids: Sequence[str]) -> None:
        """Define the ids of a public list, which has been read from elsewhere."""
        column: NDArray[Any] = np.array(ids, dtype=object)
        if self._kind_of_ids == "int64":
            odd = next((name for name in ids if not _WHOLE.fullmatch(name)), None)
            if odd is not None:
                raise GraphFormatError(
                    f"nodes: the id {odd[:40]!r}, and the edges have whole numbers\n"
                    "expected ids of one type\n"
                    "make a view that casts the ids of the edges to text, and read the view"
                )
            column = column.astype(np.int64)
        self.engine.upload(f"{name}_given", {"id": column})
        order = "" if self._kind_of_ids == "int64" else self.engine.order
        self.engine.define(name, f"SELECT id{order} AS id FROM {name}_given")

    def _natural_order(self, nodes: Any) -> list[Any]:
        """Return the keys of the natural order of names: numbers within text compare by value."""
        if self._kind_of_ids == "int64":
            return [nodes.id]
        (longest,) = self._row(nodes.aggregate(longest=nodes.id.length().max()))
        if int(longest) > _MOST_DIGITS:
            raise GraphFormatError(
                f"{self.engine.origin}: an id of {longest:,} characters\n"
                f"expected at most {_MOST_DIGITS:,}"
            )
        # A mark below all characters ends the text before a number, as the end of a name does.
        digits, group = max(int(longest), 1), self.engine.group
        padded = nodes.id.re_replace("([0-9]+)", "\x01" + "0" * digits + group)
        return [padded.re_replace(f"[0-9]*([0-9]{{{digits}}})", group), nodes.id]

    @cached_property
    def node_names(self) -> list[str]:
        """Names of the nodes by their numbers (public)."""
        nodes = self._nodes()
        sql = self._sql(nodes.order_by(nodes.number).select(nodes.id.cast("string").name("id")))
        names = [name for batch in self.engine.batches(sql) for name in batch.column(0).to_pylist()]
        if self.num_left is not None and len(set(names)) < len(names):
            sides = ["left"] * self.num_left + ["right"] * (len(names) - self.num_left)
            return [f"{side}:{name}" for side, name in zip(sides, names, strict=True)]
        return names

    @property
    def space(self) -> PairSpace:
        """Pairs of nodes that may be linked (public)."""
        return pair_space(self.kind, self.num_nodes, self.num_left)

    def _define_edges(self) -> None:
        """Define ``edge_pairs``: each record once, with its number of rows and of directions."""
        rows, ends = self._rows(), _numbered_ends(self._nodes(), self.kind)
        if self._are_nodes_given:
            self._refuse_outside(_outside_ids(rows, ends))
        self.define("edge_pairs", _canonical_pairs(rows, ends, self.kind), keep=True)

    def _refuse_outside(self, outside: Any) -> None:
        """Refuse ids that are not among the given ones."""
        (count,) = self._row(outside.aggregate(count=outside.count()))
        if count:
            raise GraphFormatError(
                f"{self.engine.origin}: ids of edges that are not among the ids of nodes: {count:,}\n"
                "expected edges between ids of the node set only\n"
                "add the ids to the node set, or leave their rows out: where (--where)"
            )

    def _check_edges(self) -> None:
        """Count edges; refuse a table without edges."""
        pairs = self.pairs()
        edges, repeats, links = (
            int(count or 0)
            for count in self._row(
                pairs.aggregate(
                    edges=pairs.count(), repeats=pairs.repeats.sum(), links=pairs.links.sum()
                )
            )
        )
        num_rows = self._rows_total - self._missing
        self.counts = TableCounts(self._rows_total, self._missing, edges, links, num_rows - repeats)
        if not edges:
            raise GraphFormatError(
                f"{self.engine.origin}: no edges\nexpected an edge between two different nodes"
            )

    def check_directions(self, undirected: bool) -> None:
        """Refuse an undirected graph of which only some links have an opposite."""
        if self.kind == "undirected":
            mutual = self.counts.links - self.counts.edges
            check_share_of_mutual(mutual, self.counts.edges, self.engine.origin, undirected)

    def summary(self) -> str:
        """Summarize for the owner what was read, with exact counts (private)."""
        counts = self.counts
        repeated = counts.rows - counts.num_missing - counts.loops - counts.links
        dropped = (counts.links - counts.edges) % counts.edges
        names = self.node_names
        shown_kind = "" if self.kind == "undirected" else f"{self.kind}; "
        note = f", {counts.num_missing:,} without an id" if counts.num_missing else ""
        note += f", edges whose direction is dropped: {dropped:,}" if dropped else ""
        table = "table" if self.table is None else f"table {self.table}"
        line = (
            f"read {Path(self.engine.origin).name}: {self.num_nodes:,} nodes, {counts.edges:,} edges "
            f"({shown_kind}{table}; columns {self.columns[0]!r} and {self.columns[1]!r}; "
            f"{repeated:,} repeated, {counts.loops:,} loops{note}); e.g. {names[0]}, "
            f"{names[1]}, ..."
        )
        others = f"; dropped from the edges: {', '.join(self.others)[:200]}" if self.others else ""
        return line + others + self._of_values

    def read_edges(self) -> Tensor:
        """Read the records (private), shape ``(M, 2)``, in lexicographic order."""
        pairs = self.pairs()
        key = pairs.low.cast("int64") * self.num_nodes + pairs.high
        keys = self.engine.numbers(self._sql(pairs.select(key=key)), self.counts.edges)[:, 0]
        keys.sort()
        edges = np.empty((len(keys), 2), dtype=np.int64)
        np.divmod(keys, self.num_nodes, out=(edges[:, 0], edges[:, 1]))
        return torch.from_numpy(edges)

    def edge_blocks(self, size: int) -> Iterator[Tensor]:
        """Read the records in blocks of ``size`` or more, of shape ``(P, 2)``, in any order."""
        pairs, parts = self.pairs(), list[NDArray[Any]]()
        for ends in self.rows_in_batches(pairs.select("low", "high")):
            parts.append(ends)
            if sum(map(len, parts)) >= size:
                yield torch.from_numpy(np.concatenate(parts))
                parts = []
        if parts:
            yield torch.from_numpy(np.concatenate(parts))

    def _nodes(self) -> Any:
        schema = {"id": self._kind_of_ids, "side": "int64", "number": "int32"}
        return _ibis_module().table(schema, name="nodes")

    def pairs(self) -> Any:
        """Return the edges: the table ``edge_pairs`` of numbers ``low`` and ``high``."""
        schema = {"low": "int32", "high": "int32", "repeats": "int32", "links": "int8"}
        return _ibis_module().table(schema, name="edge_pairs")

    def _value_rows(self) -> Any:
        """Return ``edge_rows`` with the columns of amounts and times as far as there are any."""
        schema = dict.fromkeys(("source", "target"), self._kind_of_ids)
        if self.values is not None and self.values.weight is not None:
            schema |= {"amount": "int64", "amount_text": "string"}
        if self.values is not None and self.values.time is not None:
            schema |= {"time": "int64", "form": "int32", "time_text": "string"}
        return _ibis_module().table(schema, name="edge_rows")

    def _rows(self) -> Any:
        """Return ``edge_ids``: the rows with both ids and, if they are read, with amount and time."""
        schema = dict.fromkeys(("source", "target"), self._kind_of_ids)
        if self.values is not None:
            named = {"amount": self.values.weight, "time": self.values.time}
            schema |= {part: "int64" for part, column in named.items() if column is not None}
        return _ibis_module().table(schema, name="edge_ids")

    def numbered_rows(self) -> Any:
        """Return the rows without loops with the numbers of their ends, ``source_number`` and so on."""
        ends = _numbered_ends(self._nodes(), self.kind)
        rows = self._rows().join(ends["source"], "source").join(ends["target"], "target")
        return rows.filter(rows.source_number != rows.target_number)

    def transfer_rows(self, query: Any) -> NDArray[np.int64]:
        """Return whole numbers of each row without loops, shape ``(T, columns)``."""
        counts = self.counts
        return self.engine.numbers(
            self._sql(query), counts.rows - counts.num_missing - counts.loops
        )

    def define(self, name: str, query: Any, *, keep: bool = False) -> None:
        """Give a query of Ibis a name; ``keep`` says that its rows are needed several times."""
        self.engine.define(name, self._sql(query), keep=keep)

    def _row(self, query: Any) -> list[Any]:
        return self.engine.row(self._sql(query))

    def _sql(self, query: Any) -> str:
        return str(_ibis_module().to_sql(query, dialect=self.engine.dialect))

    def rows(self, query: Any) -> NDArray[np.int64]:
        """Return the rows of a query of whole numbers, shape ``(R, columns)``."""
        parts = [batch.astype(np.int64) for batch in self.rows_in_batches(query)]
        return np.concatenate(parts) if parts else np.empty((0, len(query.columns)), np.int64)

    def rows_in_batches(self, query: Any) -> Iterator[NDArray[Any]]:
        """Return the rows of a query of numbers batch by batch, shape ``(R, columns)`` each."""
        for batch in self.engine.batches(self._sql(query)):
            columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
            yield np.stack(columns, axis=1)


def _chosen_columns(
    origin: str, names: Sequence[str], columns: tuple[str, str] | None
) -> tuple[str, str]:
    """Return the names of both columns of ids."""
    if columns is None:
        pair = recognized_header(names)
        if pair is None:
            header = "\na CSV file needs a first line with names" if ".csv" in origin else ""
            raise GraphFormatError(
                f"{origin}: no two columns with names such as source and target\n"
                f"the columns are {shown(names)}\n{_NAME_COLUMNS}{header}"
            )
        return names[pair[0]], names[pair[1]]
    for column in columns:
        if column not in names:
            raise GraphFormatError(
                f"{origin}: no column {column!r}\n{nearest(column, names)}\n{_NAME_COLUMNS}"
            )
    if columns[0] == columns[1]:
        raise GraphFormatError(f"{origin}: one column for both ends\nexpected two columns")
    return columns


def _kind_of_ids(origin: str, column: str, arrow_type: str) -> str:
    """Return the form of ids of a type of Arrow: whole numbers or text."""
    if arrow_type.startswith(("int", "uint")):
        return "int64"
    # With digits behind the point, one number has several texts: 1.0 and 1.00.
    is_whole = re.fullmatch(r"decimal128(\(\d+, 0\))?", arrow_type) is not None
    is_text = "string" in arrow_type or "uuid" in arrow_type or is_whole
    is_nested = "<" in arrow_type and not arrow_type.startswith(("dictionary", "extension"))
    if is_text and not is_nested:
        return "string"
    raise GraphFormatError(
        f"{origin}: column {column!r} holds {arrow_type}\n"
        "expected ids that are whole numbers or text\nmake a view that casts it, and read the view"
    )


def _origin_of_nodes(edges: str, lists: Sequence[str]) -> NodeSet:
    """Return the origin of the nodes: a column of the edges themselves is no list beside them.

    Args:
        edges: Table of the edges in SQL.
        lists: Tables of the ids in SQL.
    """
    ends = edges.casefold()
    others = [each.casefold() for each in lists]
    is_beside = not any(ends.endswith(each) or each.endswith(ends) for each in others)
    return NodeSet.LIST if is_beside else NodeSet.LINES


def _ibis_module() -> Any:
    """Return Ibis, which is optional."""
    import ibis

    return ibis


def _numbered_ends(nodes: Any, kind: Kind) -> dict[str, Any]:
    """Return the tables that give the number of a ``source`` and of a ``target``.

    Args:
        nodes: Table of all nodes: id, side and number.
        kind: Kind of the graph; of a bipartite one, a target is on the second side.
    """
    sides = {"source": 0, "target": 1 if kind == "bipartite" else 0}
    return {
        name: nodes.filter(nodes.side == side).select(
            **{name: nodes.id, f"{name}_number": nodes.number}
        )
        for name, side in sides.items()
    }


def _outside_ids(rows: Any, ends: dict[str, Any]) -> Any:
    """Return the ids of rows that no node has."""
    ids = [rows.anti_join(nodes, name).select(id=rows[name]) for name, nodes in ends.items()]
    return _ibis_module().union(*ids, distinct=True)


def _canonical_pairs(rows: Any, ends: dict[str, Any], kind: Kind) -> Any:
    """Return each record once, without loops: ``low`` and ``high``, and what was merged.

    ``repeats`` is the number of rows of a record, ``links`` that of their directions.
    """
    ibis = _ibis_module()
    numbered = rows.join(ends["source"], "source").join(ends["target"], "target")
    low, high = one, other = numbered.source_number, numbered.target_number
    if kind == "undirected":
        low, high = ibis.least(one, other), ibis.greatest(one, other)
    pairs = numbered.select(
        low=low, high=high, up=ibis.ifelse(one < other, 1, 0).cast("int64"), is_loop=one == other
    )
    pairs = pairs.filter(~pairs.is_loop)
    return pairs.group_by(["low", "high"]).aggregate(
        repeats=pairs.count().cast("int32"),
        links=(pairs.up.max() - pairs.up.min() + 1).cast("int8"),
    )
