"""Numbers of a study, read from ``study.yaml`` and ``results.csv``, and Markdown tables of them."""

import csv
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from lightning_dpg.apps.bench.study import SHIPPED_STUDIES, read_benchmark
from lightning_dpg.errors import CommandError, nearest

FOLDER = Path(__file__).parent
# The one in C, which not every platform has, reads a study in a tenth of the time.
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SOURCES = ("measured", "paper", "others")
_STUDY_KEYS = {"title", "question", "commands", "notes", "tables", "figures"}
_TABLE_KEYS = {"title", "caption", "header", "rows", "columns", "bold", "italic", "notes"}
_FIGURE_KEYS = {"caption", "table", "kind", "rows", "columns", "x", "y", "log"}

_TEXTS = {"title", "question", "caption", "header", "notes", "table", "kind", "x", "y"}


class Cell(NamedTuple):
    """One number of a table, as ``results.csv`` has it; its fields are the columns of the file."""

    table: str
    row: str
    column: str
    value: str
    deviation: str
    """Standard deviation over the runs; empty if unknown."""
    runs: str
    source: str
    """``measured``, ``paper`` (printed by the authors) or ``others`` (by others, or with their code)."""
    date: str
    """Day on which the number was recorded."""
    commit: str
    """Commit that recorded the number, or that the number was measured with."""
    machine: str
    seeds: str
    note: str
    """Remarks on the number, separated by semicolons."""

    @property
    def text(self) -> str:
        """The number with the digits that were measured; from 10,000 on with commas."""
        is_long = self.value.isdecimal() and len(self.value) > 4
        return f"{int(self.value):,}" if is_long else self.value


class TableText(NamedTuple):
    """Everything about a table except its numbers."""

    title: str
    caption: str
    header: str
    """Title of the first column, which holds the names of the rows."""
    rows: dict[str, str]
    """Markdown label by name of the row, in order."""
    columns: dict[str, str]
    """Markdown label by name of the column, in order."""
    bold: dict[str, list[str]]
    """Names of the columns whose cells are bold, by row."""
    italic: dict[str, list[str]]
    notes: str


class Study(NamedTuple):
    """Texts and numbers of one study."""

    name: str
    title: str
    question: str
    benchmark: dict[str, Any]
    """Arguments of :func:`lightning_dpg.apps.bench.benchmark`; empty if it was measured otherwise."""
    commands: list[str]
    notes: str
    tables: dict[str, TableText]
    figures: dict[str, dict[str, Any]]
    cells: dict[tuple[str, str, str], Cell]
    """Each number by its table, row and column."""

    def table_cells(self, table: str) -> dict[tuple[str, str], Cell]:
        """Cells of one table by row and column.

        Args:
            table: Name of the table.
        """
        return {
            (cell.row, cell.column): cell for cell in self.cells.values() if cell.table == table
        }


def study_names() -> list[str]:
    """Names of all studies, which are the names of their folders."""
    return sorted(path.parent.name for path in FOLDER.glob("*/study.yaml"))


def read_study(folder: Path) -> Study:
    """Read ``study.yaml`` and ``results.csv``.

    Args:
        folder: Folder of the study.

    Raises:
        CommandError: If one of the files is at fault.
    """
    file = folder / "study.yaml"
    text = yaml.load(file.read_text(encoding="utf-8"), Loader=_LOADER)
    _check_keys(text, _STUDY_KEYS, str(file))
    cells = _read_cells(folder / "results.csv")
    tables = dict(text.get("tables") or {})
    for cell in cells.values():  # a table of a later measurement needs no text
        tables.setdefault(cell.table, {})
    figures = text.get("figures") or {}
    for name, figure in figures.items():
        _check_keys(figure, _FIGURE_KEYS, f"{file}: figures: {name}")
    return Study(
        folder.name,
        text["title"],
        text["question"],
        read_benchmark(folder.name) if folder.name in SHIPPED_STUDIES else {},
        text.get("commands") or [],
        text.get("notes", "").strip(),
        {name: _table_text(file, name, table, cells.values()) for name, table in tables.items()},
        figures,
        cells,
    )


