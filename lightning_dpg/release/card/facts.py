"""Public facts of a release that its statement does not hold."""

from typing import Any, NamedTuple

from lightning_dpg.graph.node_names import SECRET_NUMBERS

ADDED_UP = "added up in a budget book, apart from runs that protect another unit"
NOT_ADDED_UP = "not added up"
LEFT_OUT = "left out of the budget book by the user"


class Facts(NamedTuple):
    """Facts by which the card speaks of a release.

    Attributes:
        method_path: Dotted path of the method.
        settings: Hyperparameters of the method.
        is_set: Whether the private data are a set of graphs.
        max_occurrences: Number of edges of a set that are one private edge at most; None where it
            was not recorded.
        num_graphs: Number of synthetic graphs in the folder; None for features of graphs.
        date: Day of the release, year first; None where it was not recorded.
        version: Version of the program; None where it was not recorded.
        configuration: SHA-256 digest of the configuration file; None without such a file.
        other_runs: Whether other runs on the data are added up: ``ADDED_UP``, ``NOT_ADDED_UP`` or
            ``LEFT_OUT``; None where it was not recorded.
        drawn_with: Versions of the libraries that have drawn the files; None where they were not
            recorded.
    """

    method_path: str
    settings: dict[str, Any]
    is_set: bool
    max_occurrences: int | None
    num_graphs: int | None
    date: str | None
    version: str | None
    configuration: str | None
    other_runs: str | None = None
    drawn_with: dict[str, str] | None = None


def publishes_names(statement: dict[str, Any], facts: Facts) -> bool:
    """Return whether the names of the nodes of one graph are in the release."""
    return not facts.is_set and SECRET_NUMBERS not in statement["assumptions"]
