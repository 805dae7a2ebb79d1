"""Public nodes of a graph in a table: ids and attributes in other tables of its database, or in files."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from lightning_dpg.datamodules.table_engine import TableEngine, nearest
from lightning_dpg.formats.attribute_tables import attributes_of_arrow
from lightning_dpg.formats.node_lists import given_names
from lightning_dpg.graph.attributes import AttributeTable
from lightning_dpg.graph.node_names import GraphFormatError

_FILES = (".csv", ".tsv", ".txt", ".gz", ".parquet")
_QUOTED = r'"(?:[^"]|"")+"|`[^`]+`'
"""A name in double quotes, or in backticks as on Spark."""


class ColumnOfIds(NamedTuple):
    """A column of public ids, written as ``table(column)``."""

    table: str
    column: str


def column_of_ids(text: object) -> ColumnOfIds | None:
    """Read ``table(column)``, where both names may stand in quotes; None for files and other objects."""
    if not isinstance(text, str) or text.lower().endswith(_FILES):
        return None
    match = re.fullmatch(rf"\s*((?:{_QUOTED}|[^()])+?)\s*\(\s*({_QUOTED}|[^()]+?)\s*\)\s*", text)
    if match is None:
        raise GraphFormatError(
            f"nodes {text!r}\nexpected a table and its column of ids, such as customers(id) or "
            'customers("Customer Id")\nor a file, such as customers.csv'
        )
    column = match[2]
    if re.fullmatch(_QUOTED, column):
        column = column[1:-1].replace('""', '"') if column[0] == '"' else column[1:-1]
    return ColumnOfIds(match[1], column)


def ids_of_nodes(engine: TableEngine, ids: Any, column: str | None) -> list[str]:
    """Read ids from a table of the database or from a file.

    Args:
        engine: Engine of the edges.
        ids: ``TABLE(COLUMN)``, a file of ids, ``FILE(COLUMN)``, or the ids.
        column: Column of ids in a file that is named alone.
    """
    place = column_of_ids(ids)
    if place is None:
        return given_names(ids, column)
    if place.table.lower().endswith(_FILES):
        return given_names(*place)
    relation, names = _opened(engine, place, "ids, such as customers.parquet(id)")
    if place.column not in names:
        raise GraphFormatError(
            f"nodes: {place.table} has no column {place.column!r}\n{nearest(place.column, names)}"
        )
    found = engine.arrow(f"SELECT DISTINCT {engine.column(place.column)} FROM {relation}")
    cells = found.column(0).to_pylist()
    if any(isinstance(cell, float | bool) for cell in cells):
        raise GraphFormatError(
            f"nodes: {place.table}({place.column}) holds {found.schema[0].type}\n"
            "expected ids that are whole numbers or text"
        )
    return given_names("" if cell is None else cell for cell in cells)


def attributes_there(
    engine: TableEngine, place: ColumnOfIds, names: Sequence[str] | None = None
) -> AttributeTable:
    """Read the public attributes of the nodes from a table of the database.

    Args:
        engine: Its engine.
        place: The table.
        names: Columns beside the ids that are read, as far as they are there; all by default.
    """
    relation, there = _opened(engine, place, "attributes, such as people.parquet")
    read = there if names is None else [name for name in there if name in (place.column, *names)]
    rows = engine.arrow(f"SELECT {', '.join(map(engine.column, read))} FROM {relation}")
    return attributes_of_arrow(rows, f"{engine.origin}: {place.table}", place.column)


def _opened(engine: TableEngine, place: ColumnOfIds, file: str) -> tuple[str, list[str]]:
    """Return a second table of the database in SQL, and the names of its columns."""
    if engine.relation is not None:
        raise GraphFormatError(
            f"nodes {place.table}({place.column}): {engine.origin} has no second table\n"
            f"give a file of {file}, or put both tables into a database"
        )
    relation = engine.table(place.table)
    return relation, list(engine.columns(relation, place.table))


def is_of_edges(edges: str, engine: TableEngine, *ids: object) -> bool:
    """Return whether ids are a column of the edges themselves, which is no list beside them.

    Args:
        edges: Table of the edges in SQL.
        engine: Its engine.
        ids: What the settings name as ids.
    """
    places = [place for place in map(column_of_ids, ids) if place is not None]
    tables = [
        engine.table(place.table).casefold()
        for place in places
        if not place.table.lower().endswith(_FILES)
    ]
    ends = edges.casefold()
    return any(ends.endswith(each) or each.endswith(ends) for each in tables)
