"""``budget html``: one page for the officer."""

from pathlib import Path

from lightning_dpg.book.commands.export import check_output, names_of, write
from lightning_dpg.book.commands.open_book import open_book
from lightning_dpg.errors import CommandError


def html(
    name: str | None = None,
    *,
    output: Path = Path("budget.html"),
    method: str | None = None,
    overwrite: bool = False,
    book: str | None = None,
) -> None:
    """Write one page for the officer.

    Args:
        name: Data set or group; by default all.
        output: The file.
        method: Method of the planned further releases; by default those of the runs.
        overwrite: Replace a file that is there.
        book: See :func:`lightning_dpg.book.commands.open_book.open_book`.
    """
    check_output(output, overwrite=overwrite)
    with open_book(book) as place:
        # Start-up time: the import brings PyTorch.
        from lightning_dpg.book.page import page

        names = names_of(place, name)
        if not names:
            raise CommandError(
                f"{place.url}: no data set is registered\n"
                "see python -m lightning_dpg budget register"
            )
        write(output, page(place, names, method))
