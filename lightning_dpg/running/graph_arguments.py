"""Graphs that a command without a configuration is given."""

from typing import TYPE_CHECKING

from lightning_dpg.errors import CommandError

if TYPE_CHECKING:
    from torch_geometric.data import Data


def load(name: str, undirected: bool) -> "Data":
    """Load a graph by its name or from a file.

    Raises:
        CommandError: If it cannot be read.
    """
    # Imported late: they bring PyTorch, while mistakes in the arguments are told at once.
    from lightning_dpg.datamodules.loading import load_graph
    from lightning_dpg.graph.edge_columns import NAME_COLUMNS
    from lightning_dpg.graph.io import GraphFormatError

    try:
        return load_graph(name, undirected=undirected)
    except GraphFormatError as error:
        # The options of the commands with a configuration have other names, or none.
        text = str(error).replace("--data.undirected true", "--undirected")
        text = text.replace(NAME_COLUMNS, "name the columns source and target in the first line")
        raise CommandError(text) from error
