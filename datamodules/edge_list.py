"""One graph: all records, Poisson samples or walks of them, and held-out edges."""

from functools import cached_property
from typing import Any

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.data import Data

from lightning_dpg.datamodules.base import GraphDataModule
from lightning_dpg.datamodules.batches import (
    AllRecords,
    Batches,
    TrainBatches,
    check_enough_steps,
    check_steps_per_epoch,
    number_of_steps,
    place,
    poisson_loader,
    request_of,
)
from lightning_dpg.datamodules.held_out import numbers_in_file, public_coin, read_split
from lightning_dpg.datamodules.loading import GraphSource
from lightning_dpg.datamodules.nodes import ColumnsGiven, Nodes, NodesGiven
from lightning_dpg.datamodules.records import AttributedGraph, EdgeRecords, LinkBatch, OneGraph
from lightning_dpg.datamodules.transfers import of_edges
from lightning_dpg.datamodules.walk_batches import WalkBatches
from lightning_dpg.errors import Refusal
from lightning_dpg.formats.columns import Columns
from lightning_dpg.graph.graph import distinct_edges
from lightning_dpg.graph.held_out import degree_matched_non_edges, uniform_non_edges
from lightning_dpg.graph.pair_space import Kind
from lightning_dpg.interfaces import BatchRequest, Transfers

_SPLIT = ("val_fraction", "test_fraction", "split", "seed")
"""Arguments that choose the held-out edges."""


