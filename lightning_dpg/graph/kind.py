"""Kinds of graphs. Commands read them before PyTorch is imported."""

from typing import Literal

Kind = Literal["undirected", "directed", "bipartite"]
