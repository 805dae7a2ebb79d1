"""Canonical records of a table on a server: dense node numbers and each edge once.

The nodes have the numbers that an edge list with the same ids gives them, in the natural order of
the ids. The ids of edges stay on the server; the names of nodes are read once each.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ibis  # of the extra 'tables'
import numpy as np

from lightning_dpg.datamodules.server_engines import ServerEngine
from lightning_dpg.datamodules.table_engine import Chosen, no_rows
from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.edge_columns import refuse_missing
from lightning_dpg.formats.kinds import Sides, names_of_sides
from lightning_dpg.formats.node_lists import given_names
from lightning_dpg.graph.node_names import MISSING_NAMES, GraphFormatError
from lightning_dpg.graph.pair_space import Kind, PairSpace, pair_space


class TableCounts(NamedTuple):
    """Counts of a table by its engine (private)."""

    rows: int
    num_missing: int
    edges: int
    links: int
    """Different ordered pairs of two nodes."""
    loops: int


class EdgeTable:
    """The edges of a table (private) between numbered nodes (public), which its server counts.

    Args:
        engine: The server.
        chosen: Columns and rows of the table.
        columns: What was asked for; amounts and times are not read.
        given: All ids, or those of the left and of the right nodes; empty for the ids that occur.
        kind: Kind of the graph.
        order: Returns the order of the released numbers, given the numbers of all nodes and of those
            on the left; None where the release has the names.

    Attributes:
        names: Names of the nodes in natural order.
    """

    def __init__(
        self,
        engine: ServerEngine,
        chosen: Chosen,
        columns: Columns,
        given: Sequence[Sequence[str]],
        kind: Kind,
        *,
        order: Callable[[int, int | None], Sequence[int]] | None = None,
    ) -> None:
        self.engine, self.chosen, self.columns, self.kind = engine, chosen, columns, kind
        self._order = order
        self._id_type = self._type_of_ids()
        self._check_rows()
        self._define_nodes(given)
        self.engine.define(
            "edge_pairs", _canonical_pairs(self.numbered_rows(), self.kind), keep=True
        )
        self._check_edges()

    def _type_of_ids(self) -> str:
        """Return the type of the ids in Ibis."""
        chosen = self.chosen
        kinds = [
            type_of_ids(chosen.place, name, chosen.types[name]) for name in chosen.columns.ends
        ]
        if kinds[0] != kinds[1]:
            one, other = (f"{name!r} holds {chosen.types[name]}" for name in chosen.columns.ends)
            raise GraphFormatError(
                f"{chosen.place}: {one} and {other}\nexpected ids of one type at both ends\n"
                "make a view that casts one of them, and read the view"
            )
        return kinds[0]

    def _is_missing(self, ids: Any) -> Any:
        if self._id_type == "int64":
            return ids.isnull()
        return ids.isnull() | ids.strip().lower().isin(sorted(MISSING_NAMES))

    def _check_rows(self) -> None:
        """Count rows, and those without an id; define the others as ``edge_rows``."""
        chosen, names = self.chosen, ("source", "target")
        self._schema = dict.fromkeys(names, self._id_type)
        self.engine.define(
            "given_rows", self.engine.rows(chosen, dict(zip(chosen.read, names, strict=True)))
        )
        given = ibis.table(self._schema, name="given_rows")
        rows = given.select(**{name: given[name].cast(self._id_type) for name in names})
        is_bad = self._is_missing(rows.source) | self._is_missing(rows.target)
        total, missing = self.engine.row(rows.aggregate(rows=rows.count(), bad=is_bad.sum()))
        if not total:
            raise no_rows(chosen)
        drop = self.columns.drops_missing
        refuse_missing(chosen.place, missing, total, "not named by a server", drop=drop)
        self.engine.define("edge_rows", rows.filter(~is_bad))
        self._rows_total, self._missing = total, missing

    def _define_nodes(self, given: Sequence[Sequence[str]]) -> None:
        """Define ``nodes``: ids with side and number, in the order of an edge list."""
        rows = self._rows()
        ends = [rows.select(id=rows.source), rows.select(id=rows.target)]
        parts = ends if self.kind == "bipartite" else [ends[0].union(ends[1])]
        found = [self.engine.texts(part.distinct().cast({"id": "string"})) for part in parts]
        sides = given or [given_names(ids) for ids in found]
        names = [name for side in sides for name in side]
        self.num_nodes = len(names)
        self.num_left = len(sides[0]) if self.kind == "bipartite" else None
        if self.num_nodes < 2 or self.num_left in (0, self.num_nodes):
            raise GraphFormatError(
                f"{self.chosen.place}: {self.num_nodes} node(s)\nexpected two nodes or more"
            )
        order = (
            list(range(len(names)))
            if self._order is None
            else self._order(self.num_nodes, self.num_left)
        )
        place_of = dict(zip(order, range(len(names)), strict=True))
        numbers, start = list[int](), 0
        for ids, side in zip(found, sides, strict=True):  # spaces around an id go as in files
            number = {name: place_of[node] for node, name in enumerate(side, start)}
            numbers += [number.get(name.strip(), -1) for name in ids]
            start += len(side)
        if outside := numbers.count(-1):
            raise GraphFormatError(
                f"{self.chosen.place}: ids of edges that are not among the ids of nodes: {outside:,}\n"
                "expected edges between ids of the node set only\n"
                "add the ids to the node set, or leave their rows out: where (--where)"
            )
        if any(name[0] == "-" for name in names) and self._id_type == "int64":
            raise GraphFormatError(
                f"{self.chosen.place}: an id is below 0\nexpected ids of 0 or more, or text"
            )
        columns = {
            "id": np.array([each for ids in found for each in ids], dtype=object),
            "side": np.repeat(np.arange(len(found)), list(map(len, found))),
            "number": np.array(numbers, dtype=np.int32),
        }
        if self._id_type == "int64":
            columns["id"] = columns["id"].astype(np.int64)
        self.engine.upload("nodes", columns)
        self.names = names if self.num_left is None else names_of_sides(Sides(*sides))

    @property
    def space(self) -> PairSpace:
        """Pairs of nodes that may be linked (public)."""
        return pair_space(self.kind, self.num_nodes, self.num_left)

    def _check_edges(self) -> None:
        """Count edges; refuse a table without edges."""
        pairs = self.pairs()
        edges, repeats, links = self.engine.row(
            pairs.aggregate(
                edges=pairs.count(), repeats=pairs.repeats.sum(), links=pairs.links.sum()
            )
        )
        num_rows = self._rows_total - self._missing
        self.counts = TableCounts(self._rows_total, self._missing, edges, links, num_rows - repeats)
        if not edges:
            raise GraphFormatError(
                f"{self.chosen.place}: no edges\nexpected an edge between two different nodes"
            )

    def summary(self) -> str:
        """Summarize for the owner what was read, with exact counts (private)."""
        counts = self.counts
        repeated = counts.rows - counts.num_missing - counts.loops - counts.links
        dropped = (counts.links - counts.edges) % counts.edges
        names, ends = self.names, self.chosen.columns.ends
        shown_kind = "" if self.kind == "undirected" else f"{self.kind}; "
        note = f", {counts.num_missing:,} without an id" if counts.num_missing else ""
        note += f", edges whose direction is dropped: {dropped:,}" if dropped else ""
        table = "table" if self.chosen.table is None else f"table {self.chosen.table}"
        line = (
            f"read {Path(self.engine.origin).name}: {self.num_nodes:,} nodes, {counts.edges:,} edges "
            f"({shown_kind}{table}; columns {ends[0]!r} and {ends[1]!r}; "
            f"{repeated:,} repeated, {counts.loops:,} loops{note}); e.g. {names[0]}, "
            f"{names[1]}, ..."
        )
        others = ", ".join(self.chosen.columns.others)[:200]
        others = f"; dropped from the edges: {others}" if others else ""
        return line + others

    def pairs(self) -> Any:
        """Return the edges: the table ``edge_pairs`` of numbers ``low`` and ``high``."""
        schema = {"low": "int32", "high": "int32", "repeats": "int32", "links": "int8"}
        return ibis.table(schema, name="edge_pairs")

    def _rows(self) -> Any:
        """Return ``edge_rows``: the rows with both ids."""
        return ibis.table(self._schema, name="edge_rows")

    def numbered_rows(self) -> Any:
        """Return the rows without loops with the numbers of their ends, ``source_number`` and so on."""
        nodes = ibis.table({"id": self._id_type, "side": "int64", "number": "int32"}, name="nodes")
        rows = self._rows()
        for end, side in (("source", 0), ("target", int(self.kind == "bipartite"))):
            ends = nodes.filter(nodes.side == side)
            rows = rows.join(ends.select(**{end: ends.id, f"{end}_number": ends.number}), end)
        return rows.filter(rows.source_number != rows.target_number)


def type_of_ids(place: str, column: str, arrow_type: str) -> str:
    """Return the type of ids in Ibis, given that in Arrow: whole numbers or text.

    Raises:
        GraphFormatError: If it is neither.
    """
    if re.match(r"u?int\d", arrow_type):
        return "int64"
    if arrow_type in ("string", "large_string", "extension<arrow.uuid>"):
        return "string"
    raise GraphFormatError(
        f"{place}: column {column!r} holds {arrow_type[:60]}\n"
        "expected ids that are whole numbers or text\nmake a view that casts it, and read the view"
    )


def _canonical_pairs(numbered: Any, kind: Kind) -> Any:
    """Return each record once, without loops: ``low`` and ``high``, and what was merged.

    ``repeats`` is the number of rows of a record, ``links`` that of their directions.
    """
    low, high = one, other = numbered.source_number, numbered.target_number
    if kind == "undirected":
        low, high = ibis.least(one, other), ibis.greatest(one, other)
    pairs = numbered.select(low=low, high=high, up=ibis.ifelse(one < other, 1, 0).cast("int64"))
    return pairs.group_by(["low", "high"]).aggregate(
        repeats=pairs.count().cast("int32"),
        links=(pairs.up.max() - pairs.up.min() + 1).cast("int8"),
    )
