"""``budget html``: one page for the officer."""

from pathlib import Path
from typing import Annotated

from lightning_dpg.book.commands.export import check_output, names_of, written
from lightning_dpg.book.commands.open_book import open_book
from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import Outcome


def html(
    name: str | None = None,
    *,
    out: Annotated[Path, "--out", "--output"] = Path("budget.html"),
    method: str | None = None,
    overwrite: bool = False,
    book: str | None = None,
) -> Outcome:
    """Write one page for the officer.

    Args:
        name: Data set or group; by default all.
        out: The file.
        method: Method of the planned further releases; by default those of the runs.
        overwrite: Replace a file that is there.
        book: See :func:`lightning_dpg.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget html --out budget.html
    """
    check_output(out, overwrite=overwrite)
    with open_book(book) as place:
        # Start-up time: the import brings PyTorch.
        from lightning_dpg.book.page import page

        names = names_of(place, name)
        if not names:
            raise CommandError(
                f"{place.url}: no data set is registered\n"
                "see python -m lightning_dpg budget register"
            )
        return written(out, page(place, names, method))
