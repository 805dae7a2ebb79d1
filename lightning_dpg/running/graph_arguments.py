"""Graphs and sets of graphs as arguments of commands without a configuration."""

from torch_geometric.data import Data

from lightning_dpg.datamodules.loading import load_graph
from lightning_dpg.datamodules.tu import TUGraphDataModule
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.edge_columns import NAME_COLUMNS
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.io import GraphFormatError


def load(name: str, undirected: bool) -> Data:
    """Load a graph by its name or from a file.

    Args:
        name: Name or path.
        undirected: Whether to drop the directions of a directed graph.

    Raises:
        CommandError: If it is not readable.
    """
    try:
        return load_graph(name, undirected=undirected)
    except GraphFormatError as error:
        raise CommandError(_in_words_of_commands(error)) from error


def load_set(name: str, undirected: bool) -> Data:
    """Load a set of graphs by its name or from a folder.

    Args:
        name: Name or path.
        undirected: Whether to read links of one direction as undirected edges.

    Returns:
        Union of the graphs, with their numbers of nodes ``sizes`` of shape ``(G,)`` and their labels
        ``y`` of shape ``(G,)``, if any.

    Raises:
        CommandError: If it is not readable.
    """
    data = TUGraphDataModule(name, undirected=undirected)
    try:
        data.setup("fit")
    except GraphFormatError as error:
        raise CommandError(_in_words_of_commands(error)) from error
    union = make_graph(data.edges, len(data.graph_of))
    union.sizes, union.y = data.sizes, data.labels
    return union


def _in_words_of_commands(error: GraphFormatError) -> str:
    """Reword a message: options have other names in these commands, or do not exist."""
    text = str(error).replace("--data.undirected true", "--undirected")
    return text.replace(NAME_COLUMNS, "name the columns source and target in the first line")
