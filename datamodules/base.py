"""Base class of the data modules of one graph."""

from collections.abc import Sequence
from typing import TypeVar

import networkx as nx
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torch_geometric.data import Data

from lightning_dpg.datamodules.loading import load_graph
from lightning_dpg.graph.graph import largest_component

Batch = TypeVar("Batch")


class GraphDataModule(pl.LightningDataModule):
    """One graph, and the seeds of the graphs to generate.

    The graph is read when it is first asked for and never for prediction, which needs seeds only.

    Attributes:
        assumptions: What a guarantee takes for public because of how the data were prepared.
    """

    def __init__(
        self,
        name: str | Data | nx.Graph = "les_miserables",
        *,
        undirected: bool = False,
        largest_component: bool = False,
        num_graphs: int = 1,
    ) -> None:
        """Remember the arguments; nothing is read yet.

        Args:
            name: Built-in graph, data set under ``$LIGHTNING_DPG_DATA``, path of a file, or a
                graph of PyTorch Geometric or networkx.
            undirected: Drop the directions of a directed graph instead of refusing it.
            largest_component: Keep the largest connected component only. It is found by looking
                at the private edges, which becomes an assumption of the guarantee.
            num_graphs: Number of graphs to generate in ``predict``, from the seeds 0, 1, ...
        """
        super().__init__()
        # No save_hyperparameters: a graph object among them would end in checkpoints and logs.
        self.source = name
        self.undirected = undirected
        self.largest_component = largest_component
        self.num_graphs = num_graphs
        self.assumptions: list[str] = []
        self._graph: Data | None = None

    @property
    def graph(self) -> Data:
        """The whole graph (private), read at the first use."""
        if self._graph is None:
            graph = load_graph(self.source, undirected=self.undirected)
            total = graph.num_nodes
            if self.largest_component:
                graph = largest_component(graph)
                self.assumptions.append(
                    f"The largest component ({graph.num_nodes} of {total} nodes) was found by "
                    "looking at the private edges and is taken for public."
                )
            self.assumptions.append(
                f"The node set ({graph.num_nodes} nodes and their names) is public."
            )
            self._graph = graph
        return self._graph

    @property
    def num_nodes(self) -> int:
        """Number of nodes N (public)."""
        return int(self.graph.num_nodes)

    def predict_dataloader(self) -> DataLoader[Tensor]:
        """The seeds of the graphs to generate, one scalar tensor each."""
        if self.num_graphs < 1:
            raise ValueError(f"num_graphs must be positive, got {self.num_graphs}")
        return DataLoader(Batches(list(torch.arange(self.num_graphs))), batch_size=None)


class Batches(Dataset[Batch]):
    """Batches that exist already; load them with ``batch_size=None``."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        """Keep the batches."""
        self.batches = batches

    def __len__(self) -> int:
        """Number of batches."""
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch:
        """One batch as it is."""
        return self.batches[index]
