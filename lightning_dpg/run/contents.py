"""Canonical contents of measured data, by which a budget book recognizes them."""

from collections.abc import Iterator
from typing import Any

from torch_geometric.data import Data

from lightning_dpg.datamodules import TUGraphDataModule
from lightning_dpg.datamodules.identity import identity_of
from lightning_dpg.errors import BookError
from lightning_dpg.graph.pair_space import without_directions
from lightning_dpg.interfaces import HasIdentity, Identity


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
    """Contents under which a graph may be registered: as it is, and without its directions.

    Args:
        graph: The graph.
    """
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
