"""Meaning of every query, in plain words: one table for reports, help texts and documentation."""

from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

import yaml

Group = Literal["size", "degrees", "paths", "clustering", "communities", "copies", "labels"]

GROUPS: dict[Group, str] = {
    "size": "How large the graph is",
    "degrees": "How many neighbors nodes have",
    "paths": "How far nodes are from each other",
    "clustering": "How often neighbors of a node are linked, and other small patterns",
    "communities": "Which nodes belong together",
    "copies": "How much of the real graph is repeated",
    "labels": "How well labels of graphs and classes of nodes are predicted",
}
"""Meaning of each group, in the order of reports."""


class Query(NamedTuple):
    """A query, as a reader of its numbers needs it."""

    name: str
    """Name in tables and files."""
    label: str
    """Short name in plain words."""
    meaning: str
    """One sentence on the measured quantity."""
    better: Literal["lower", "higher"]
    """Direction in which the score improves: an error is better lower, an agreement higher."""
    group: Group

    @property
    def text(self) -> str:
        """The meaning of the query and of its score, in two sentences."""
        scale = "The error is 0 at best." if self.better == "lower" else "The score is 1 at best."
        return f"{self.meaning} {scale}"


@cache
def glossary(
    *parts: Literal["graphs", "sets", "nodes"],
) -> dict[str, Query]:
    """Read the queries of ``glossary.yaml``, by their names.

    Args:
        parts: Queries that compare two graphs, queries of sets of graphs and of their labels, and
            scores of node classification; all of them if none is named.
    """
    text = (files(__package__) / "glossary.yaml").read_text(encoding="utf-8")
    entries = yaml.safe_load(text)
    return {
        name: Query(name, **entry)
        for part in parts or entries
        for name, entry in entries[part].items()
    }
