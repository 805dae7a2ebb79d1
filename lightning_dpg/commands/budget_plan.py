"""``budget plan``: what is left of a data set buys."""

import argparse
from typing import Any

from lightning_dpg.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", metavar="NAME", help="data set")
    parser.add_argument(
        "--method", help="method or configuration, with its measured quality; by default two kinds"
    )
    parser.add_argument("--releases", type=int, metavar="K", help="by default 1, 2, 4 and 12")
    parser.add_argument(
        "--delta", type=float, help="of each release of a method that needs it; that of the total"
    )


def run(book: Any, options: argparse.Namespace) -> None:
    """Print the largest epsilon of each of several equal further releases."""
    # Start-up time: the imports bring PyTorch.
    from lightning_dpg.book import terminal
    from lightning_dpg.book.partition import parts_of
    from lightning_dpg.running.budget_plan import PLAN_COLUMNS, budget_plan

    if parts := parts_of(book, options.name):
        names = ", ".join(part.name for part in parts)
        raise CommandError(f"{options.name}: a group of parts with totals of their own: {names}")
    book.reconcile(options.name)
    rows = budget_plan(book, options.name, options.method, options.releases, options.delta)
    terminal.show_table(PLAN_COLUMNS, [row.cells for row in rows])
    print("each release that the filter of the book lets in; noise is that of most Gaussian steps")
    if not all(row.share.budget.epsilon for row in rows):
        print("none: what is left does not pay for so many releases, whatever their noise")
    if not options.method:
        print(f"noise and measured quality of a method: budget plan {options.name} --method METHOD")
    for row in rows:
        if row.measured:
            print(f"\nmeasured near epsilon {row.share.budget.epsilon:g}, in results/:")
            print("\n".join(f"  {number}" for number in row.measured))
