"""``budget``: the book of what data sets have spent over all their releases."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from lightning_dpg.book.owner_token import VARIABLE as TOKEN_VARIABLE
from lightning_dpg.book.urls import BOOK_VARIABLE
from lightning_dpg.commands import budget_export, budget_html, budget_owner, budget_plan
from lightning_dpg.commands.budget_parser import BudgetParser
from lightning_dpg.errors import CommandError

DESCRIPTION = """\
The budget book: what a data set has spent over all its releases.

The book holds a key and fingerprints of the data: it is as private as they are,
and no part of a release. Keep a backup; a run on data whose book is lost cannot
be added to earlier ones."""


def run(args: list[str]) -> None:
    """Run one of the subcommands."""
    parser = BudgetParser(
        prog="lightning_dpg budget",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    place = BudgetParser(add_help=False)
    place.add_argument(
        "--book",
        metavar="URL",
        help=f"sqlite:///book.db or postgresql://user@host/database; by default ${BOOK_VARIABLE}",
    )

    def command(name: str, does: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, parents=[place], help=does, description=does)

    made = command("init", "make a book")
    budget_owner.add_token(made, "make this file, without which no owner's command is let in")
    budget_owner.add_registration(
        command("register", "register data, with the total of all their releases")
    )
    budget_owner.add_grant(
        command("grant", "let a user spend part of a total; approve a grant; give a role")
    )
    closed = command("close", "let no further run spend on a data set, for good")
    closed.add_argument("name", metavar="NAME", help="data set")
    budget_owner.add_token(closed)
    show = command("show", "total, spent, reserved and left")
    show.add_argument("name", nargs="?", metavar="NAME", help="data set or group; by default all")
    show.add_argument("--json", action="store_true", help="numbers for programs")
    history = command("history", "all lines of the log, oldest first")
    history.add_argument(
        "name", nargs="?", metavar="NAME", help="data set or group; by default all"
    )
    budget_plan.add_arguments(command("plan", "what is left buys, in equal further releases"))
    budget_export.add_arguments(command("export", "all releases as CSV or JSON, without secrets"))
    budget_html.add_arguments(command("html", "write one page for the officer"))
    checked = command(
        "verify", "find changed, removed and inserted lines; exit code 1 if there are any"
    )
    budget_owner.add_token(checked, "also find lines of owners that were written without it")
    options = parser.parse_args(args)
    url = options.book or os.environ.get(BOOK_VARIABLE)
    if not url:
        raise CommandError(f"no book: give --book URL, or set {BOOK_VARIABLE}")
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.book.book import Book

    book = Book(url, is_new=options.command == "init", token=_token(options))
    try:
        _COMMANDS[options.command](book, options)
    finally:
        book.close()


def _token(options: argparse.Namespace) -> Path | None:
    """File of the owner's token, from the option or, of a command that only may need it, a variable."""
    named = os.environ.get(TOKEN_VARIABLE)
    given: Path | None = getattr(options, "token", None)
    is_optional = options.command in ("register", "grant", "close")
    return given or (Path(named) if named and is_optional else None)


def _show(book: Any, options: argparse.Namespace) -> None:
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.book import terminal
    from lightning_dpg.book.errors import BookError
    from lightning_dpg.book.partition import group_facts, group_summary, parts_of
    from lightning_dpg.book.report import as_json, summary

    try:
        book.check()
    except BookError as error:  # what it holds is shown, but nobody should rely on it
        print(f"warning: {error}", file=sys.stderr)
    if options.name and parts_of(book, options.name):
        book.reconcile()
        of_group = group_summary(book, options.name)
        if options.json:
            print(as_json(of_group))
        else:
            terminal.show_group(of_group, group_facts(of_group))
        return
    book.reconcile(options.name)
    names = [options.name] if options.name else [each.name for each in book.data_sets()]
    found = [summary(book, name) for name in names]
    if options.json:
        print(as_json(found[0] if options.name else found))
    elif options.name:
        terminal.show(found[0])
    elif found:
        terminal.show_all(found)
    else:
        print(f"{book.url}: no data set is registered")


def _history(book: Any, options: argparse.Namespace) -> None:
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.book.log import lines
    from lightning_dpg.book.partition import names_of

    known = set(names_of(book, options.name)) if options.name else set()
    runs = {each.number for name in known for each in book.runs(name)}
    numbers = {each.number for name in known for each in book.grants(name)}
    for line in lines(book.database):
        facts = line.facts
        is_named = known & {facts.get("name"), facts.get("dataset")}
        is_approved = line.kind == "approve" and facts["number"] in numbers
        if not known or is_named or is_approved or facts.get("run") in runs:
            print(f"{line.line:>6}  {line.time[:19].replace('T', ' ')}  {_what(line.kind, facts)}")


def _what(kind: str, facts: dict[str, Any]) -> str:
    """One line of the log in words."""
    if kind in _OWNER_LINES:
        return _OWNER_LINES[kind].format_map(facts)
    if kind == "reserve":
        return (
            f"run {facts['run']} on {facts['dataset']}: reserved {facts['method']} at epsilon "
            f"{facts['epsilon']:g}, delta {facts['delta']:g}, by {facts['who']}"
        )
    if kind == "book":
        return f"run {facts['run']}: booked {facts['steps']} of release {facts['place'] + 1}"
    if kind == "measure":
        return (
            f"{facts['command']} of {', '.join(facts['methods']) or 'graphs'} read "
            f"{facts['dataset']}, not private and on no total, by {facts['who']}"
        )
    return f"run {facts['run']}: {facts['outcome']}, {sum(facts['booked'])} steps booked in all"


def _verify(book: Any, options: argparse.Namespace) -> None:
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.book.log import lines
    from lightning_dpg.book.verification import faults

    found = faults(book.database)
    if options.token and not found:
        found = book.owner_faults()
    if found:
        print("\n".join(found))
        raise SystemExit(1)
    log = lines(book.database)
    print(f"{book.url}: {len(log)} lines, no fault; last hash {log[-1].hash if log else 'none'}")


_OWNER_LINES = {
    "init": "made with a token, by {user}",
    "register": "registered {name}: relation {relation}, total epsilon {epsilon:g}, delta {delta:g}, "
    "by {user}",
    "grant": "grant {number} on {dataset}: {grantee} may spend epsilon {epsilon:g}, delta {delta:g}, "
    "by {user}",
    "approve": "grant {number}: approved by {user}",
    "close_data_set": "closed {name}, by {user}",
}
_COMMANDS = {
    "init": budget_owner.init,
    "register": budget_owner.register,
    "grant": budget_owner.grant,
    "close": budget_owner.close,
    "show": _show,
    "history": _history,
    "plan": budget_plan.run,
    "export": budget_export.run,
    "html": budget_html.run,
    "verify": _verify,
}
