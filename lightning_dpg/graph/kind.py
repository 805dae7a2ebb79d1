"""Kinds of graphs, and the unit of amounts. Commands read them before PyTorch is imported."""

from typing import Final, Literal

Kind = Literal["undirected", "directed", "bipartite"]
EDGES: Final[dict[Kind, str]] = {
    "undirected": "undirected edge",
    "directed": "directed edge",
    "bipartite": "edge between the two sides",
}
"""Unit of protection of each kind, in words."""
CENTS = 100
"""Units of an amount of 1: amounts are whole numbers of hundredths."""
