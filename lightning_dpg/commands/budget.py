"""``budget``: the book of what data sets have spent over all their releases."""

import argparse
import json
import math
import os
from pathlib import Path
from typing import Any

from lightning_dpg.commands import budget_export, budget_html, budget_plan
from lightning_dpg.errors import CommandError

VARIABLE = "LIGHTNING_DPG_BOOK"

DESCRIPTION = """\
The budget book: what a data set has spent over all its releases, whoever made them.

The book holds a key and fingerprints of the data: it is as private as they are, and no part of a
release. Keep a backup; a run on data whose book is lost cannot be added to earlier ones."""


def run(args: list[str]) -> None:
    """Run one of the subcommands."""
    parser = argparse.ArgumentParser(
        prog="lightning_dpg budget",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    place = argparse.ArgumentParser(add_help=False)
    place.add_argument(
        "--book",
        metavar="URL",
        help=f"sqlite:///book.db or postgresql://user@host/database; by default ${VARIABLE}",
    )

    def command(name: str, does: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, parents=[place], help=does, description=does)

    command("init", "make a book")
    _add_registration(command("register", "register data, with the total of all their releases"))
    show = command("show", "total, spent, reserved and left")
    show.add_argument("name", nargs="?", metavar="NAME", help="data set; by default all")
    show.add_argument("--json", action="store_true", help="numbers for programs")
    history = command("history", "all lines of the log, oldest first")
    history.add_argument("name", nargs="?", metavar="NAME", help="data set; by default all")
    budget_plan.add_arguments(command("plan", "what is left buys, in equal further releases"))
    budget_export.add_arguments(command("export", "all releases as CSV or JSON, without secrets"))
    budget_html.add_arguments(command("html", "write one page for the officer"))
    command("verify", "find changed, removed and inserted lines; exit code 1 if there are any")
    options = parser.parse_args(args)
    url = options.book or os.environ.get(VARIABLE)
    if not url:
        raise CommandError(f"no book: give --book URL, or set {VARIABLE}")
    # Start-up time: a wrong option is refused before PyTorch is imported.
    from lightning_dpg.book.book import Book

    book = Book(url, is_new=options.command == "init")
    try:
        _COMMANDS[options.command](book, options)
    finally:
        book.close()


def _add_registration(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the data in the book")
    parser.add_argument("--data", required=True, help="file, folder of a set, or name, as of fit")
    parser.add_argument(
        "--relation", required=True, help="what the total protects: edge, node or local_graph"
    )
    parser.add_argument("--epsilon", type=float, required=True, help="total of all releases")
    parser.add_argument("--delta", type=float, required=True, help="total of all releases")
    parser.add_argument("--undirected", action="store_true", help="drop directions, as in fit")
    parser.add_argument("--source-column", help="column of the first id of each edge, as in fit")
    parser.add_argument("--target-column", help="column of the second id, as in fit")
    parser.add_argument(
        "--max-degree", type=int, help="edges of a node at most (public), for a node-level total"
    )
    parser.add_argument("--words", default="", help="words of the owner")


def _init(book: Any, options: argparse.Namespace) -> None:
    print(f"made the budget book {book.url}\nit is as private as the data: keep a backup")


def _register(book: Any, options: argparse.Namespace) -> None:
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.privacy.budget import Budget
    from lightning_dpg.privacy.events import Relation

    relation = Relation(options.relation)
    if not 0 < options.epsilon < math.inf or not 0 <= options.delta < 1:
        raise CommandError(
            "a total needs a finite epsilon above 0 and a delta in [0, 1), got "
            f"{options.epsilon:g} and {options.delta:g}"
        )
    if options.max_degree is not None and options.max_degree < 1:
        raise CommandError(f"--max-degree must be 1 or more, got {options.max_degree}")
    data = _data(options)
    book.register(
        options.name,
        book.fingerprint(data.identity()),
        relation=relation,
        total=Budget(options.epsilon, options.delta),
        record_unit="graph of a client" if relation is Relation.LOCAL_GRAPH else "undirected edge",
        words=options.words,
        max_degree=options.max_degree,
    )
    print(
        f"registered {options.name}: relation {relation}, total epsilon {options.epsilon:g}, delta "
        f"{options.delta:g}"
    )


def _data(options: argparse.Namespace) -> Any:
    """Data module of the data to register, set up for a fit."""
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.datamodules import (
        EdgeListDataModule,
        GraphSetDataModule,
        TUGraphDataModule,
    )
    from lightning_dpg.datamodules.built_in_sets import BUILT_IN_SETS

    data: Any
    if options.data in BUILT_IN_SETS:
        data = GraphSetDataModule(options.data, undirected=options.undirected)
    elif Path(options.data).expanduser().is_dir():
        data = TUGraphDataModule(options.data)
    else:
        data = EdgeListDataModule(
            options.data,
            undirected=options.undirected,
            source_column=options.source_column,
            target_column=options.target_column,
        )
    data.setup("fit")
    return data


def _show(book: Any, options: argparse.Namespace) -> None:
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.book import terminal
    from lightning_dpg.book.report import summary

    book.reconcile(options.name)
    names = [options.name] if options.name else [each.name for each in book.data_sets()]
    found = [summary(book, name) for name in names]
    if options.json:
        print(json.dumps(found[0] if options.name else found, indent=2))
    elif options.name:
        terminal.show(found[0])
    elif found:
        terminal.show_all(found)
    else:
        print(f"{book.url}: no data set is registered")


def _history(book: Any, options: argparse.Namespace) -> None:
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.book.log import lines

    known = options.name and book.data_set(options.name).name
    runs = {each.number for each in book.runs(options.name)} if known else set()
    for line in lines(book.database):
        facts = line.facts
        names = {facts.get("name"), facts.get("dataset")}
        if not known or known in names or facts.get("run") in runs:
            print(f"{line.line:>6}  {line.time[:19].replace('T', ' ')}  {_what(line.kind, facts)}")


def _what(kind: str, facts: dict[str, Any]) -> str:
    """One line of the log in words."""
    if kind == "register":
        return (
            f"registered {facts['name']}: relation {facts['relation']}, total epsilon "
            f"{facts['epsilon']:g}, delta {facts['delta']:g}"
        )
    if kind == "reserve":
        return (
            f"run {facts['run']} on {facts['dataset']}: reserved {facts['method']} at epsilon "
            f"{facts['epsilon']:g}, delta {facts['delta']:g}, by {facts['who']}"
        )
    if kind == "book":
        return f"run {facts['run']}: booked {facts['steps']} of release {facts['place'] + 1}"
    return f"run {facts['run']}: {facts['outcome']}, {sum(facts['booked'])} steps booked in all"


def _verify(book: Any, options: argparse.Namespace) -> None:
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.book.log import lines
    from lightning_dpg.book.verification import faults

    if found := faults(book.database):
        print("\n".join(found))
        raise SystemExit(1)
    log = lines(book.database)
    print(f"{book.url}: {len(log)} lines, no fault; last hash {log[-1].hash if log else 'none'}")


_COMMANDS = {
    "init": _init,
    "register": _register,
    "show": _show,
    "history": _history,
    "plan": budget_plan.run,
    "export": budget_export.run,
    "html": budget_html.run,
    "verify": _verify,
}
