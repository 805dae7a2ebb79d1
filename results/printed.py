"""Printed rows of the five papers beside the numbers of the studies: the pages in ``results/papers/``.

``papers/printed.csv`` lists every row that a paper prints, with its numbers. ``papers/PAPER.yaml``
names for each of them the rows of studies that answer it, or says why there is none.
"""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from lightning_dpg.errors import CommandError
from results.tables import FOLDER, Cell, number

PAPERS = FOLDER / "papers"
KINDS = {
    "ours": "ours",
    "published": "ours, as printed",
    "corrected": "ours, corrected",
    "simple": "best simple method",
}
"""Kinds of answers to a printed row, and how a page names them."""
_KEYS = {"cells", "name", "epsilon"}


class PrintedTable(NamedTuple):
    """One printed table and what answers its rows."""

    text: dict[str, Any]
    """Texts of ``PAPER.yaml``: caption, columns, notes, and rows by name."""
    columns: list[str]
    rows: dict[str, dict[str, str]]
    """Printed numbers by row and column; empty where a figure prints none."""


def read_paper(name: str) -> tuple[dict[str, Any], dict[str, PrintedTable]]:
    """Texts of a paper, and its printed tables by name.

    Args:
        name: Name of the paper, for instance ``zheng2021``.

    Raises:
        CommandError: If a row is in one of the two files alone, or has neither number nor reason.
    """
    file = PAPERS / f"{name}.yaml"
    text = yaml.safe_load(file.read_text(encoding="utf-8"))
    tables: dict[str, PrintedTable] = {}
    with (PAPERS / "printed.csv").open(newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            if line["paper"] == name:
                own = text["tables"].get(line["table"], {"rows": {}})
                columns = [*own.get("columns", {})]
                table = tables.setdefault(line["table"], PrintedTable(own, columns, {}))
                row = table.rows.setdefault(line["row"], {})
                if line["column"]:
                    row[line["column"]] = _with_deviation(line["value"], line["deviation"])
                    if line["column"] not in table.columns:
                        raise CommandError(f"{file}: {line['table']}: no column {line['column']!r}")
    for title, table in tables.items():
        answers = table.text["rows"]
        if wrong := sorted({*answers} ^ {*table.rows}):
            raise CommandError(f"{file}: {title}: {wrong[0]!r} is in one of the two files alone")
        for row, answer in answers.items():
            kinds = {kind for kind in KINDS if kind in answer}
            if {*answer} - kinds - {"why"} or not answer:
                raise CommandError(f"{file}: {title}: {row}: needs {', '.join(KINDS)} or why")
    if wrong := sorted({*text["tables"]} - {*tables}):
        raise CommandError(f"{file}: {wrong[0]!r} is no table of printed.csv")
    return text, tables


def paper_names() -> list[str]:
    """Names of the papers, in the order of ``printed.csv``."""
    with (PAPERS / "printed.csv").open(newline="", encoding="utf-8") as lines:
        return list(dict.fromkeys(line["paper"] for line in csv.DictReader(lines)))


def counts(tables: dict[str, PrintedTable]) -> tuple[int, int, int]:
    """Number of printed rows, of those with a number of ours, and of those with a reason."""
    answers = [answer for table in tables.values() for answer in table.text["rows"].values()]
    with_number = sum(any(kind in answer for kind in KINDS) for answer in answers)
    return len(answers), with_number, sum("why" in answer for answer in answers)


def paper_pages() -> dict[Path, str]:
    """Markdown of each paper and of their index, by path; texts name numbers in double braces."""
    pages, lines = {}, list[str]()
    total = [0, 0, 0]
    for name in paper_names():
        text, tables = read_paper(name)
        found = counts(tables)
        total = [sum(pair) for pair in zip(total, found, strict=True)]
        lines.append(f"| [{text['title']}]({name}.md) | {' | '.join(map(str, found))} |")
        blocks = [f"# {text['title']}", text["notes"].strip()]
        for title, table in tables.items():
            blocks += [f"## {table.text.get('title', title)}", *_blocks(table)]
        pages[PAPERS / f"{name}.md"] = "\n\n".join(blocks) + "\n"
    head = "| paper | printed rows | with a number here | with a reason |\n|---|---|---|---|"
    last = f"| all | {' | '.join(map(str, total))} |"
    about = (PAPERS / "about.md").read_text(encoding="utf-8").strip()
    pages[PAPERS / "README.md"] = "\n".join(
        ["# Every printed row of the five papers", "", about, "", head, *lines, last, ""]
    )
    return pages


def _blocks(table: PrintedTable) -> list[str]:
    """Caption, table and reasons."""
    ends = ["epsilon that holds", "runs"]
    lines = [f"| {' | '.join(['row', 'whose', *table.columns, *ends])} |"]
    lines.append(f"|{'---|' * (len(table.columns) + 4)}")
    reasons: dict[str, int] = {}
    for row, printed in table.rows.items():
        answer = table.text["rows"][row]
        mark = ""
        if why := " ".join(answer.get("why", "").split()):
            mark = f"<sup>{reasons.setdefault(why, len(reasons) + 1)}</sup>"
        values = [f"*{printed[name]}*" if name in printed else "" for name in table.columns]
        lines.append(f"| {' | '.join([row + mark, 'paper', *values, '', ''])} |")
        for kind in KINDS:
            if kind in answer:
                lines.append(_line(kind, answer[kind], table))
    notes = "  \n".join(f"<sup>{mark}</sup> {why}" for why, mark in reasons.items())
    given = [table.text.get("caption", ""), "\n".join(lines), notes, table.text.get("notes", "")]
    return [block.strip() for block in given if block.strip()]


def _line(kind: str, answer: dict[str, Any], table: PrintedTable) -> str:
    if wrong := {*answer} - _KEYS:
        raise CommandError(f"results/papers: {kind}: no key {wrong.pop()!r}")
    if isinstance(cells := answer["cells"], dict) and (wrong := {*cells} - {*table.columns}):
        raise CommandError(f"results/papers: {kind}: no printed column {wrong.pop()!r}")
    found = {name: cell for name in table.columns if (cell := _cell(answer["cells"], name, table))}
    if not found:
        raise CommandError(f"results/papers: no number {answer['cells']}")
    shown = [
        _with_deviation(found[name].text, found[name].deviation) if name in found else ""
        for name in table.columns
    ]
    runs = ", ".join(dict.fromkeys(cell.runs for cell in found.values() if cell.runs))
    whose = f"{KINDS[kind]}: {answer['name']}" if "name" in answer else KINDS[kind]
    epsilon = str(answer["epsilon"]) if "epsilon" in answer else _spent(cells, found)
    return f"| {' | '.join(['', whose, *shown, epsilon, runs])} |"


def _spent(cells: str | dict[str, str], found: dict[str, Cell]) -> str:
    """Epsilons, and deltas, that the rows of the study state."""
    spent = []
    for name, cell in found.items():
        study = (cells if isinstance(cells, str) else cells[name]).split("/")[0]
        place = study, cell.table, cell.row
        stated = [number(*place, column, is_needed=False) for column in ("epsilon", "delta")]
        texts = [stated[0].text] if stated[0] else []
        texts += [f"delta {stated[1].text}"] if stated[1] else []
        spent.append(", ".join(texts))
    return "; ".join(dict.fromkeys(text for text in spent if text))


def _cell(cells: str | dict[str, str], name: str, table: PrintedTable) -> Cell | None:
    """The number under a printed column: of a row by the names of its columns, or by its own name."""
    if isinstance(cells, dict):
        return number(*cells[name].split("/")) if name in cells else None
    column = table.text.get("columns", {}).get(name)
    study, place, row = cells.split("/")
    return number(study, place, row, column, is_needed=False) if column else None


def _with_deviation(value: str, deviation: str) -> str:
    return f"{value} ± {deviation}" if deviation else value
