"""Books of versions 1 and 2, which kept tables beside their log.

Their runs were let in by these tables. Before the tables are dropped, they are compared with the log,
row by row: what one of both says and the other does not is a change of the book.
"""

import json
from collections.abc import Iterator
from typing import Any

from lightning_dpg.apps.book import store
from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.log import FIRST
from lightning_dpg.apps.book.state import Run, State
from lightning_dpg.errors import BookError

_Row = tuple[Any, ...]
_TABLES = (
    *("book_datasets", "book_totals", "book_grants"),
    *("book_runs", "book_budgets", "book_entries"),
)


def upgrade(database: Database) -> None:
    """Verify a book of an earlier version, and drop the tables that follow from its log.

    Raises:
        BookError: If its lines or its tables were changed; nothing is dropped then.
    """
    with database.write():
        if store.version(database) == store.VERSION:
            return  # another process was first
        state, changes = store.faults_of_log(database)
        if changes := changes or [*_differences(database, state)]:
            raise BookError(
                f"{database.url}: the book was changed, and is not opened by this version: "
                f"{changes[0]}\ntake its last backup"
            )
        for table in database.tables() & {*_TABLES, "book_verified"}:
            database.rows(f"DROP TABLE {table}")
        database.rows(store.HEAD)
        end = (state.last.line, state.last.hash) if state.last else (0, FIRST)
        database.rows("INSERT INTO book_head VALUES (?, ?)", *end)
        database.rows("UPDATE book_facts SET value = ? WHERE name = 'version'", str(store.VERSION))


def _differences(database: Database, state: State) -> Iterator[str]:
    """Say which rows of the tables do not follow from the log."""
    for table, derived in _rows(state).items():
        is_there = table in database.tables()
        current = {*database.rows(f"SELECT * FROM {table}")} if is_there else set()
        # Version 1 had fewer columns: version 2 has added some behind the others.
        width = len(next(iter(current), ()))
        expected = {row[:width] if current else row for row in derived}
        for row in sorted(current ^ expected, key=str):
            what = "does not follow from the log" if row in current else "is missing or was changed"
            yield f"table {table.removeprefix('book_')}: row {row[0]!r} {what}"


def _rows(state: State) -> dict[str, list[_Row]]:
    """Rows of each table as they follow from the log, with the columns of version 2."""
    runs = state.runs()
    ruled = {(run.dataset, each) for run in runs for each in _relations(state, run)}
    tables: dict[str, list[_Row]] = {table: [] for table in _TABLES}
    for data in state.data_sets.values():
        tables["book_datasets"].append(
            (
                *(data.name, data.relation.value, data.record, data.words, *data.total),
                *(data.max_degree, data.edges, data.nodes, int(data.two_persons)),
                data.rule if (data.name, data.relation) in ruled else "",
                *(data.created, data.part_of, data.closed, data.closed_by, data.max_edges),
            )
        )
        tables["book_totals"] += [
            (
                *(data.name, relation.value, total.record, *total.budget, total.content),
                total.rule if (data.name, relation) in ruled else "",
            )
            for relation, total in data.other_totals.items()
        ]
    for grant in state.grants.values():
        of_grant = (grant.number, grant.dataset, grant.grantee, *grant.budget, grant.made)
        by = (grant.made_by, grant.approved, grant.approved_by, grant.relation.value)
        tables["book_grants"].append((*of_grant, *by))
    for run in runs:
        tables["book_runs"].append(
            (
                *(run.number, run.family, run.dataset, run.method, run.settings, run.folder),
                *(run.journal, run.who, run.spender, run.edges, *run.budget),
                json.dumps(run.before, sort_keys=True),
                *(run.opened, run.closed, run.outcome, run.release),
            )
        )
        tables["book_budgets"] += [
            (run.number, relation.value, *budget, run.contents[relation])
            for relation, budget in run.other_budgets.items()
        ]
        tables["book_entries"] += [
            (run.number, place, each.text, each.entry.steps, each.booked)
            for place, each in enumerate(run.planned)
        ]
    return tables


def _relations(state: State, run: Run) -> list[str]:
    """Relations of the totals whose rule a run has set."""
    return [state.data_sets[run.dataset].relation, *run.other_budgets]
