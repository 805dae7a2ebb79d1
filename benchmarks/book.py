"""Bookings a second of a budget book, and a reservation in a long one."""

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping

from lightning_dpg.apps.book import owner
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.identity import Fingerprint
from lightning_dpg.apps.book.report import summary
from lightning_dpg.apps.book.request import Request
from lightning_dpg.apps.book.sqlite_file import SQLite
from lightning_dpg.apps.book.store import append, faults
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure, Relation

COST = 1e-6


def main(args: list[str]) -> None:
    """Print ratios within one run; it is the wall time that counts, since bookings wait for disks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks book")
    parser.add_argument("--book", help="URL of an empty database; by default a file of SQLite")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(args)
    with tempfile.TemporaryDirectory() as folder:
        book = Book(options.book or f"sqlite:///{folder}/book.db", is_new=True)
        owner.register(
            book,
            "data",
            Fingerprint("edges", "nodes"),
            relation=Relation.EDGE,
            total=Budget(1e6, 0.0),
        )
        _bookings(book, options.steps, options.rounds)
        _long(book, options.lines, options.rounds)
        book.close()


def _bookings(book: Book, steps: int, rounds: int) -> None:
    print(f"bookings of {steps} steps, {type(book.database).__name__}")
    variants = {
        "one transaction each": lambda: _one_by_one(book, steps),
        "in blocks, as runs do": lambda: _in_blocks(book, steps),
        "one transaction for all": lambda: _at_once(book, steps),
        "a run of 5 releases": lambda: _in_blocks(book, 1, releases=5),
    }
    if isinstance(book.database, SQLite):
        variants["one transaction each, synchronous NORMAL"] = lambda: _unsynced(book, steps)
    seconds = _medians(variants, rounds)
    base = seconds["one transaction each"]
    print("| variant | seconds | ratio | a second |\n|---|---|---|---|")
    for name, value in seconds.items():
        each = 1 if "releases" in name else steps
        print(f"| {name} | {value:.3f} | {value / base:.3f} | {each / value:.0f} |")


def _long(book: Book, lines: int, rounds: int) -> None:
    """A book whose runs of 1,000 bookings each fill a number of lines."""
    for _ in range(lines // 1000):
        run = book.reserve("data", _request(1000))
        facts = {"outcome": "ended", "booked": [1000], "release": None}
        with book.database.write():
            for _ in range(1000):
                append(book.database, "book", run=run.run, place=0, steps=1)
            append(book.database, "close", run=run.run, **facts)
        book.database.drop(run.run)
    found = book.database.rows("SELECT COUNT(*) FROM book_log")[0][0]
    seconds = _medians(
        {
            "verify all": lambda: faults(book.database),
            "open and read": lambda: _opened(book.url),
            "a run of one release": lambda: _in_blocks(book, 1),
            "show": lambda: summary(book, "data"),
        },
        rounds,
    )
    print(f"\na book of {found} lines\n| what | seconds | ratio |\n|---|---|---|")
    for name, value in seconds.items():
        print(f"| {name} | {value:.3f} | {value / seconds['verify all']:.3f} |")


def _opened(url: str) -> None:
    with contextlib.closing(Book(url)) as book:
        book.data_sets()


def _one_by_one(book: Book, steps: int) -> None:
    run = book.reserve("data", _request(steps))
    for _ in range(steps):
        with book.database.write():
            append(book.database, "book", run=run.run, place=0, steps=1)
    run.close("ended")


def _unsynced(book: Book, steps: int) -> None:
    book.database.rows("PRAGMA synchronous = NORMAL")
    _one_by_one(book, steps)
    book.database.rows("PRAGMA synchronous = FULL")


def _at_once(book: Book, steps: int) -> None:
    run = book.reserve("data", _request(steps))
    with book.database.write():
        for _ in range(steps):
            append(book.database, "book", run=run.run, place=0, steps=1)
    run.close("ended")


def _in_blocks(book: Book, steps: int, releases: int = 1) -> None:
    run = book.reserve("data", _request(steps, releases))
    for entry in _plan(1, releases):
        for _ in range(steps):
            run.book(entry)
    run.close("ended")


def _request(steps: int, releases: int = 1) -> Request:
    plan = _plan(steps, releases)
    budget = Budget(sum(entry.pure_epsilon for entry in plan), 0.0)
    return Request("BTER", "", budget, lambda _: plan, "edges")


def _plan(steps: int, releases: int = 1) -> list[LedgerEntry]:
    return [
        LedgerEntry(
            key=f"release_{number}",
            name=f"release {number}",
            event=Pure((1 + number) * COST),
            steps=steps,
            relation=Relation.EDGE,
            sensitivity=1.0,
            proof="none: nothing is read",
        )
        for number in range(releases)
    ]


def _medians(variants: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each variant, one call of each in turn."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, call in variants.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}