class EdgeListDataModule(GraphDataModule):
    """One graph, whose undirected edges are the records; it serves the batches that a method requests.

    The data of a Poisson sample are edges of shape ``(B, 2)``, one row ``i < j`` per undirected edge.
    After ``setup`` these attributes are there, all of them private.

    A DataFrame has an edge per row; its columns of ids are named, or recognized by names such as
    ``from_account`` and ``to_account``. Repeated edges and loops are dropped, and counted for the
    owner only:

    >>> import pandas as pd
    >>> table = pd.DataFrame({"payer": ["a", "b", "b"], "at": [9, 8, 7], "payee": ["b", "a", "c"]})
    >>> data = EdgeListDataModule(table, nodes=Nodes(names="ids"))
    >>> data.setup("fit")
    >>> data.edges.tolist(), data.records.node_names
    ([[0, 1], [1, 2]], ['a', 'b', 'c'])
    >>> print(data.summary)  # doctest: +NORMALIZE_WHITESPACE
    read table: 3 nodes, 2 edges (table; columns 'payer' and 'payee' of 3;
    0 repeated, 0 loops, edges whose direction is dropped: 1); e.g. a, b, ...; dropped from the edges: at

    The ids that occur in edges are private. By default records have numbers in a secret order in their
    place; the graph has them:

    >>> data = EdgeListDataModule(table)
    >>> data.setup("fit")
    >>> sorted(data.graph.node_names), data.records.node_names
    (['a', 'b', 'c'], ['0', '1', '2'])

    A public list of nodes makes the guarantee stronger:

    >>> EdgeListDataModule([("a", "b"), ("b", "c")]).graph.num_nodes
    3
    >>> EdgeListDataModule([("a", "b"), ("b", "c")], nodes=["a", "b", "c", "d"]).graph.num_nodes
    4

    Arrays of shape ``(M, 2)`` hold edges, and square ones are adjacency matrices:

    >>> import numpy as np
    >>> EdgeListDataModule(np.array([[0, 1], [1, 2], [2, 0]])).num_edges
    3
    >>> EdgeListDataModule(np.ones((3, 3))).num_edges
    3

    Attributes:
        train_graph: Graph of the training edges, with all nodes.
        edges: Training records of shape ``(M, 2)``.
        train_transfers: Transfers of these edges, if their amounts or times are read.
        val_links: Held-out edges and non-edges for validation, or None without a split.
        test_links: Held-out edges and non-edges for the test, or None without a split.
    """

    edges: Tensor
    train_transfers: Transfers | None
    val_links: LinkBatch | None
    test_links: LinkBatch | None

    def __init__(
        self,
        name: GraphSource = "les_miserables",
        *,
        steps_per_epoch: int | None = None,
        undirected: bool = False,
        largest_component: bool = False,
        val_fraction: float = 0.0,
        test_fraction: float = 0.0,
        split: str | None = None,
        num_graphs: int = 1,
        seed: int = 0,
        nodes: NodesGiven = Nodes(),
        columns: ColumnsGiven = Columns(),
        kind: Kind = "undirected",
    ) -> None:
        """Store the arguments; ``setup`` checks them and reads the graph.

        Args:
            name: Built-in graph, data set under ``$LIGHTNING_DPG_DATA``, or path of a file. From
                Python also a graph of networkx or PyTorch Geometric, a data set of one graph, a
                square matrix of numpy or scipy, a DataFrame or an array of shape ``(M, 2)`` with an
                edge per row, or a list of pairs, see :func:`load_reading`.
            steps_per_epoch: Batches per epoch of methods that do not say it themselves; 1 / q
                rounded up by default.
            undirected: Drop the directions of a graph whose source says that it is directed, instead
                of refusing it. Lists and tables of edges have none unless ``kind`` says so.
            largest_component: Keep the largest connected component only. It is found by looking
                at the private edges, which becomes an assumption of the guarantee.
            val_fraction: Probability that an edge is held out for validation, by a public coin.
            test_fraction: Probability that an edge is held out for the test, by the same coin.
            split: Published split in NetGAN's layout instead of the coin: the name of an archive
                in ``$LIGHTNING_DPG_DATA/npz`` or its path.
            num_graphs: Number of graphs to generate in ``predict``, from the seeds 0, 1, ...
            seed: Seed of the coin and of the sampled non-edges (public).
            nodes: Ids of all nodes, or more of :class:`Nodes`.
            columns: Columns of an edge list or a table that hold the relation.
            kind: ``undirected``; ``directed``, where an edge is an ordered pair of nodes; or
                ``bipartite``, where an edge links a left and a right node, and the side of each
                node is public.
        """
        super().__init__(
            name,
            undirected=undirected,
            largest_component=largest_component,
            num_graphs=num_graphs,
            nodes=nodes,
            columns=columns,
            kind=kind,
        )
        self.steps_per_epoch = steps_per_epoch
        self.val_fraction = val_fraction
        self.test_fraction = test_fraction
        self.split = split
        self.seed = seed
        self._is_set_up = False
        self.train_transfers = None

    def setup(self, stage: str) -> None:
        """Read the graph and split its edges; prediction needs neither."""
        if stage == "predict":
            return
        if not self._is_set_up:
            self._split_edges()
        if self._numbering is not None and self.trainer is not None and self.trainer.world_size > 1:
            # All processes take the numbering of the first one.
            self.load_state_dict(self.trainer.strategy.broadcast(self.state_dict()))

    def _split_edges(self) -> None:
        self._check_arguments()
        vars(self).pop("train_graph", None)
        if self.split is None:
            self._split_by_coin()
        else:
            self._split_as_published(self.split)
        if self.val_links is not None or self.test_links is not None:
            self.train_graph = self._on_nodes(self.edges)
        self.train_transfers = self._of_training()
        self._is_set_up = True

    @cached_property
    def train_graph(self) -> Data:
        """Graph of the training edges, with all nodes."""
        return self._published(self.graph)

    @property
    def records(self) -> OneGraph:
        """Return the training records (private), after ``setup``."""
        self.times_read += 1
        return self._held()

    def _held(self) -> OneGraph:
        """Return the training records in memory."""
        nodes = self.train_graph if "train_graph" in vars(self) else self._published(self._nodes)
        has_attributes = getattr(nodes, "attribute_names", None)
        kind = AttributedGraph if has_attributes else OneGraph
        private = self.private_columns, self.private_labels, self.train_transfers
        return kind(nodes, self.edges, self.assumptions, *private, lambda: self.train_graph)

    def _of_training(self) -> Transfers | None:
        """Return the transfers of the training edges: those of held-out edges are held out."""
        if self.transfers is None:
            return None
        is_directed = self.kind == "directed"
        return of_edges(self.transfers, self.edges, self.num_nodes, is_directed=is_directed)

    def state_dict(self) -> dict[str, Any]:
        """Return the numbering of the nodes and the settings of the split (public)."""
        return {**super().state_dict(), **{name: getattr(self, name) for name in _SPLIT}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a numbering; refuse a split that holds out training edges.

        Raises:
            MisconfigurationException: If the numbering or the split is another one, and edges are
                to be read.
        """
        self._refuse_other_split(state_dict)
        before = self._read
        super().load_state_dict(state_dict)
        if self._read is not before:
            self._split_edges()

    def _refuse_other_split(self, state: dict[str, Any]) -> None:
        is_prediction = self.trainer is not None and self.trainer.predicting
        then_set = {name: state[name] for name in _SPLIT if name in state}
        changed = {name: old for name, old in then_set.items() if getattr(self, name) != old}
        if set(changed) == {"seed"} and not self._holds_out(state):
            return  # of a coin that decides nothing
        if changed and not is_prediction:
            now = ", ".join(f"{name} {getattr(self, name)}" for name in changed)
            then = ", ".join(f"{name} {old}" for name, old in changed.items())
            raise MisconfigurationException(
                f"the method was trained with {then}, and now {now} is set: its held-out edges "
                "are among those that it has learned from\n"
                f"set {then} in data.init_args, or fit anew with the other split"
            )

    @staticmethod
    def _holds_out(state: dict[str, Any]) -> bool:
        return bool(state["split"] or state["val_fraction"] or state["test_fraction"])

    @property
    def request(self) -> BatchRequest:
        """Return the batches that the method of the trainer requests."""
        return request_of(self.trainer)

    def check_request(self, request: BatchRequest, max_epochs: int | None) -> None:
        """Refuse a request that the settings contradict."""
        check_enough_steps(request, self.steps_per_epoch, max_epochs)

    def train_dataloader(self) -> TrainBatches:
        """Return the requested batches; each process gets its share of every batch."""
        request = self.request
        steps = number_of_steps(request, self.steps_per_epoch)
        if request.kind == "all":
            return AllRecords(self.records, steps)
        if request.kind == "walks":
            rank, world_size = place(self.trainer)
            share = request._replace(num_walks=max(1, request.num_walks // world_size))
            walks = WalkBatches(self.train_graph, share, steps, (self.seed, rank))
            return DataLoader(walks, batch_size=None)
        rate = request.sample_rate
        return poisson_loader(EdgeRecords(self.edges, rate, self.space), rate, steps, self.trainer)

    def val_dataloader(self) -> DataLoader[LinkBatch] | list[LinkBatch]:
        """Return one batch of validation links, or nothing without a split."""
        return _link_loader(self.val_links)

    def test_dataloader(self) -> DataLoader[LinkBatch] | list[LinkBatch]:
        """Return one batch of test links, or nothing without a split."""
        return _link_loader(self.test_links)

    def _check_arguments(self) -> None:
        check_steps_per_epoch(self.steps_per_epoch)
        for argument in ("val_fraction", "test_fraction"):
            if not 0 <= getattr(self, argument) < 1:
                raise Refusal(f"{argument} must lie in [0, 1), got {getattr(self, argument)}")
        held_out = self.val_fraction + self.test_fraction
        if held_out >= 1:
            raise Refusal(f"val_fraction + test_fraction must be below 1, got {held_out}")
        if self.split is not None and self.kind != "undirected":
            raise MisconfigurationException(
                "split is for undirected graphs: set kind to undirected"
            )
        if self.split is not None and held_out:
            raise MisconfigurationException(
                "split comes with its own held-out edges: set val_fraction and test_fraction to 0"
            )

    def _split_by_coin(self) -> None:
        nodes, edges = self._once()
        self.edges, self.val_links, self.test_links = edges, None, None
        held_out = self.val_fraction + self.test_fraction
        if not held_out:
            return
        coin = public_coin(nodes.node_names, edges, self.seed)
        self.edges = edges[coin >= held_out]
        if not len(self.edges):
            raise Refusal("val_fraction and test_fraction leave no edge to train on")
        self.val_links = self._links(edges[coin < self.val_fraction], 1)
        self.test_links = self._links(edges[(coin >= self.val_fraction) & (coin < held_out)], 2)
        self.assumptions.append(
            "that a public coin per node pair holds edges out of the training (figures about "
            "held-out edges are not covered by the guarantee)"
        )

    def _split_as_published(self, split: str) -> None:
        nodes = numbers_in_file(self._nodes.node_names, self._file_order)
        parts = read_split(split, nodes)
        self.edges = parts["train_ones"]
        held_out = torch.cat([parts["val_ones"], parts["test_ones"]])
        whole = distinct_edges(torch.cat([self.edges, held_out]), self.num_nodes)
        if not torch.equal(whole, self._once()[1]):
            raise Refusal(f"split {split!r} holds other edges than the graph {self.source!r}")
        self.val_links = self._links(parts["val_ones"], 1, parts["val_zeros"])
        self.test_links = self._links(parts["test_ones"], 2, parts["test_zeros"])
        self.assumptions.append(
            f"the published split {split} (although the choice of its held-out edges looked at all "
            "edges, and figures about held-out edges are not covered by the guarantee)"
        )

    def _links(
        self, edges: Tensor, stream: int, non_edges: Tensor | None = None
    ) -> LinkBatch | None:
        if not len(edges):
            return None
        generator = torch.Generator().manual_seed(self.seed + stream)
        if non_edges is None:
            non_edges = uniform_non_edges(self.graph, len(edges), generator)
        return LinkBatch(edges, non_edges, degree_matched_non_edges(self.graph, edges, generator))


def _link_loader(links: LinkBatch | None) -> DataLoader[LinkBatch] | list[LinkBatch]:
    return [] if links is None else DataLoader(Batches([links]), batch_size=None)
