"""Measurements that read private graphs: a budget book logs them, and counts them on no total."""

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torch_geometric.data import Data

from lightning_dpg.book.book import Book
from lightning_dpg.book.errors import BookError
from lightning_dpg.book.measurement import Measurement, log_measurement
from lightning_dpg.book.urls import BOOK_VARIABLE
from lightning_dpg.callbacks.booking import NO_BOOK
from lightning_dpg.datamodules import TUGraphDataModule
from lightning_dpg.datamodules.identity import identity_of
from lightning_dpg.graph.pair_space import without_directions
from lightning_dpg.interfaces import HasIdentity, Identity


def log_reading(
    command: str,
    methods: Sequence[str],
    epsilons: Sequence[float],
    contents: Iterable[Identity],
    book: str | None,
) -> None:
    """Log a measurement in the budget book, if there is one that knows the data, and warn.

    Args:
        command: Name of the measurement.
        methods: Names of its methods.
        epsilons: Budgets of its fits or of the release.
        contents: Canonical contents of the data (private); it is computed if there is a book.
        book: URL of the book; by default that of the environment. ``none`` leaves both out.

    Raises:
        BookError: If the book cannot be read or written. Nothing was measured then.
    """
    url = book or os.environ.get(BOOK_VARIABLE)
    if not url or url == NO_BOOK:
        return
    try:
        opened = Book(url)
        try:
            measured = Measurement(command, list(methods), list(epsilons))
            known = log_measurement(opened, measured, contents)
        finally:
            opened.close()
    except BookError as error:
        raise BookError(
            f'{error}\nor leave the book out: --no-book (in Python book="{NO_BOOK}")'
        ) from error
    for name in known:
        warnings.warn(
            f"{command} reads the private data {name!r}: its numbers are not private; the budget "
            "book has logged it, and counts it on no total",
            stacklevel=3,
        )


def contents_of(module: object) -> Iterator[Identity]:
    """Content of a data module that is set up.

    Raises:
        BookError: If the module has no ``identity()``.
    """
    if not isinstance(module, HasIdentity):
        raise BookError(
            f"{type(module).__name__} has no identity(), by which the budget book recognizes data"
        )
    yield module.identity()


def contents_of_graph(graph: Data) -> Iterator[Identity]:
    """Contents under which a graph may be registered: as it is, and without its directions."""
    yield identity_of([graph])
    yield identity_of([without_directions(graph)])


def contents_of_set(source: Any, undirected: bool) -> Iterator[Identity]:
    """Content of a set of graphs.

    Args:
        source: Name, path, or list of graphs.
        undirected: Whether to read links of one direction as undirected edges.
    """
    data = TUGraphDataModule(source, undirected=undirected)
    data.setup("fit")
    yield data.identity()