def cell(study: str, table: str, row: str, column: str, deviation: bool = False) -> str:
    """Text of one number.

    Args:
        study: Name of the study, for instance ``links``.
        table: Name of the table in it.
        row: Name of the row.
        column: Name of the column.
        deviation: Whether to give its standard deviation in place of the number.

    Raises:
        CommandError: If there is no such number.
    """
    found = number(study, table, row, column)
    assert found is not None
    return found.deviation if deviation else found.text


def number(study: str, table: str, row: str, column: str, *, is_needed: bool = True) -> Cell | None:
    """One number with all that is known of it.

    Args:
        study: Name of the study, for instance ``links``.
        table: Name of the table in it.
        row: Name of the row.
        column: Name of the column.
        is_needed: Whether its absence is a fault; otherwise it gives None.

    Raises:
        CommandError: If there is no such number, and it is needed.
    """
    found = _read(study).cells
    if is_needed and (table, row, column) not in found:
        known = ["/".join((study, *key)) for key in found]
        name = f"{study}/{table}/{row}/{column}"
        raise CommandError(f"results: no number {name}{nearest(name, known)}")
    return found.get((table, row, column))


def table(study: str, name: str) -> str:
    """Caption, Markdown table and footnotes of one table.

    Args:
        study: Name of the study, for instance ``links``.
        name: Name of the table in it.

    Raises:
        CommandError: If there is no such table.
    """
    found = _read(study)
    if name not in found.tables:
        raise CommandError(f"results: no table {study}/{name}{nearest(name, found.tables)}")
    return render(found, name)


def render(study: Study, name: str) -> str:
    """Caption, Markdown table and footnotes of one table.

    Args:
        study: The study.
        name: Name of the table in it.
    """
    text, cells = study.tables[name], study.table_cells(name)
    marks, footnotes = _footnotes(text, cells)
    lines = [
        f"| {' | '.join([text.header, *text.columns.values()])} |",
        f"|{'---|' * (1 + len(text.columns))}",
    ]
    for row, label in text.rows.items():
        mine = [cells[row, column] for column in text.columns if (row, column) in cells]
        is_foreign = all(cell.source != "measured" for cell in mine)
        shown = f"*{label}*" if is_foreign and "*" not in label else label
        values = [_shown(text, cells.get((row, column)), marks) for column in text.columns]
        lines.append(f"| {' | '.join([shown + marks.get((row, ''), ''), *values])} |")
    if any(cell.source != "measured" for cell in cells.values()):
        italic = "Italic numbers are printed in a paper, or measured by others or with their code."
        footnotes = [italic, *footnotes]
    blocks = [text.caption, "\n".join(lines), "  \n".join(footnotes)]
    return "\n\n".join(block for block in blocks if block)


def _shown(text: TableText, cell: Cell | None, marks: Mapping[tuple[str, str], str]) -> str:
    if cell is None:
        return ""
    number = cell.text + (f" ± {cell.deviation}" if cell.deviation else "")
    if cell.column in text.bold.get(cell.row, []):
        number = f"**{number}**"
    if cell.source != "measured" or cell.column in text.italic.get(cell.row, []):
        number = f"*{number}*"
    return number + marks.get((cell.row, cell.column), "")


def _footnotes(
    text: TableText, cells: Mapping[tuple[str, str], Cell]
) -> tuple[dict[tuple[str, str], str], list[str]]:
    """Marks of cells (of a row, under an empty column), and the lines that explain them.

    A semicolon separates the notes of a cell. What all cells of a table share has no mark, and what
    all cells of a row share is marked at its label.
    """
    own = {key: cell for key, cell in cells.items() if cell.source == "measured"}
    foreign = {cell.row for cell in cells.values()} - {cell.row for cell in own.values()}
    parts = {key: _parts(cell) for key, cell in cells.items()}
    common = _shared([parts[key] for key in own])
    marks: dict[tuple[str, str], list[str]] = {}
    lines: dict[str, str] = {}
    for row in text.rows:
        mine = {key: found for key, found in parts.items() if key[0] == row}
        of_row = _shared([found for key, found in mine.items() if key in own or row in foreign])
        for key, found in [((row, ""), of_row), *mine.items()]:
            for note in found:
                if note not in common and (key[1] == "" or note not in of_row):
                    mark = lines.setdefault(note, str(len(lines) + 1))
                    marks.setdefault(key, []).append(mark)
    explained = [f"<sup>{mark}</sup> {note}." for note, mark in lines.items()]
    return (
        {key: f"<sup>{' '.join(found)}</sup>" for key, found in marks.items()},
        [*(f"{note[:1].upper()}{note[1:]}." for note in common), *explained],
    )


