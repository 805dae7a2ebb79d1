"""Schemas of databases: tables of nodes and of relations, checked before any is opened. It needs no PyTorch."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import yaml

from lightning_dpg.errors import Refusal, nearest
from lightning_dpg.formats.columns import Columns
from lightning_dpg.graph.kind import Kind
from lightning_dpg.graph.node_names import GraphFormatError, user_path

_LIST: Any = list | tuple
FILES = (".csv", ".tsv", ".txt", ".gz", ".parquet")
_TABLE = {
    "table": (object, "a file, or a table of the source"),
    "header": (_LIST, "the names of all columns, of a text file without them"),
}
_TOP = {
    "nodes": (Mapping, "nodes: {person: {table: persons.csv, id: id}}"),
    "relations": (Mapping, "relations: {owns: {table: FILE, between: ..., keys: ...}}"),
    "source": (str, "duckdb:///FILE or postgresql://USER@HOST/DATABASE"),
    "names": (("numbers", "ids"), "numbers or ids"),
}
_NODES = {
    **_TABLE,
    "id": (str | int, "the column of the ids"),
    "private": (Mapping, "private columns with all their values: {age: [0, 30, 60, 100]}"),
    "public": (_LIST | Mapping, "the names of public columns: [region]"),
}
_IDS = {"ids": (_LIST, "a list of all ids, without a table")}
_VALUES = {"amount": "weight", "amount_max": "weight_max", "time": "time", "window": "time_window"}
_TEXTS = ("time_format", "time_zone", "decimal", "thousands", "separator")
_RELATIONS = {
    **_TABLE,
    "between": (2, "two kinds of nodes: [person, account]"),
    "keys": (2, "two columns: [person_id, account_id]"),
    "directed": (bool, "true or false"),
    "where": (str, "a condition in SQL: kind = 'O'"),
    "unit": (("relation", "transfer"), "relation or transfer"),
    "exactly_one": (str, "the kind of nodes of which each has exactly one relation"),
    **dict.fromkeys(("amount", "time"), (str | int, "a column")),
    "amount_max": (int | float, "the largest amount that counts: 500"),
    "window": (_LIST | str, "the first and the last day: [2026-01-01, 2026-06-30]"),
    **dict.fromkeys(_TEXTS, (str, "a text in quotes")),
}
_WORDS = {
    r" ?\(--[^)]*\)|; the rows of nodes\.attributes(.|\n)*": "",
    r"columns\.weight_max": "amount_max",
    r"columns\.time_window": "window",
    r"columns\.source and columns\.target": "keys",
    r"columns\.weight": "amount",
    r"nodes\.(domains|private_columns)": "private",
    r"nodes\.left (and|or) nodes\.right": "its table of nodes",
    r"nodes\.column": "id",
    r"columns\.": "",
}
"""Words of a schema for the settings in messages of readers."""
_PLAIN = (str, list, dict, type(None))
NODES_ARE_PUBLIC = (
    "nodes are public here: that a row of their table exists is no secret that a method protects"
)


class NodeTable(NamedTuple):
    """Table of one kind of nodes, whose ids are public.

    Attributes:
        table: Path, name of a table of the source, or a table of Python; None beside ``ids``.
        id: Column of the ids.
        header: Names of all columns of a text file without them.
        private: Values of each private column (public).
        public: Policy of each public column; columns that are not named are left out.
        ids: All ids, if they have no table.
    """

    table: Any
    id: str
    header: list[str] | None
    private: Mapping[str, Sequence[object]]
    public: Mapping[str, Any]
    ids: Sequence[object] = ()


class RelationTable(NamedTuple):
    """Table of one kind of relations (private), a row each.

    Attributes:
        table: Path, name of a table of the source, or a table of Python.
        header: Names of all columns of a text file without them.
        between: Kinds of nodes of both ends.
        kind: Kind of the graph: ``bipartite`` between two tables of nodes.
        columns: Columns of keys, amounts and times.
        where: Condition in SQL that a row must fulfill (public).
        unit: What is protected where a relation has several rows.
        names: Names of the columns of both keys, of the amounts and of the times, as far as there are
            any, by the words of the schema.
        exactly_one: Kind of nodes of which each has exactly one relation (public); None without one.
    """

    table: Any
    header: list[str] | None
    between: tuple[str, str]
    kind: Kind
    columns: Columns
    where: str | None
    unit: Literal["relation", "transfer"]
    names: Mapping[str, Any]
    exactly_one: str | None


class Schema(NamedTuple):
    """Tables of a database, and what is public of them.

    Attributes:
        origin: Name of the schema for errors.
        source: Database of the tables; None for files and tables of Python.
        names: Whether ``numbers`` in a secret order are published in place of the ``ids``.
        nodes: Tables of nodes by their names.
        relations: Tables of relations by their names, in the order of the fits.
    """

    origin: str
    source: str | None
    names: Literal["numbers", "ids"]
    nodes: dict[str, NodeTable]
    relations: dict[str, RelationTable]


def read_schema(schema: str | Path | Mapping[str, Any]) -> Schema:
    """Read a schema; no table is opened.

    Args:
        schema: YAML file, to which paths in it are relative, or its content.

    Raises:
        GraphFormatError: If it cannot be read, or contradicts itself.
    """
    if isinstance(schema, Mapping):
        return _read("schema", Path(), schema)
    path = user_path(schema)
    try:
        return _read(str(path), path.parent, yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0][:80]
        _refuse(str(path), reason, "expected a schema in YAML, as describe-schema drafts it")


def in_schema_words(place: str, error: Refusal) -> GraphFormatError:
    """Return an error of a reader with its place in the schema, and in the words of schemas."""
    text = str(error)
    for pattern, word in _WORDS.items():
        text = re.sub(pattern, word, text)
    lines = [line for line in text.splitlines() if line.strip()]
    return GraphFormatError(f"{place}: " + "\n".join(lines[:5]))


def _read(origin: str, folder: Path, content: object) -> Schema:
    """Check all sections of a schema whose paths are relative to a folder."""
    top = _section(origin, content, _TOP, ("nodes", "relations"))
    source = top.get("source")
    if source is not None and (source.endswith(".duckdb") or source.startswith("duckdb:")):
        file = user_path(re.sub("^duckdb:///?", "", source))
        source = f"duckdb:///{folder.absolute() / file}"
    names = [str(name).casefold() for name in (*top["nodes"], *top["relations"])]
    for name in names:
        if names.count(name) > 1 or not re.fullmatch(r"[a-z]\w*", name, re.ASCII):
            way = "expected letters, digits and _, and another name for each table"
            _refuse(origin, f"{name!r} is no name, or that of two tables", way)

    def located(table: Any) -> Any:
        """Return the path of a file; other tables as they are."""
        in_source = source is not None and not str(table).lower().endswith(FILES)
        is_path = isinstance(table, str | Path) and not in_source
        return (folder / user_path(table)).resolve() if is_path else table

    nodes = {
        name: _nodes(f"{origin}: nodes.{name}", each, located)
        for name, each in top["nodes"].items()
    }
    relations = {
        name: _relation(f"{origin}: relations.{name}", each, nodes, located)
        for name, each in top["relations"].items()
    }
    read = Schema(origin, source, top.get("names", "numbers"), nodes, relations)
    _refuse_shared(read)
    return read


def _nodes(place: str, given: object, located: Callable[[Any], Any]) -> NodeTable:
    if isinstance(given, Mapping) and isinstance(given.get("private"), bool):
        way = "leave private out, or name private columns of them: private: {age: [0, 30, 60, 100]}"
        _refuse(place, NODES_ARE_PUBLIC, way)
    if isinstance(given, Mapping) and "ids" in given:
        ids = _section(place, given, _IDS, ("ids",))["ids"]
        return NodeTable(None, "id", None, {}, {}, ids)
    section = _section(place, given, _NODES, ("table", "id"))
    parts = [section.get("private", {}), section.get("public", {})]
    if not isinstance(parts[1], Mapping):
        parts[1] = {str(name): "public" for name in parts[1]}
    private, public = ({str(name): value for name, value in part.items()} for part in parts)
    if both := [column for column in public if column in private]:
        _refuse(f"{place}.public", f"{both[0]!r} is private", "name it in one of both")
    table = located(section["table"])
    return NodeTable(table, str(section["id"]), _header(section), private, public)


def _relation(
    place: str, given: object, nodes: Mapping[str, NodeTable], located: Callable[[Any], Any]
) -> RelationTable:
    section = _section(place, given, _RELATIONS, ("table", "between", "keys"))
    (one, other), keys = map(str, section["between"]), section["keys"]
    for node in (one, other):
        if node not in nodes:
            problem = f"{node!r} is no kind of nodes{nearest(node, nodes)}"
            _refuse(f"{place}.between", problem, f"expected two of {', '.join(nodes)}")
    if keys[0] == keys[1]:
        _refuse(f"{place}.keys", f"{keys[0]!r} twice", "expected two different columns")
    if "directed" in section and one != other:
        _refuse(f"{place}.directed", f"relations of {one} and {other} have sides", "leave it out")
    settings = {"source": keys[0], "target": keys[1], "missing_ids": "drop"}
    for word in section.keys() & {*_VALUES, *_TEXTS}:
        settings[_VALUES.get(word, word)] = section[word]
    try:
        columns = Columns(**settings).completed({})
    except Refusal as error:
        raise in_schema_words(place, error) from None
    within: Kind = "directed" if section.get("directed", True) else "undirected"
    kind: Kind = within if one == other else "bipartite"
    unit, where, table = section.get("unit", "relation"), section.get("where"), section["table"]
    single = section.get("exactly_one")
    if single is not None and (single not in (one, other) or one == other):
        way = "leave it out" if one == other else f"expected {one} or {other}"
        _refuse(f"{place}.exactly_one", f"{single!r} is not one of two sides", way)
    if single is not None and columns.values:
        way = "leave exactly_one out, or the amounts and times"
        _refuse(f"{place}.exactly_one", "a relation with transfers may have several rows", way)
    names = {"keys": [*keys]} | {word: section.get(word) for word in ("amount", "time")}
    return RelationTable(
        located(table), _header(section), (one, other), kind, columns, where, unit, names, single
    )


def _header(section: Mapping[str, Any]) -> list[str] | None:
    return [str(name) for name in section["header"]] if "header" in section else None


def _section(
    place: str, given: object, words: Mapping[str, tuple[Any, str]], needed: Iterable[str]
) -> dict[str, Any]:
    """Check the words of a section and the form of their values; leave out what is empty."""
    if not isinstance(given, Mapping):
        _refuse(place, "no section", f"expected {', '.join(words)}")
    plain = {word: value for word, value in given.items() if isinstance(value, _PLAIN)}
    section = {word: value for word, value in given.items() if plain.get(word, True)}
    for word, value in section.items():
        if word not in words:
            problem = f"{word!r} is unknown{nearest(str(word), words)}"
            _refuse(place, problem, f"expected {', '.join(words)}")
        form, expected = words[word]
        if isinstance(form, int):
            is_right = isinstance(value, _LIST) and len(value) == form
        else:
            is_right = value in form if isinstance(form, tuple) else isinstance(value, form)
        if not is_right:
            _refuse(f"{place}: {word}", f"{str(value)[:40]!r} is not right", f"expected {expected}")
    for word in needed:
        if word not in section:
            _refuse(place, f"{word} is missing", f"expected {words[word][1]}")
    return section


def _refuse_shared(schema: Schema) -> None:
    """Refuse tables that no relation uses, and rows that may be in two kinds: their cost adds up."""
    nodes, relations, place = schema.nodes, schema.relations, schema.origin
    used = {node for each in relations.values() for node in each.between}
    if alone := [name for name in nodes if name not in used]:
        _refuse(f"{place}: nodes.{alone[0]}", "no relation has such nodes", "leave it out")
    for one, other in combinations(nodes, 2):
        if _is_same(nodes[one].table, nodes[other].table):
            way = f"use {one} in its place, or make two tables of them"
            _refuse(f"{place}: nodes.{other}", f"its table is that of nodes.{one}", way)
    for one, other in combinations(relations, 2):
        first, second = relations[one], relations[other]
        if _is_same(first.table, second.table) and not _are_apart(first.where, second.where):
            problem = f"a row may be in relations.{one} as well, and would cost the epsilon of both"
            way = (
                "part the rows by one column of words: where: kind = 'O', and where: kind = 'D'\n"
                "or, if each of both is a secret of its own, make a table or a view of each"
            )
            _refuse(f"{place}: relations.{other}", problem, way)


def _is_same(table: Any, other: Any) -> bool:
    """Return whether two tables are one; that others have no row in common is up to their owner."""
    names = [str(each).casefold() for each in (table, other) if isinstance(each, str | Path)]
    return names[0] == names[1] if len(names) == 2 else table is other is not None


def _are_apart(where: str | None, other: str | None) -> bool:
    """Return whether no row can fulfill both conditions: one column equals two words."""
    # A database may take all of these for true or for false, and O for o.
    odd = "true|yes|on|t|y|false|no|off|f|n"
    form = rf"(?i:\s*(\w+)\s*=\s*'(?!(?:{odd})')([a-z]+)'\s*)"
    one, two = (re.fullmatch(form, each or "") for each in (where, other))
    if one is None or two is None or one[1].casefold() != two[1].casefold():
        return False
    return one[2].casefold() != two[2].casefold()


def _refuse(place: str, problem: str, way: str) -> NoReturn:
    raise GraphFormatError(f"{place}: {problem}\n{way}")
