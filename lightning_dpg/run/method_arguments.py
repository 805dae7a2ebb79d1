"""The argument of a method that its data determine: the number of nodes."""

from jsonargparse import Namespace
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.interfaces import GraphRecords, serves_records


def fill_num_nodes(model: Namespace, data: object) -> None:
    """Set the public number of nodes of a method for one graph.

    Args:
        model: Arguments of the method.
        data: The data module after its setup.

    Raises:
        MisconfigurationException: If another number is set.
    """
    records = data.records if serves_records(data) else None
    if not isinstance(records, GraphRecords) or "num_nodes" not in model:
        return
    actual = records.num_nodes
    if model.num_nodes not in (None, actual):
        raise MisconfigurationException(
            f"model.init_args.num_nodes is {model.num_nodes}, but the graph has {actual} "
            f"nodes: set it to {actual}, or leave it out"
        )
    model.num_nodes = actual
