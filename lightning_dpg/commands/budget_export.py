"""``budget export``: all releases for programs of an officer."""

import argparse
from pathlib import Path
from typing import Any

from lightning_dpg.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="data set or group; by default all")
    parser.add_argument("--format", choices=("csv", "json"), required=True, help="of the file")
    parser.add_argument("--output", type=Path, metavar="FILE", help="by default the terminal")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that is there")


def run(book: Any, options: argparse.Namespace) -> None:
    """Write the releases with their ledger entries."""
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.book.export import csv_text, json_text

    if options.output is not None:
        check_output(options.output, overwrite=options.overwrite)
    names = names_of(book, options.name)
    content = (csv_text if options.format == "csv" else json_text)(book, names)
    if options.output is None:
        print(content, end="")
    else:
        write(options.output, content)


def names_of(book: Any, name: str | None) -> list[str]:
    """Names of data sets to show, after killed runs were reconciled.

    Args:
        book: The book.
        name: Data set or group; None for all.
    """
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.book import partition

    names = partition.names_of(book, name)
    for each in names:
        book.reconcile(each)
    return names


def check_output(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that is there, and one without a folder.

    Args:
        path: File to write.
        overwrite: Whether to replace a file.

    Raises:
        CommandError: If nothing can be written there.
    """
    if not path.absolute().parent.is_dir():
        raise CommandError(f"--output {path}: no such folder {path.absolute().parent}")
    if path.is_dir():
        raise CommandError(f"--output {path}: a folder; name a file")
    if path.is_file() and not overwrite:
        raise CommandError(f"--output {path}: the file exists; replace it with --overwrite")


def write(path: Path, content: str) -> None:
    """Write a file that appears complete or not at all, and name it."""
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.graph.whole_files import write_whole

    write_whole(path, content)
    print(f"written: {path} ({len(content.encode()):,} bytes)")
