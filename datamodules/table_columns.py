"""Columns of ids in tables."""

from collections.abc import Sequence
from typing import NamedTuple

from lightning_dpg.datamodules.table_engine import nearest
from lightning_dpg.graph.edge_columns import recognized_header, shown
from lightning_dpg.graph.node_names import GraphFormatError

_NAME_COLUMNS = (
    "name the columns: source_column and target_column\n"
    "(--data.source_column NAME --data.target_column NAME)"
)


class ColumnOfIds(NamedTuple):
    """A column of public ids, written as ``table(column)``."""

    table: str
    column: str


def chosen_columns(
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


def kind_of_ids(origin: str, column: str, arrow_type: str) -> str:
    """Return the form of ids of a type of Arrow: whole numbers or text."""
    if arrow_type.startswith(("int", "uint")):
        return "int64"
    is_text = "string" in arrow_type or "uuid" in arrow_type or arrow_type.startswith("decimal128")
    is_nested = "<" in arrow_type and not arrow_type.startswith(("dictionary", "extension"))
    if is_text and not is_nested:
        return "string"
    raise GraphFormatError(
        f"{origin}: column {column!r} holds {arrow_type}\n"
        "expected ids that are whole numbers or text\nmake a view that casts it, and read the view"
    )
