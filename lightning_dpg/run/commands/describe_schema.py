"""``describe-schema``: a draft of a schema from the names of tables and columns, to fill in."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import Outcome

_HEAD = """\
# A draft, made of the names of tables and columns and of no value. Complete it:
# nodes      a section for each table of things that are public, such as persons or accounts
#   private  all values of each column from public knowledge, as borders of bins or as categories:
#            {age: [18, 30, 60, 100], region: [north, south]}. Delete the columns that you do not need;
#            those that are public: public: [region]
# relations  a section for each table whose rows link two nodes; these rows are protected
#   between  kinds of nodes of both keys; TABLE where no name shows it
#   amount_max, window   largest amount that counts, first and last day: from public knowledge
#   a row may be in one kind only: of a table with several keys keep two, or make a table of each kind
#   exactly_one          the kind of nodes of which each has one such relation, as an account its owner
"""
_FILES = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
_VALUES = {
    ("amount", "amount_max"): r"(amount|price|value|sum|total) |.* (numeric|decimal|double|float)",
    ("time", "window"): r"(time|date|day|at|timestamp) |.* (date|timestamp)",
}
"""Columns of amounts and times by their last word, or by their type behind it."""


def describe_schema(source: str, *, out: Path = Path("schema.yaml")) -> Outcome:
    """Write a draft of the schema of a database, for you to fill in.

    It reads the names and types of columns only: a column is taken for a key if its name is that of a
    table, as person_id is of persons. Values of private columns, bounds of amounts and days are for
    you to write, from public knowledge. A fit refuses the file until they are there.

    Args:
        source: Folder of CSV, TSV or Parquet files, duckdb:///FILE or postgresql://USER@HOST/DATABASE.
        out: New file of the schema.

    Example:
        python -m lightning_dpg describe-schema tables --out schema.yaml
    """
    if out.exists():
        raise CommandError(f"{out}: it is there already\ngive another file: --out NAME.yaml")
    tables = dict(_of_database(source) if "://" in source else _of_folder(Path(source), out.parent))
    if not tables:
        raise CommandError(f"{source}: no tables\nexpected files of .csv, .tsv or .parquet")
    ids = {table: _id_of(table, [*columns]) for table, columns in tables.items()}
    kinds = [_kind(table) for table in tables if ids[table]]
    keys = {table: _keys([*columns], kinds, ids[table]) for table, columns in tables.items()}
    meant = {kind for found in keys.values() for kind in found.values()}
    nodes, relations, notes = dict[str, Any](), dict[str, Any](), ""
    for table, columns in tables.items():
        kind, own, found = _kind(table), ids[table], keys[table]
        others = [name for name in columns if name != own and name not in found]
        if own and (kind in meant or len(found) < 2):
            nodes[kind] = {"table": table, "id": own, "private": {name: [] for name in others}}
            for key, other in found.items():
                ends = {"between": [kind, other], "keys": [own, key]}
                relations[f"{kind}_{key}"] = {"table": table, **ends}
        elif len(found) > 1:
            section: dict[str, Any] = {"between": [*found.values()][:2], "keys": [*found][:2]}
            for words, form in _VALUES.items():
                shown = [name for name in others if re.match(form, columns[name])][:1]
                section |= dict(zip(words, [*shown, None], strict=False)) if shown else {}
            relations[_name(table)] = {"table": table, **section}
        else:
            notes += (
                f"# {table}: no known names of columns; header: [id, ...] names those of a file\n"
            )
    content: dict[str, Any] = {"source": source} if "://" in source else {}
    content |= {"nodes": nodes, "relations": relations}
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, default_flow_style=None)
    out.write_text(_HEAD + notes + text, encoding="utf-8")
    said = f"a draft of {len(nodes)} kinds of nodes and {len(relations)} of relations: complete it"
    return Outcome([f"{out}: {said}"], {"file": out, "nodes": [*nodes], "relations": [*relations]})


def _of_folder(folder: Path, beside: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the path of each table, and its columns with their last word and their type."""
    # Start-up time: a file that is there already is refused before pyarrow is imported.
    from pyarrow import parquet

    # Start-up time: likewise.
    from lightning_dpg.formats.edge_columns import column_names

    if not folder.is_dir():
        raise CommandError(f"{folder}: no folder\nexpected a folder of tables, or duckdb:///FILE")
    for path in sorted(path for path in folder.iterdir() if path.name.endswith(_FILES)):
        if path.suffix == ".parquet":
            types = {field.name: str(field.type) for field in parquet.read_schema(path)}
        else:
            types = dict.fromkeys(column_names(path), "")
        yield os.path.relpath(path, beside), _described(types)


def _of_database(url: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the tables of a database and their columns from its catalog, likewise."""
    # Start-up time: only databases need their drivers.
    from lightning_dpg.datamodules.table_source import open_engine

    engine = open_engine(url)
    for table in engine.tables():
        name = table.rpartition(".")[2].strip('"').replace("'", "''")
        rows = engine.arrow(
            "SELECT column_name::text AS name, data_type::text AS type FROM "
            f"information_schema.columns WHERE table_name = '{name}' ORDER BY ordinal_position"
        )
        yield table, _described({row["name"]: row["type"].lower() for row in rows.to_pylist()})


def _described(types: Mapping[str, str]) -> dict[str, str]:
    return {name: f"{''.join(_words(name)[-1:])} {kind}" for name, kind in types.items()}


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)]


def _name(table: str) -> str:
    """Return the name of a table without folder, schema and suffix."""
    stem = (
        Path(table).name.partition(".")[0] if table.endswith(_FILES) else table.rpartition(".")[2]
    )
    return re.sub(r"\W", "_", stem.strip('"')).lower()


def _kind(table: str) -> str:
    """Return the name of one row: person for persons, company for companies."""
    return re.sub(r"(?<=[^s])s$", "", re.sub(r"ies$", "y", _name(table)))


def _id_of(table: str, names: Sequence[str]) -> str:
    """Return the column of ids by its name; empty without one, or where the first row has no names."""
    # Start-up time: see above.
    from lightning_dpg.formats.node_lists import place_of_ids

    own, place = (_kind(table), f"{_kind(table)}id", f"{_name(table)}id"), place_of_ids(names)
    found = [name for name in names if name.lower().replace("_", "") in own]
    return [*found, "" if place is None else names[place]][0]


def _keys(names: Sequence[str], kinds: Sequence[str], own: str) -> dict[str, str]:
    """Return the kind of nodes of each column that is named like one, or like an end of a payment."""
    # Start-up time: see above.
    from lightning_dpg.formats.edge_columns import recognized_header

    found = {name: kind for name in names if name != own for kind in kinds if kind in _words(name)}
    ends = [names[place] for place in recognized_header(names) or ()]
    return found or dict.fromkeys(ends, "TABLE")
