"""A query with its meaning in plain words, and the groups of queries."""

from typing import Literal, NamedTuple

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
