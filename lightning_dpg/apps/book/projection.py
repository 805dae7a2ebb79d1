"""Tables of a book as they follow from its log, line by line."""

import json
from typing import Any

from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.log import Line, append
from lightning_dpg.errors import Refusal

OPEN = "open"
"""Outcome of a run that goes on, or that was killed and not reconciled yet."""


OWNER_KINDS = ("init", "register", "total", "grant", "approve", "close_data_set")
"""Kinds of lines that an owner writes; a spender writes all others."""


def record(database: Database, kind: str, **facts: Any) -> None:
    """Append a line and bring the tables up to it; call it inside of a write."""
    apply(database, append(database, kind, facts))


def apply(database: Database, line: Line) -> None:
    """Change the tables by one line."""
    facts = line.facts
    if line.kind == "register":
        _register(database, line.time, facts)
    elif line.kind == "total":
        _add_total(database, facts)
    elif line.kind == "reserve":
        _reserve(database, line.time, facts)
    elif line.kind == "book":
        add_steps(database, facts["run"], facts["place"], facts["steps"])
    elif line.kind == "close":
        _close(database, line.time, facts)
    elif line.kind == "grant":
        _grant(database, line.time, facts)
    elif line.kind == "approve":
        _approve(database, line.time, facts)
    elif line.kind == "close_data_set":
        database.rows(
            "UPDATE book_datasets SET closed = ?, closed_by = ? WHERE name = ?",
            line.time,
            facts["user"],
            facts["name"],
        )
    elif line.kind not in ("init", "measure"):  # a measurement is in the log only
        raise Refusal(f"line {line.line}: unknown kind {line.kind!r}")


def add_steps(database: Database, run: int, place: int, steps: int) -> None:
    """Count more booked steps of a planned release.

    Raises:
        Refusal: If the run is closed, or if they are none or more than it planned.
    """
    planned, booked = _steps_of_open(database, run)[place]
    if not 0 < steps <= planned - booked:
        raise Refusal(f"run {run} planned {planned} steps, and books {steps} after {booked}")
    database.rows(
        "UPDATE book_entries SET booked = booked + ? WHERE run = ? AND place = ?", steps, run, place
    )


def _steps_of_open(database: Database, run: int) -> list[tuple[int, int]]:
    """Planned and booked steps of each release of a run that is open.

    A closed run never changes again: else one more line at the end of the log, which no kept hash of
    an earlier line shows, would give back what it has spent.
    """
    if database.rows("SELECT outcome FROM book_runs WHERE run = ?", run) != [(OPEN,)]:
        raise Refusal(f"run {run} is closed, or was never reserved")
    rows = database.rows(
        "SELECT planned, booked FROM book_entries WHERE run = ? ORDER BY place", run
    )
    return [(planned, booked) for planned, booked in rows]


def _register(database: Database, time: str, facts: dict[str, Any]) -> None:
    names = ("name", "relation", "record", "words", "epsilon", "delta", "max_degree")
    values = [facts[name] for name in (*names, "edges", "nodes")]
    values += [int(facts["two_persons"]), "", time, facts["part_of"], None, None]
    values.append(facts.get("max_edges"))  # None in lines of earlier versions
    places = ", ".join("?" * len(values))
    database.rows(f"INSERT INTO book_datasets VALUES ({places})", *values)


def _add_total(database: Database, facts: dict[str, Any]) -> None:
    names = ("dataset", "relation", "record", "epsilon", "delta", "content")
    values = [*(facts[name] for name in names), ""]
    database.rows("INSERT INTO book_totals VALUES (?, ?, ?, ?, ?, ?, ?)", *values)


def _grant(database: Database, time: str, facts: dict[str, Any]) -> None:
    names = ("number", "dataset", "grantee", "epsilon", "delta")
    values = [*(facts[name] for name in names), time, facts["user"], None, None]
    values.append(facts.get("relation") or _relation_of(database, facts["dataset"]))
    places = ", ".join("?" * len(values))
    database.rows(f"INSERT INTO book_grants VALUES ({places})", *values)


def _relation_of(database: Database, dataset: str) -> str:
    """Relation that grants of earlier versions are for."""
    ((relation,),) = database.rows("SELECT relation FROM book_datasets WHERE name = ?", dataset)
    return str(relation)


def _approve(database: Database, time: str, facts: dict[str, Any]) -> None:
    ((maker,),) = database.rows("SELECT made_by FROM book_grants WHERE number = ?", facts["number"])
    if maker == facts["user"]:
        raise Refusal(f"grant {facts['number']} is approved by {maker}, who made it")
    database.rows(
        "UPDATE book_grants SET approved = ?, approved_by = ? WHERE number = ?",
        time,
        facts["user"],
        facts["number"],
    )


def _reserve(database: Database, time: str, facts: dict[str, Any]) -> None:
    names = ("run", "family", "dataset", "method", "settings", "folder", "journal", "who", "user")
    values = [facts[name] for name in (*names, "edges", "epsilon", "delta")]
    values += [json.dumps(facts["before"], sort_keys=True), time, None, OPEN, None]
    places = ", ".join("?" * len(values))
    database.rows(f"INSERT INTO book_runs VALUES ({places})", *values)
    for place, (entry, booked) in enumerate(zip(facts["entries"], facts["booked"], strict=True)):
        database.rows(
            "INSERT INTO book_entries VALUES (?, ?, ?, ?, ?)",
            facts["run"],
            place,
            json.dumps(entry, sort_keys=True),
            entry["steps"],
            booked,
        )
    database.rows(
        "UPDATE book_datasets SET rule = ? WHERE name = ?", facts["rule"], facts["dataset"]
    )
    for relation, beside in facts.get("beside", {}).items():
        database.rows(
            "INSERT INTO book_budgets VALUES (?, ?, ?, ?, ?)",
            *(facts["run"], relation, beside["epsilon"], beside["delta"], beside["content"]),
        )
        database.rows(
            "UPDATE book_totals SET rule = ? WHERE dataset = ? AND relation = ?",
            *(beside["rule"], facts["dataset"], relation),
        )


def _close(database: Database, time: str, facts: dict[str, Any]) -> None:
    reserved = _steps_of_open(database, facts["run"])
    for (planned, _), booked in zip(reserved, facts["booked"], strict=True):
        if not 0 <= booked <= planned:
            raise Refusal(f"run {facts['run']} planned {planned} steps, and keeps {booked}")
    database.rows(
        "UPDATE book_runs SET closed = ?, outcome = ?, release = ? WHERE run = ?",
        time,
        facts["outcome"],
        facts["release"],
        facts["run"],
    )
    for place, booked in enumerate(facts["booked"]):
        database.rows(
            "UPDATE book_entries SET booked = ? WHERE run = ? AND place = ?",
            booked,
            facts["run"],
            place,
        )
