"""Lightning data modules: graphs as batches of records."""

from lightning_dpg.datamodules.base import GraphDataModule
from lightning_dpg.datamodules.database import DatabaseDataModule
from lightning_dpg.datamodules.edge_list import EdgeListDataModule
from lightning_dpg.datamodules.edge_table import EdgeTableDataModule
from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.datamodules.nodes import Nodes
from lightning_dpg.datamodules.records import LinkBatch
from lightning_dpg.datamodules.subgraph import SubgraphDataModule
from lightning_dpg.datamodules.tu import TUGraphDataModule
from lightning_dpg.formats.columns import Columns

__all__ = [
    "Columns",
    "DatabaseDataModule",
    "EdgeListDataModule",
    "EdgeTableDataModule",
    "GraphDataModule",
    "GraphSetDataModule",
    "LinkBatch",
    "Nodes",
    "SubgraphDataModule",
    "TUGraphDataModule",
]
