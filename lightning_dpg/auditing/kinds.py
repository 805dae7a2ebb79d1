"""Kinds of the graphs of an attack: that of a release, and graphs put on the real graph's pairs."""

from typing import Any

from torch_geometric.data import Data

from lightning_dpg.errors import CommandError
from lightning_dpg.graph.pair_space import Kind, PairSpace, space_of
from lightning_dpg.release.release import Release


def kind_of(opened: Release | list[Any], kind: Kind | None) -> Kind:
    """Return the kind of the graphs: that of a release, or the argument.

    Raises:
        CommandError: If a release holds graphs of another kind than the argument.
    """
    if not isinstance(opened, Release):
        return kind or "undirected"
    held: Kind = getattr(opened.method, "kind", "undirected")
    if kind not in (None, held):
        raise CommandError(
            f"kind is {kind}, and the release holds {held} graphs\n"
            f"leave it out, or set it to {held} (--kind {held})"
        )
    return held


def in_space(graph: Data, space: PairSpace) -> Data:
    """Convert an aligned graph to the kind of the real graph."""
    try:
        return space.graph(space_of(graph).edges(graph))
    except ValueError as error:
        raise CommandError(f"what was published does not fit the real graph: {error}") from error
