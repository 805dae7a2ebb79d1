"""Data modules for the data of a Python call: a graph or a set of graphs in any form."""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl

from lightning_dpg.classes import find_class
from lightning_dpg.datamodules import EdgeTableDataModule
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.attributes import LABELS, PRIVATE_LABEL
from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.preflight import check_data
from lightning_dpg.run.complete import under_ids
from lightning_dpg.run.method_choice import MethodChoice

ReadData = Callable[[], pl.LightningDataModule]
"""Function that returns new data modules of equal data, set up for a fit."""


def data_module(
    data: object,
    chosen: MethodChoice,
    labels: str | None = None,
    classes: Sequence[object] | None = None,
) -> pl.LightningDataModule:
    """Set up data for a fit.

    Args:
        data: Name, path, graph, set of graphs, Ibis table, or a data module, which is used as it is.
        chosen: Method of the fit, whose data section says how its configuration reads them.
        labels: Attribute of the nodes that holds their classes.
        classes: All classes (public), if the labels are private.

    Raises:
        MisconfigurationException: If the method reads other data.
        CommandError: If ``labels`` are given to data that name their own.
    """
    is_table = hasattr(data, "get_backend")  # of Ibis
    labels = LABELS if labels is None and classes is not None else labels
    policy = "label" if classes is None else PRIVATE_LABEL
    if labels is not None and (is_table or isinstance(data, pl.LightningDataModule)):
        raise CommandError(
            f"labels {labels}: name them in the data module\n"
            f'EdgeListDataModule(..., nodes=Nodes(attributes=..., policy={{"{labels}": "{policy}"}}'
            + ("))" if classes is None else ", classes=[...]))")
        )
    if isinstance(data, pl.LightningDataModule):
        module = data
    elif is_table:
        module = EdgeTableDataModule(data)
    else:
        section = chosen.sections["data"]
        if labels is not None:
            nodes = {"policy": {labels: policy}} | ({} if classes is None else {"classes": classes})
            section = _with_labels(chosen, labels, nodes)
        is_folder = isinstance(data, Path) and chosen.method.capabilities.reads is GraphSetRecords
        source = str(data) if is_folder else data
        module = find_class(section["class_path"])(**section["init_args"] | {"name": source})
    module.prepare_data()
    module.setup("fit")
    check_data(chosen.method, module)
    return module


def _with_labels(chosen: MethodChoice, labels: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the data section of a method, with settings of nodes that name their labels."""
    section = chosen.sections["data"]
    nodes = section["init_args"].get("nodes") or {}
    if nodes.get("attributes") is None:
        raise CommandError(
            f"labels {labels}: {chosen.method.__name__} uses no attributes of nodes\nleave labels away"
        )
    policy = (nodes.get("policy") or {}) | given["policy"]
    nodes = nodes | given | {"policy": policy}
    return section | {"init_args": section["init_args"] | {"nodes": nodes}}


def reader(data: object, chosen: MethodChoice) -> ReadData:
    """Return a function that reads data anew, for fits that change them and publish nothing.

    A node has one number in all of them.

    Args:
        data: As for :func:`data_module`.
        chosen: Method of the fits.
    """
    chosen = chosen._replace(sections=under_ids(chosen.sections))
    if isinstance(data, pl.LightningDataModule):
        data_module(data, chosen)  # which numbers its nodes, maybe in a secret order

    def read() -> pl.LightningDataModule:
        if not isinstance(data, pl.LightningDataModule):
            return data_module(data, chosen)
        alone = copy.copy(data)
        alone.trainer = None  # that of an earlier fit holds noise, which is not copied
        return data_module(copy.deepcopy(alone), chosen)

    return read
