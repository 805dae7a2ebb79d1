"""``budget export`` and ``budget html``: all releases for programs, and a page for people."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from lightning_dpg.apps.book.commands.open_book import open_book
from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import Outcome
from lightning_dpg.tables import as_json, strict

if TYPE_CHECKING:
    from lightning_dpg.apps.book.book import Book


def export(
    name: str | None = None,
    *,
    format: Literal["csv", "json"],
    out: Annotated[Path | None, "--out", "--output"] = None,
    overwrite: bool = False,
    book: str | None = None,
) -> Outcome:
    """Write all releases as CSV or JSON, without secrets.

    Args:
        name: Data set or group; by default all.
        format: Format of the file.
        out: The file; by default the terminal.
        overwrite: Replace a file that is there.
        book: See :func:`lightning_dpg.apps.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget export crm --format csv --out releases.csv
    """
    if out is not None:
        check_output(out, overwrite=overwrite)
    with open_book(book) as place:
        # Start-up time: the import brings PyTorch.
        from lightning_dpg.apps.book.export import csv_text, whole

        names = names_of(place, name)
        values = whole(place, names)
        content = csv_text(place, names) if format == "csv" else as_json(strict(values))
    if out is not None:
        return written(out, content)
    return Outcome([content.removesuffix("\n")], values)


def names_of(book: "Book", name: str | None) -> list[str]:
    """Names of data sets to show, after killed runs were reconciled.

    Args:
        book: The book.
        name: Data set or group; None for all.
    """
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.apps.book import partition

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
        raise CommandError(f"--out {path}: no such folder {path.absolute().parent}")
    if path.is_dir():
        raise CommandError(f"--out {path}: a folder; name a file")
    if path.is_file() and not overwrite:
        raise CommandError(f"--out {path}: the file exists; replace it with --overwrite")


def written(path: Path, content: str) -> Outcome:
    """Write a file that appears complete or not at all.

    Args:
        path: The file.
        content: Its text.
    """
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.formats.whole_files import write_whole

    write_whole(path, content)
    line = f"written: {path} ({len(content.encode()):,} bytes)"
    return Outcome([line], {"files": [path]})


def html(
    name: str | None = None,
    *,
    out: Annotated[Path, "--out", "--output"] = Path("budget.html"),
    overwrite: bool = False,
    book: str | None = None,
) -> Outcome:
    """Write one page for the officer.

    Args:
        name: Data set or group; by default all.
        out: The file.
        overwrite: Replace a file that is there.
        book: See :func:`lightning_dpg.apps.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget html --out budget.html
    """
    check_output(out, overwrite=overwrite)
    with open_book(book) as place:
        # Start-up time: the import brings PyTorch.
        from lightning_dpg.apps.book.page import page

        names = names_of(place, name)
        if not names:
            raise CommandError(
                f"{place.url}: no data set is registered\n"
                "see python -m lightning_dpg budget register"
            )
        return written(out, page(place, names))
