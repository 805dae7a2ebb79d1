"""Batches of random walks over the training edges, for methods that protect nothing."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from lightning_dpg.datamodules.edge_list import EdgeListDataModule
from lightning_dpg.graph.graph import adjacency
from lightning_dpg.graph.walks import random_walks


class RandomWalkDataModule(EdgeListDataModule):
    """Batches of biased second-order random walks of shape ``(B, L)`` (Bojchevski et al., 2018).

    Args:
        name: Graph, see :class:`EdgeListDataModule`.
        walk_length: Number of nodes L of a walk.
        batch_size: Number of walks B, over all ranks.
        steps_per_epoch: Number of batches per epoch.
        p: Return parameter of node2vec.
        q: In-out parameter of node2vec.
        undirected: Drop the directions of a directed graph.
        largest_component: Keep the largest connected component only.
        val_fraction: Share of the edges held out for validation.
        test_fraction: Share of the edges held out for the test.
        split: Published split.
        num_graphs: Number of graphs to generate in ``predict``.
        seed: Seed of the split and, with the rank, of the walks.
        nodes: Ids of all nodes (public), a file of them, or ``from_edges``.
        node_column: Column of that file that holds the ids.
        names: ``numbers`` publishes numbers in a secret random order instead of names.
        source_column: Column of an edge list that holds the first id of each edge.
        target_column: Column that holds the second id.
    """

    batches: ClassVar[Literal["edges", "walks"]] = "walks"

    def __init__(
        self,
        name: str = "les_miserables",
        walk_length: int = 16,
        batch_size: int = 128,
        steps_per_epoch: int = 100,
        p: float = 1.0,
        q: float = 1.0,
        *,
        undirected: bool = False,
        largest_component: bool = False,
        val_fraction: float = 0.0,
        test_fraction: float = 0.0,
        split: str | None = None,
        num_graphs: int = 1,
        seed: int = 0,
        nodes: str | Sequence[str] | None = None,
        node_column: str | None = None,
        names: Literal["keep", "numbers"] = "keep",
        source_column: str | int | None = None,
        target_column: str | int | None = None,
    ) -> None:
        super().__init__(
            name,
            steps_per_epoch=steps_per_epoch,
            undirected=undirected,
            largest_component=largest_component,
            val_fraction=val_fraction,
            test_fraction=test_fraction,
            split=split,
            num_graphs=num_graphs,
            seed=seed,
            nodes=nodes,
            node_column=node_column,
            names=names,
            source_column=source_column,
            target_column=target_column,
        )
        if batch_size < 1 or walk_length < 2:
            raise ValueError(
                "batch_size must be positive and walk_length at least 2, got "
                f"{batch_size} and {walk_length}"
            )
        self.walk_length = walk_length
        self.batch_size = batch_size
        self.p = p
        self.q = q

    def train_dataloader(self) -> DataLoader[Tensor]:  # type: ignore[override]
        """Fresh walks in each batch, of shape ``(B, L)``."""
        return DataLoader(_Walks(self), batch_size=None)


class _Walks(Dataset[Tensor]):
    """As many batches of walks as an epoch has."""

    def __init__(self, data: RandomWalkDataModule) -> None:
        rank, ranks = 0, 1
        if data.trainer is not None:
            rank, ranks = data.trainer.global_rank, data.trainer.world_size
        self.count = max(1, data.batch_size // ranks)
        self.data = data
        self.adjacency = adjacency(data.train_graph)
        self.rng = np.random.default_rng((data.seed, rank))

    def __len__(self) -> int:
        return int(self.data.steps_per_epoch or 1)

    def __getitem__(self, index: int) -> Tensor:
        if index >= len(self):
            raise IndexError(index)
        data = self.data
        walks = random_walks(
            self.adjacency, self.count, data.walk_length, self.rng, p=data.p, q=data.q
        )
        return torch.from_numpy(walks)