def _parts(cell: Cell) -> list[str]:
    return [part.strip() for part in cell.note.split(";") if part.strip()]


def _shared(notes: list[list[str]]) -> list[str]:
    """Notes that are in all lists."""
    return [note for note in notes[0] if all(note in others for others in notes)] if notes else []


@cache
def _read(study: str) -> Study:
    if study not in study_names():
        raise CommandError(f"results: no study {study}{nearest(study, study_names())}")
    return read_study(FOLDER / study)


def _read_cells(file: Path) -> dict[tuple[str, str, str], Cell]:
    cells: dict[tuple[str, str, str], Cell] = {}
    with file.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines, strict=True)
        if tuple(reader.fieldnames or ()) != Cell._fields:
            raise CommandError(f"{file}: the first line must be {','.join(Cell._fields)}")
        for fields in reader:
            place = f"{file}, line {reader.line_num}"
            if None in fields or None in fields.values():
                raise CommandError(f"{place}: not {len(Cell._fields)} fields")
            cell = Cell(**fields)
            _check_cell(cell, place)
            if cells.setdefault(cell[:3], cell) is not cell:
                raise CommandError(f"{place}: a second number of {'/'.join(cell[:3])}")
    return cells


def _check_cell(cell: Cell, place: str) -> None:
    for name in ("value", "deviation", "runs"):
        text = getattr(cell, name)
        try:
            float(text or (0 if name != "value" else ""))
        except ValueError:
            raise CommandError(f"{place}: {name} {text!r} is not a number") from None
    if cell.source not in SOURCES:
        raise CommandError(f"{place}: source {cell.source!r} is none of {', '.join(SOURCES)}")
    if not all(cell[:3]) or any("/" in name for name in cell[:3]):
        raise CommandError(f"{place}: table, row and column need names, without /")


def _table_text(file: Path, name: str, text: dict[str, Any], cells: Iterable[Cell]) -> TableText:
    place = f"{file}: tables: {name}"
    _check_keys(text, _TABLE_KEYS, place)
    mine = [cell for cell in cells if cell.table == name]
    labels = {}
    for which in ("row", "column"):
        there = dict.fromkeys(getattr(cell, which) for cell in mine)
        given = text.get(f"{which}s") or list(there)
        given = given if isinstance(given, dict) else dict.fromkeys(given)
        labels[which] = {str(key): str(label or key) for key, label in given.items()}
        if wrong := sorted(set(labels[which]) ^ set(there)):
            raise CommandError(
                f"{place}: {which} {wrong[0]!r} is in one of study.yaml and results.csv alone"
            )
    styles = {}
    for which in ("bold", "italic"):
        given = text.get(which) or {}
        styles[which] = {str(row): [str(c) for c in columns] for row, columns in given.items()}
        keys = {(row, column) for row, columns in styles[which].items() for column in columns}
        if wrong := sorted(keys - {(cell.row, cell.column) for cell in mine}):
            raise CommandError(f"{place}: {which}: no number {'/'.join(wrong[0])}")
    return TableText(
        text.get("title", name.replace("_", " ").capitalize()),
        str(text.get("caption", name)).strip(),
        text.get("header", ""),
        labels["row"],
        labels["column"],
        styles["bold"],
        styles["italic"],
        text.get("notes", "").strip(),
    )


def _check_keys(text: Any, known: set[str], place: str) -> None:
    if not isinstance(text, dict):
        raise CommandError(f"{place}: not a mapping of {', '.join(sorted(known))}")
    for key, value in text.items():
        if key not in known:
            raise CommandError(f"{place}: no key {key!r}{nearest(str(key), known)}")
        if key in _TEXTS and not isinstance(value, str):  # YAML takes `on` and `5` for no text
            raise CommandError(f"{place}: {key}: {value!r} is no text; put it into quotes")
