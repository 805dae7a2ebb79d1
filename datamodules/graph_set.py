"""Sets of small graphs: all records, or Poisson samples of the edges of all graphs together."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.data import Data

from lightning_dpg.datamodules.batches import (
    AllRecords,
    Batches,
    PoissonRecords,
    TrainBatches,
    check_enough_steps,
    check_steps_per_epoch,
    number_of_steps,
    poisson_loader,
    request_of,
)
from lightning_dpg.datamodules.built_in_sets import BUILT_IN_SETS, SET_ASSUMPTIONS
from lightning_dpg.datamodules.identity import identity_of
from lightning_dpg.datamodules.loading import ODD_INSIDE, GraphSetSource
from lightning_dpg.datamodules.records import EdgeRecords, GraphSet
from lightning_dpg.errors import Refusal
from lightning_dpg.formats.conversion import read_networkx, read_pyg
from lightning_dpg.formats.io import GraphFormatError
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.graph.pair_numbers import num_pairs
from lightning_dpg.interfaces import BatchRequest, HasCapabilities, Identity


class GraphSetDataModule(pl.LightningDataModule):
    """A set of graphs, whose edges are the records; it serves the batches that a method requests.

    The nodes of all graphs are numbered in one sequence, those of the first graph first. The data of
    a Poisson sample are edges in these numbers, shape ``(B, 2)``.

    >>> import networkx as nx
    >>> data = GraphSetDataModule([nx.path_graph(3), nx.complete_graph(3)])
    >>> data.setup("fit")
    >>> data.sizes.tolist(), data.edges.tolist()
    ([3, 3], [[0, 1], [1, 2], [3, 4], [3, 5], [4, 5]])

    A data set of PyTorch Geometric brings its labels and features along:

    >>> from torch_geometric.datasets import FakeDataset
    >>> data = GraphSetDataModule(FakeDataset(4, avg_num_nodes=10))
    >>> data.setup("fit")
    >>> len(data.graphs), data.labels.shape
    (4, torch.Size([4]))

    Attributes:
        graphs: The G graphs (private), as from ``make_graph``, with ``y`` of shape ``(1,)`` in a
            labeled set, and with node features ``x`` if there are any.
        edges: Edges of all graphs (private), shape ``(M, 2)``, rows ``i < j`` in ascending order.
        sizes: Number of nodes of each graph, shape ``(G,)``.
        graph_of: Number of each node's graph, shape ``(N,)``.
        labels: Label of each graph, shape ``(G,)``; None without labels.
        max_occurrences: Largest number of rows of ``edges`` that are one edge of the private data
            and so change together; a batch holds all of them or none.
        assumptions: What a guarantee takes for public.
        preparation: The assumptions because of the preparation of the data.
    """

    times_read = 0  # number of times that `records` was read

    graphs: list[Data]
    edges: Tensor
    sizes: Tensor
    graph_of: Tensor
    labels: Tensor | None
    max_occurrences: int = 1

    def __init__(
        self,
        name: GraphSetSource = "planted_sets",
        *,
        steps_per_epoch: int | None = None,
        undirected: bool = False,
        num_graphs: int = 1,
    ) -> None:
        """Store the arguments; ``setup`` checks them and reads the set.

        Args:
            name: Built-in set, a list of graphs of PyTorch Geometric or networkx, or a data set
                of PyTorch Geometric. For :class:`TUGraphDataModule` also a set under
                ``$LIGHTNING_DPG_DATA/tu``, or the path of a folder.
            steps_per_epoch: Batches per epoch of methods that do not say it themselves; 1 / q
                rounded up by default.
            undirected: Drop the directions of directed graphs, and read links that are listed in one
                direction only as undirected edges, instead of refusing them.
            num_graphs: Number of graphs to generate in ``predict``, from the seeds 0, 1, ...
        """
        super().__init__()
        # No save_hyperparameters: graphs among them would end in checkpoints and logs.
        self.source = name
        self.steps_per_epoch = steps_per_epoch
        self.undirected = undirected
        self.num_graphs = num_graphs
        self.assumptions: list[str] = []
        self.preparation: list[str] = []
        self._is_set_up = False

    def read_graphs(self) -> list[Data]:
        """Return the graphs of the set (private); subclasses read them from elsewhere."""
        if not isinstance(self.source, (str, Path)):
            return _converted(self.source, self.undirected)
        if (name := str(self.source)) not in BUILT_IN_SETS:
            raise GraphFormatError(
                f"unknown graph set {name!r}\nbuilt in: {', '.join(BUILT_IN_SETS)}\n"
                "sets in files: class_path TUGraphDataModule"
            )
        if name in SET_ASSUMPTIONS:
            self.assumptions.append(SET_ASSUMPTIONS[name])
        return BUILT_IN_SETS[name]()

    def setup(self, stage: str) -> None:
        """Read the graphs and number their nodes in one sequence; generation needs neither."""
        if self._is_set_up or (stage == "predict" and not self._are_predicted()):
            return
        self._check_arguments()
        self.graphs = self.read_graphs()
        if not self.graphs:
            raise GraphFormatError("the set holds no graph\nexpected one graph or more")
        self.sizes = torch.tensor([graph.num_nodes for graph in self.graphs])
        starts = self.sizes.cumsum(0) - self.sizes
        self.graph_of = torch.arange(len(self.sizes)).repeat_interleave(self.sizes)
        self.edges = torch.cat(
            [
                undirected_edges(graph) + start
                for graph, start in zip(self.graphs, starts.tolist(), strict=True)
            ]
        )
        if not len(self.edges):
            raise GraphFormatError("the set holds no edge\nexpected one edge or more")
        self.labels = _labels(self.graphs)
        self.preparation = list(self.assumptions)
        self.assumptions.append(
            "the number of graphs, the nodes of each, their features and the labels of the graphs"
        )
        self._is_set_up = True

    @property
    def records(self) -> GraphSet:
        """Return the training records (private), after ``setup``."""
        self.times_read += 1
        return GraphSet(
            self.graphs,
            self.edges,
            self.sizes,
            self.graph_of,
            self.labels,
            max_occurrences=self.max_occurrences,
            assumptions=self.assumptions,
            preparation=self.preparation,
        )

    def identity(self) -> Identity:
        """Return the canonical content of all graphs (private), after ``setup``."""
        return identity_of(self.graphs)

    @property
    def num_edges(self) -> int:
        """Return the number of undirected edges of all graphs (private)."""
        return len(self.edges)

    @property
    def num_pairs(self) -> int:
        """Return the number of pairs of nodes of one graph (public)."""
        return sum(map(num_pairs, self.sizes.tolist()))

    def write_key(self, path: Path) -> bool:
        """Write nothing: a set publishes no numbers for names."""
        return False

    @property
    def request(self) -> BatchRequest:
        """Return the batches that the method of the trainer requests."""
        return request_of(self.trainer)

    def check_request(self, request: BatchRequest, max_epochs: int | None) -> None:
        """Refuse walks, which one graph has, and a request that the settings contradict."""
        if request.kind == "walks":
            raise MisconfigurationException(
                f"{type(self).__name__} serves no walks\nuse EdgeListDataModule"
            )
        check_enough_steps(request, self.steps_per_epoch, max_epochs)

    def train_dataloader(self) -> TrainBatches:
        """Return the requested batches; each process gets its share of every Poisson sample."""
        request = self.request
        steps = number_of_steps(request, self.steps_per_epoch)
        if request.kind == "all":
            return AllRecords(self.records, steps)
        rate = request.sample_rate
        return poisson_loader(self.edge_records(rate), rate, steps, self.trainer)

    def edge_records(self, sample_rate: float) -> PoissonRecords:
        """Return the records of Poisson samples."""
        return EdgeRecords(self.edges, sample_rate)

    def val_dataloader(self) -> list[Any]:
        """Return nothing: no edge is held out."""
        return []

    def test_dataloader(self) -> DataLoader[Tensor]:
        """Return one batch, the numbers of all graphs, shape ``(G,)``."""
        return DataLoader(Batches([torch.arange(len(self.graphs))]), batch_size=None)

    def predict_dataloader(self) -> DataLoader[Tensor]:
        """Return the seeds of the graphs to generate, or the graphs to classify."""
        if self._are_predicted():
            return self.test_dataloader()
        if self.num_graphs < 1:
            raise Refusal(f"num_graphs must be positive, got {self.num_graphs}")
        return DataLoader(Batches(list(torch.arange(self.num_graphs))), batch_size=None)

    def _are_predicted(self) -> bool:
        """Return whether the method predicts labels of these graphs instead of drawing others."""
        method = None if self.trainer is None else self.trainer.lightning_module
        return isinstance(method, HasCapabilities) and method.capabilities.is_inductive

    def _check_arguments(self) -> None:
        check_steps_per_epoch(self.steps_per_epoch)


def split_graphs(union: Data, sizes: Sequence[int]) -> list[Data]:
    """Split a union into graphs of the given sizes, in the order of its nodes.

    Args:
        union: Graph without edges between parts, perhaps with a label ``y`` of each part.
        sizes: Number of nodes of each part.

    Returns:
        The parts with their labels; their nodes are numbered from 0, and named so.
    """
    ends = np.cumsum(sizes)
    link_ends = np.searchsorted(union.edge_index[0].numpy(), ends)
    links = np.split(union.edge_index.numpy(), link_ends[:-1], axis=1)
    labels = [None] * len(sizes) if union.y is None else union.y.split(1)
    return [
        Data(
            edge_index=torch.from_numpy(part - (end - size)),
            num_nodes=size,
            node_names=[str(node) for node in range(size)],
            y=label,
        )
        for part, size, end, label in zip(links, sizes, ends.tolist(), labels, strict=True)
    ]


def _converted(graphs: Iterable[Data | nx.Graph], undirected: bool) -> list[Data]:
    """Check and convert the graphs of a list or of a data set."""
    kind = type(graphs).__name__
    if isinstance(graphs, (Data, nx.Graph)):
        raise GraphFormatError(
            f"name: a {kind} is one graph\nexpected a list of graphs; of one graph: EdgeListDataModule"
        )
    try:
        listed = [*graphs]
    except ODD_INSIDE:
        raise GraphFormatError(
            f"name: a {kind} is no set of graphs\nexpected the name of a built-in set, or a list of "
            "graphs of PyTorch Geometric or networkx"
        ) from None
    return [_converted_graph(graph, number, undirected) for number, graph in enumerate(listed)]


def _converted_graph(graph: Data | nx.Graph, number: int, undirected: bool) -> Data:
    """Check and convert a graph of a list; it keeps label and features."""
    if not isinstance(graph, (Data, nx.Graph)):
        raise GraphFormatError(
            f"graph {number} of the list: a {type(graph).__name__} is no graph\n"
            "expected a graph of PyTorch Geometric or networkx"
        )
    try:
        if isinstance(graph, nx.Graph):
            return read_networkx(graph, undirected=undirected, of_set=True).graph
        converted = read_pyg(graph, undirected=undirected, of_set=True).graph
    except GraphFormatError as error:
        raise GraphFormatError(f"graph {number} of the list: {error}") from None
    try:
        converted.y = None if graph.y is None else torch.as_tensor(graph.y).reshape(-1)
    except ODD_INSIDE:
        raise GraphFormatError(
            f"graph {number} of the list: a label y of type {type(graph.y).__name__}\n"
            "expected one number, the class of the graph"
        ) from None
    return converted


def _labels(graphs: Sequence[Data]) -> Tensor | None:
    """Return the labels of the graphs, if all have one."""
    labels = [graph.y for graph in graphs if graph.y is not None]
    if not labels:
        return None
    for number, graph in enumerate(graphs):
        if graph.y is not None and graph.y.numel() != 1:
            raise GraphFormatError(
                f"graph {number} has {graph.y.numel()} labels y\nexpected one label of each graph: "
                "delete y if its entries are classes of nodes"
            )
    if len(labels) < len(graphs):
        raise GraphFormatError(
            f"{len(labels)} of {len(graphs)} graphs have a label y\n"
            "expected exactly one for each of them, or for none"
        )
    return torch.cat([label.reshape(1) for label in labels])
