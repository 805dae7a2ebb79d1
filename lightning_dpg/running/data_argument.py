"""Data modules for the data of a Python call: a graph or a set of graphs in any form."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytorch_lightning as pl

from lightning_dpg.classes import find_class
from lightning_dpg.datamodules import EdgeTableDataModule
from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.preflight import check_data
from lightning_dpg.running.method_choice import MethodChoice

ReadData = Callable[[], pl.LightningDataModule]
"""Function that returns new data modules of equal data, set up for a fit."""


def data_module(data: object, chosen: MethodChoice) -> pl.LightningDataModule:
    """Set up data for a fit.

    Args:
        data: Name, path, graph, set of graphs, Ibis table, or a data module, which is used as it is.
        chosen: Method of the fit, whose data section says how its configuration reads them.

    Raises:
        MisconfigurationException: If the method reads other data.
    """
    if isinstance(data, pl.LightningDataModule):
        module = data
    elif hasattr(data, "get_backend"):  # an Ibis table
        module = EdgeTableDataModule(data)
    else:
        section = chosen.sections["data"]
        is_folder = isinstance(data, Path) and chosen.method.reads is GraphSetRecords
        source = str(data) if is_folder else data
        module = find_class(section["class_path"])(**section["init_args"] | {"name": source})
    module.prepare_data()
    module.setup("fit")
    check_data(chosen.method, module)
    return module


def reader(data: object, chosen: MethodChoice) -> ReadData:
    """Return a function that reads data anew, for fits that change them.

    Args:
        data: As for :func:`data_module`.
        chosen: Method of the fits.
    """
    is_module = isinstance(data, pl.LightningDataModule)
    return lambda: data_module(copy.deepcopy(data) if is_module else data, chosen)
