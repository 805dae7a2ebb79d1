"""``budget``: the book of what data sets have spent over all their releases."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning_dpg.apps.book.commands.export import export, html
from lightning_dpg.apps.book.commands.open_book import open_book
from lightning_dpg.apps.book.commands.owner import close, grant, init, register, retract, rows
from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import REFUTED, Outcome
from lightning_dpg.run.commands.arguments import Group

if TYPE_CHECKING:
    from lightning_dpg.apps.book.further_releases import Row


def show(name: str | None = None, *, book: str | None = None) -> Outcome:
    """Print total, spent, reserved and left.

    Args:
        name: Data set or group; by default all.
        book: See :func:`lightning_dpg.apps.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget show crm --book sqlite:///book.db
    """
    with open_book(book) as place:
        # Start-up time: the import brings PyTorch.
        from lightning_dpg.apps.book import terminal
        from lightning_dpg.apps.book.partition import group_facts, group_summary, parts_of
        from lightning_dpg.apps.book.report import summary
        from lightning_dpg.errors import BookError

        try:
            place.check()
        except BookError as error:  # what it holds is shown, but nobody should rely on it
            print(f"warning: {error}", file=sys.stderr)
        if name and parts_of(place, name):
            place.reconcile()
            of_group = group_summary(place, name)
            return Outcome(terminal.group_lines(of_group, group_facts(of_group)), of_group)
        place.reconcile(name)
        names = [name] if name else [each.name for each in place.data_sets()]
        summaries = [summary(place, each) for each in names]
        if name:
            return Outcome(terminal.lines(summaries[0]), summaries[0])
        shown = terminal.all_lines(summaries) if summaries else []
        none = [f"{place.url}: no data set is registered"]
        return Outcome(shown or none, {"book": place.url, "datasets": summaries})


def history(name: str | None = None, *, book: str | None = None) -> Outcome:
    """Print all lines of the log, oldest first.

    Args:
        name: Data set or group; by default all.
        book: See :func:`lightning_dpg.apps.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget history crm --book sqlite:///book.db
    """
    with open_book(book) as place:
        # Start-up time: the import brings PyTorch.
        from lightning_dpg.apps.book.log import lines
        from lightning_dpg.apps.book.partition import names_of

        names = set(names_of(place, name)) if name else set()
        runs = {each.number for named in names for each in place.runs(named)}
        numbers = {each.number for named in names for each in place.grants(named)}
        found = list[dict[str, Any]]()
        for line in lines(place.database):
            facts = line.facts
            is_named = names & {facts.get("name"), facts.get("dataset")}
            is_approved = line.kind == "approve" and facts["number"] in numbers
            if not names or is_named or is_approved or facts.get("run") in runs:
                what = _what(line.kind, facts)
                found.append({"line": line.line, "utc": line.time, "kind": line.kind, "what": what})
    return Outcome(
        [f"{row['line']:>6}  {row['utc'][:19].replace('T', ' ')}  {row['what']}" for row in found],
        {"lines": found},
    )


def _what(kind: str, facts: dict[str, Any]) -> str:
    """One line of the log in words."""
    if kind == "grant" and facts.get("relation") == _ROWS:
        return _OWNER_LINES[kind].format_map(facts | {"dataset": f"{facts['dataset']}, {_COLUMNS}"})
    if kind in _OWNER_LINES:
        return _OWNER_LINES[kind].format_map(facts)
    if kind == "reserve":
        rows = facts.get("beside", {}).get(_ROWS)
        of_rows = "" if rows is None else f", of {_COLUMNS} epsilon {rows['epsilon']:g}"
        return (
            f"run {facts['run']} on {facts['dataset']}: reserved {facts['method']} at epsilon "
            f"{facts['epsilon']:g}, delta {facts['delta']:g}{of_rows}, by {facts['who']}"
        )
    if kind == "book":
        return f"run {facts['run']}: booked {facts['steps']} of read {facts['place'] + 1}"
    if kind == "measure":
        return (
            f"{facts['command']} of {', '.join(facts['methods']) or 'graphs'} read "
            f"{facts['dataset']}, not private and on no total, by {facts['who']}"
        )
    return f"run {facts['run']}: {facts['outcome']}, {sum(facts['booked'])} steps booked in all"


def verify(*, token: Path | None = None, book: str | None = None) -> Outcome:
    """Find changed, removed and inserted lines; exit code 1 if there are any.

    Args:
        token: File with the owner's token, to also find lines of owners that were written without it.
        book: See :func:`lightning_dpg.apps.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget verify --book sqlite:///book.db
    """
    with open_book(book, token) as place:
        # Start-up time: the import brings PyTorch.
        from lightning_dpg.apps.book.owner_token import owner_faults
        from lightning_dpg.apps.book.store import faults, state_of

        changes = faults(place.database)
        if token and not changes:
            changes = owner_faults(place.database, token)
        if changes:
            return Outcome(changes, {"book": place.url, "faults": changes}, REFUTED)
        last = state_of(place.database).last
        count, digest = (last.line, last.hash) if last else (0, None)
        return Outcome(
            [f"{place.url}: {count} lines, no fault; last hash {digest or 'none'}"],
            {"book": place.url, "faults": [], "lines": count, "last_hash": digest},
        )


_ROWS, _COLUMNS = "attributes", "private columns"  # relation in a line, and what it protects
_OWNER_LINES = {
    "init": "made with a token, by {user}",
    "register": "registered {name}: relation {relation}, total epsilon {epsilon:g}, delta {delta:g}, "
    "by {user}",
    "total": "set the total of {dataset} for the relation {relation}: epsilon {epsilon:g}, "
    "delta {delta:g}, by {user}",
    "grant": "grant {number} on {dataset}: {grantee} may spend epsilon {epsilon:g}, delta {delta:g}, "
    "by {user}",
    "approve": "grant {number}: approved by {user}",
    "retract": "run {run}: its release was retracted by {user}: {reason}",
    "close_data_set": "closed {name}, by {user}",
}


def plan(
    name: str,
    *,
    method: str | None = None,
    releases: int | None = None,
    delta: float | None = None,
    book: str | None = None,
) -> Outcome:
    """Print what the budget that is left buys, in equal further releases.

    Args:
        name: Data set.
        method: Method or configuration, with its measured quality; by default those of
            earlier runs, without such runs two kinds.
        releases: Number of releases; by default 1, 2, 4 and 12.
        delta: Of each release of a method that needs it; by default that of the total.
        book: See :func:`lightning_dpg.apps.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget plan crm --method bter --releases 4
    """
    # Start-up time: the imports bring PyTorch.
    from lightning_dpg.apps.book import terminal
    from lightning_dpg.apps.book.further_releases import PLAN_COLUMNS, budget_plan
    from lightning_dpg.apps.book.partition import parts_of

    with open_book(book) as place:
        if parts := parts_of(place, name):
            names = ", ".join(part.name for part in parts)
            raise CommandError(f"{name}: a group of parts with totals of their own: {names}")
        place.reconcile(name)
        rows = budget_plan(place, name, method, releases, delta)
    lines = [
        *terminal.table_lines(PLAN_COLUMNS, [row.cells for row in rows]),
        "each release that the filter of the book lets in; noise is that of most Gaussian steps",
    ]
    if not all(row.share.budget.epsilon for row in rows):
        lines.append("none: what is left does not pay for so many releases, whatever their noise")
    if not method:
        lines.append(f"noise and measured quality of a method: budget plan {name} --method METHOD")
    for row in rows:
        if method and row.measured:
            lines.append(f"\nmeasured near epsilon {row.share.budget.epsilon:g}, in results/:")
            lines += [f"  {number}" for number in row.measured]
    return Outcome(lines, {"dataset": name, "plans": [_values(row) for row in rows]})


def _values(row: "Row") -> dict[str, Any]:
    epsilon, delta = row.share.budget
    return {
        "method": row.method,
        "releases": row.share.releases,
        "epsilon_each": epsilon,
        "delta_each": delta,
        "noise_multiplier": row.share.noise_multiplier,
        "steps": row.steps,
        "measured": [*map(str, row.measured)],
    }


BUDGET = Group(
    "budget",
    (init, register, rows, grant, retract, close, show, history, plan, export, html, verify),
    """\
The budget book: what a data set has spent over all its releases.

The book holds a key and fingerprints of the data: it is as private as they are,
and no part of a release. Keep a backup; a run on data whose book is lost cannot
be added to earlier ones.""",
    "python -m lightning_dpg budget show crm --book sqlite:///book.db",
)
