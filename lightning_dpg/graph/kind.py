"""Kinds of graphs, and the unit of amounts. Commands read them before PyTorch is imported."""

from typing import Literal

Kind = Literal["undirected", "directed", "bipartite"]
CENTS = 100
"""Units of an amount of 1: amounts are whole numbers of hundredths."""
