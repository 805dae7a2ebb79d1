"""The releases of a book as CSV and JSON, without its secrets."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from lightning_dpg import __version__
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.report import read, summary_of
from lightning_dpg.apps.book.state import Planned, Run
from lightning_dpg.tables import as_csv

_OF_DATA = ("dataset", "relation", "record")
_OF_RUN = (
    *("run", "family", "outcome", "method", "reserved_utc", "closed_utc", "who", "folder"),
    *("settings_sha256", "release_sha256", "budget_epsilon", "budget_delta"),
    *("condition", "retracted"),
)
_OF_ENTRY = (
    *("release", "mechanism", "epsilon", "delta", "noise_multiplier", "sample_rate"),
    *("sensitivity", "steps_planned", "steps_booked", "proof"),
)
_WIDE = ("\uff1d", "\uff0b", "\uff0d", "\uff20")  # the same signs of East Asian keyboards
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", *_WIDE)


def csv_text(book: Book, names: Sequence[str]) -> str:
    """Write one row for each planned read of each run under each relation that it costs.

    A run without any read has one row.

    Texts that a spreadsheet would take for a formula begin with an apostrophe.

    Args:
        book: The book.
        names: Data sets.
    """
    columns = [*_OF_DATA, *_OF_RUN, *_OF_ENTRY]
    rows = []
    for name in names:
        with book.database.snapshot():
            content = read(book, name)
        for part in content.each_total:
            dataset = part.dataset
            data = {"dataset": name, "relation": dataset.relation.value, "record": dataset.record}
            for run in part.runs:
                for entry in map(_entry, run.planned) if run.planned else ({},):
                    cells = data | _run(run) | entry
                    rows.append([_defused(cells.get(column)) for column in columns])
    return as_csv(columns, rows)


def whole(book: Book, names: Sequence[str]) -> dict[str, Any]:
    """Return all data sets with their totals, grants, measurements, runs and releases.

    Args:
        book: The book.
        names: Data sets.
    """
    data_sets = []
    for name in names:
        with book.database.snapshot():
            content = read(book, name)
        summary = summary_of(content)
        summary["registered_utc"] = content.dataset.created
        for part, of_total in zip(content.each_total, [summary, *summary["beside"]], strict=True):
            of_total["releases"] = [
                _run(run) | {"entries": [_entry(each) for each in run.planned]} for run in part.runs
            ]
        data_sets.append(summary)
    return {
        "book": book.url,
        "exported_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "lightning_dpg": __version__,
        "datasets": data_sets,
    }


def _run(run: Run) -> dict[str, Any]:
    values = (
        *(run.number, run.family, run.outcome, run.method, run.opened, run.closed, run.who),
        *(run.folder, run.settings, run.release, run.budget.epsilon, run.budget.delta),
        *(run.condition, run.retracted),
    )
    return dict(zip(_OF_RUN, values, strict=True))


def _entry(planned: Planned) -> dict[str, Any]:
    entry = planned.entry
    own = {"release": entry.name, "steps_planned": entry.steps, "steps_booked": planned.booked}
    values = entry.to_dict() | own
    return {name: values[name] for name in _OF_ENTRY}


def _defused(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula; numbers stay numbers."""
    if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA):
        return f"'{value}"
    return value
