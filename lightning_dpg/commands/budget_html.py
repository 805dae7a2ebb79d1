"""``budget html``: one page for the officer."""

import argparse
from pathlib import Path
from typing import Any

from lightning_dpg.commands.budget_export import check_output, names_of, write
from lightning_dpg.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="data set or group; by default all")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", default=Path("budget.html"), help="(budget.html)"
    )
    parser.add_argument(
        "--method", help="of the planned further releases; by default those of the runs"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a file that is there")


def run(book: Any, options: argparse.Namespace) -> None:
    """Write the page."""
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.benchmark.budget_page import page

    check_output(options.output, overwrite=options.overwrite)
    names = names_of(book, options.name)
    if not names:
        raise CommandError(
            f"{book.url}: no data set is registered\nsee python -m lightning_dpg budget register"
        )
    write(options.output, page(book, names, options.method))
