"""The line of an attack in the log of a budget book."""

from collections.abc import Iterable, Mapping
from typing import Any

from lightning_dpg.budget_book import log_reading
from lightning_dpg.interfaces import Identity
from lightning_dpg.release.release import Release


def log_attack(
    settings: Mapping[str, Any] | None,
    release: Release | None,
    contents: Iterable[Identity],
    book: str | None,
) -> None:
    """Log an attack in the budget book, if there is one that knows the data.

    Args:
        settings: Configuration to fit again with, if any.
        release: Release that is attacked, if it is one.
        contents: Canonical contents of the real data (private).
        book: URL of the book; by default that of the environment.
    """
    methods: list[str] = []
    epsilons: list[float] = []
    if release is not None:
        methods = [type(release.method).__name__]
        epsilons = [float(release.statement["epsilon"])]
    elif settings is not None:
        methods = [settings["model"]["class_path"].rpartition(".")[2]]
        epsilons = [float(settings["privacy"]["epsilon"])]
    log_reading("attack", methods, epsilons, contents, book)
