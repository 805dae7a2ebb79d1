"""Arguments of a method from its data: the number of nodes, and an earlier sample rate."""

import inspect

from jsonargparse import Namespace
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.interfaces import GraphRecords, serves_records
from lightning_dpg.methods import GraphFeatureRelease, PrivateModule


def move_sample_rate(method: type[PrivateModule], model: Namespace, data: Namespace) -> str | None:
    """Move the sample rate of a configuration before version 0.2, which set it in the data module.

    A rate in the method's settings stays, as do the full batches of a method that reads all records
    by default: an overlay of data does not change an algorithm.

    Args:
        method: Class of the method.
        model: Its arguments, with defaults.
        data: Arguments of the data module.

    Returns:
        The change in one line; None if the data module has no rate.
    """
    rate = data.get("sample_rate")
    if rate is None:
        return None
    data.sample_rate = None
    parameter = inspect.signature(method).parameters.get("sample_rate")
    if parameter is None or issubclass(
        method, GraphFeatureRelease
    ):  # here sample_rate samples counts
        return f"data.init_args.sample_rate has no effect on {method.__name__}: leave it out"
    moved = "data.init_args.sample_rate is model.init_args.sample_rate now"
    own = model.sample_rate
    if rate != own and (own != parameter.default or own == 1):
        return f"{moved}: {method.__name__} keeps its {own:g}, and {rate:g} is not taken"
    model.sample_rate = rate
    return f"{moved}: {rate:g} is taken as such"


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
