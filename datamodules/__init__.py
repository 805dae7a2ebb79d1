"""Lightning data modules: graphs as batches of records."""

from lightning_dpg.datamodules.base import GraphDataModule
from lightning_dpg.datamodules.edge_list import EdgeListDataModule, LinkBatch
from lightning_dpg.datamodules.random_walk import RandomWalkDataModule

__all__ = ["EdgeListDataModule", "GraphDataModule", "LinkBatch", "RandomWalkDataModule"]
