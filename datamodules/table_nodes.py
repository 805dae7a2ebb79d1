"""Public nodes of a graph in a table: ids and attributes in other tables of its database, or in files."""

import re
from collections.abc import Mapping
from pathlib import Path

from lightning_dpg.datamodules.node_attributes import FROM_GRAPH, AttributeSource, attribute_table
from lightning_dpg.datamodules.table_engine import TableEngine
from lightning_dpg.datamodules.table_records import ColumnOfIds, IdsOfNodes
from lightning_dpg.formats.attribute_tables import attributes_of_arrow
from lightning_dpg.graph.attributes import AttributeTable
from lightning_dpg.graph.node_names import GraphFormatError, given_names

_FILES = (".csv", ".tsv", ".txt", ".gz", ".parquet")
_QUOTED = r'"(?:[^"]|"")+"|`[^`]+`'
"""A name in double quotes, or in backticks as on Spark."""


def ids_of_nodes(ids: object, column: str | None) -> IdsOfNodes:
    """Name the column of ids in a database, or read the ids from a file.

    Args:
        ids: ``TABLE(COLUMN)``, a file of ids, ``FILE(COLUMN)``, or the ids.
        column: Column of ids in a file that is named alone.
    """
    if not isinstance(ids, str | Path):
        return given_names(ids)  # type: ignore[arg-type]
    if _is_file(str(ids)):
        return given_names(ids, column)
    place = _column_of_ids(str(ids))
    return given_names(*place) if _is_file(place.table) else place


def attributes_beside(
    engine: TableEngine,
    source: AttributeSource | None,
    policy: Mapping[str, str] | None,
    id_column: str | None,
) -> tuple[AttributeTable, IdsOfNodes] | None:
    """Read the public attributes of the nodes, and their ids; None if there are none.

    Args:
        engine: Engine of the edges.
        source: File, DataFrame, or ``TABLE(COLUMN)`` of the same database.
        policy: Policies of the attributes, if there are any.
        id_column: Column of ids in a file.
    """
    if isinstance(source, str) and source == FROM_GRAPH:
        raise GraphFormatError(
            f"nodes.attributes: {FROM_GRAPH}, and a table of edges holds no attributes of nodes\n"
            "give their table: --attributes people.parquet, or 'customers(id)' of the same database"
        )
    if not isinstance(source, str) or _is_file(source):
        read = attribute_table(source, policy, id_column)
        return None if read is None else (read, read.ids)
    place = _column_of_ids(source)
    if engine.relation is not None:
        raise GraphFormatError(
            f"nodes.attributes {source}: {engine.origin} has no second table\n"
            "give a file of attributes, such as people.parquet"
        )
    relation = engine.table(place.table)
    engine.columns(relation, place.table)
    rows = engine.arrow(f"SELECT * FROM {relation}")
    return attributes_of_arrow(rows, f"{engine.origin}: {place.table}", place.column), place


def _is_file(name: str) -> bool:
    return name.lower().endswith(_FILES)


def _column_of_ids(text: str) -> ColumnOfIds:
    """Read ``table(column)``, where both names may stand in quotes."""
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
