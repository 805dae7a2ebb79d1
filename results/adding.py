"""Numbers of ``compare`` appended to a study, and those of ``benchmarks --json`` entered in it."""

import csv
import datetime
import json
import subprocess
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev

from lightning_dpg.errors import CommandError
from results.tables import FOLDER, Cell, read_study


def add(
    study: str, source: Path, date: str, machine: str, commit: str | None, by_query: bool = False
) -> str:
    """Append means and deviations over the runs of a comparison to ``results.csv`` of a study.

    Each graph and budget is a table of its own, with a row per query and a column per method. Its
    name has the date: no number replaces one that is there.

    Args:
        study: Name of the study.
        source: Folder that ``compare --out`` wrote.
        date: Day of the measurement, ``YYYY-MM-DD``.
        machine: Machine, in words.
        commit: Commit that was measured; None takes that of the working tree.
        by_query: Whether each graph and query is a table instead, with a row per method and a
            column per budget.

    Returns:
        A line for the user.

    Raises:
        CommandError: If the folder has no results, or its tables are there already.
    """
    _check_day(date)
    file = source / "results.csv"
    if not file.is_file():
        raise CommandError(f"{file}: no such file; name the folder of `compare --out`")
    cells = _cells(file, date, machine, commit or _commit(), by_query)
    present = {cell.table for cell in read_study(FOLDER / study).cells.values()}
    if twice := sorted(present & {cell.table for cell in cells}):
        raise CommandError(f"results/{study}: the table {twice[0]!r} is there already")
    with (FOLDER / study / "results.csv").open("a", newline="", encoding="utf-8") as lines:
        csv.writer(lines, lineterminator="\n").writerows(cells)
    return f"{len(cells)} numbers appended to results/{study}/results.csv"


def enter(study: str, source: Path, date: str, machine: str, commit: str | None) -> str:
    """Enter numbers of ``benchmarks --json`` in ``results.csv`` of a study.

    A number replaces the older one at its place; the history of the file keeps that.

    Args:
        study: Name of the study.
        source: The file.
        date: Day of the measurement, ``YYYY-MM-DD``.
        machine: Machine, in words; the load in the file becomes a note.
        commit: Commit that was measured; None takes that of the file.

    Returns:
        A line for the user.

    Raises:
        CommandError: If the file has no number of the study, or none that has a place in its tables.
    """
    _check_day(date)
    content = json.loads(source.read_text(encoding="utf-8"))
    old = read_study(FOLDER / study)
    found = [number for number in content["numbers"] if number["study"] == study]
    cells = dict(old.cells)
    note = f"load {content['load'][0]:.1f}"
    num_entered = 0
    for number in found:
        place = (number["table"], number["row"], number["column"])
        table = old.tables.get(place[0])
        if table is None or place[1] not in table.rows or place[2] not in table.columns:
            continue  # such as a size that the study does not have
        origin = "1", "measured", date, commit or content["commit"], machine, "", note
        cells[place] = Cell(*place, number["value"], "", *origin)
        num_entered += 1
    if not num_entered:
        raise CommandError(f"{source}: none of its numbers has a place in results/{study}")
    with (FOLDER / study / "results.csv").open("w", newline="", encoding="utf-8") as lines:
        csv.writer(lines, lineterminator="\n").writerows([Cell._fields, *cells.values()])
    return f"{num_entered} of {len(found)} numbers entered in results/{study}/results.csv"


def _check_day(date: str) -> None:
    try:
        datetime.date.fromisoformat(date)
    except ValueError:
        raise CommandError(f"--date {date}: not a day such as 2026-01-31") from None


def _cells(file: Path, date: str, machine: str, commit: str, by_query: bool) -> list[Cell]:
    answers: defaultdict[tuple[str, str, str], list[dict[str, str]]] = defaultdict(list)
    with file.open(newline="", encoding="utf-8") as lines:
        for run in csv.DictReader(lines):
            if run["error"] not in ("", "nan"):  # a failed run, or a query without an answer
                answers[_place(run, date, by_query)].append(run)
    if not answers:
        raise CommandError(f"{file}: no run has a result")
    return [
        Cell(
            *key,
            *_summary([float(run["error"]) for run in runs], "#.3g" if by_query else ".4g"),
            runs=str(len(runs)),
            source="measured",
            date=date,
            commit=commit,
            machine=machine,
            seeds=" ".join(sorted((run["run"] for run in runs), key=int)),
            note="; ".join(_caveats(runs)),
        )
        for key, runs in answers.items()
    ]


def _place(run: dict[str, str], date: str, by_query: bool) -> tuple[str, str, str]:
    """Table, row and column of a run."""
    graph = Path(run["graph"]).name
    method, query = (run[name].replace("/", " ") for name in ("method", "query"))
    if by_query:
        return f"{graph} {query}", method, f"{float(run['epsilon']):g}"
    return f"{graph} at {run['epsilon']} on {date}", query, method


def _summary(errors: list[float], form: str) -> tuple[str, str]:
    """Mean and standard deviation."""
    return f"{fmean(errors):{form}}".rstrip("."), f"{stdev(errors):.2g}" if len(errors) > 1 else ""


def _caveats(runs: list[dict[str, str]]) -> list[str]:
    if any(run["private"] != "True" for run in runs):
        return ["not private"]
    is_conditional = any(run["conditional"] == "True" for run in runs)
    return ["the guarantee holds under a condition"] if is_conditional else []


def _commit() -> str:
    command = ["git", "-C", str(FOLDER), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise CommandError("--commit: no git repository to read it from") from None
