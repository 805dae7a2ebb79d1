"""Base class of methods that draw synthetic graphs, which are all evaluated in the same way."""

import warnings
from abc import abstractmethod
from functools import partial
from typing import Any

import torch
from pytorch_lightning import LightningDataModule
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.attributes import (
    PUBLIC_ATTRIBUTES,
    NodeAttributes,
    attach,
    packed,
    stored,
    unpacked,
)
from lightning_dpg.graph.pair_space import Kind, PairSpace, pair_space, without_directions
from lightning_dpg.interfaces import (
    AttributedGraphRecords,
    GraphRecords,
    HoldsClasses,
    KindOfRecords,
)
from lightning_dpg.methods.base import PrivateModule, check_num_nodes, checked_names
from lightning_dpg.metrics.functional import statistics
from lightning_dpg.metrics.link_prediction import LinkMetrics, Score, degree_product
from lightning_dpg.nn.attribute_rows import attributes_alone
from lightning_dpg.preflight.data import served_records
from lightning_dpg.preflight.typed_trainer import typed

NO_EDGES = (
    "the synthetic graph has no edge: what was released, with its noise, leaves none\n"
    "a fit at a larger epsilon may show some; its cost adds to what is spent"
)


class Synthesizer(PrivateModule):
    """A method that learns one graph and draws synthetic ones.

    :meth:`sample` and :meth:`score` read released tensors only; so do ``predict`` and the release.
    Validation and test compare with the private graph, and log under ``nonprivate/``.

    Attributes:
        node_names: Names of the nodes (public).
        node_attributes: Attributes of the nodes (public), which all synthetic graphs carry.
        kind: Kind of the graph (public).
        num_left: Number of left nodes of a bipartite graph (public), which come first.
    """

    def __init__(self) -> None:
        super().__init__()
        self.node_names: list[str] | None = None
        self.node_attributes: NodeAttributes | None = None
        self.kind: Kind = "undirected"
        self.num_left: int | None = None
        self._link_metrics: LinkMetrics | None = None  # of the validation or the test that runs
        self._control: tuple[Tensor, Score] | None = None  # attributes, and their score alone
        self._data_state: dict[str, Any] | None = None  # split and numbering (private)

    def accept_data(self, data: object) -> None:
        """Refuse data of another kind; take the number of nodes, unless it is set."""
        records = served_records(type(self).__name__, self.capabilities.reads, data)
        super().accept_data(data)
        if not isinstance(records, GraphRecords):
            return  # methods for sets take facts of their own
        if self.hparams["num_nodes"] is None:
            self.take_num_nodes(records.num_nodes)
        self._take_kind(records)
        check_num_nodes(self, records.num_nodes)

    @property
    def space(self) -> PairSpace:
        """Pairs of nodes that may be linked (public)."""
        return pair_space(self.kind, self.hparams["num_nodes"], self.num_left)

    @property
    def edge_record(self) -> str:
        """Unit of protection in words; plans need it before the number of nodes is known."""
        return pair_space(self.kind, 0, self.num_left).record

    def _take_kind(self, records: GraphRecords) -> None:
        if isinstance(records, KindOfRecords):
            self.take_kind(records.kind, records.num_left)

    def take_kind(self, kind: Kind, num_left: int | None) -> None:
        """Keep the public kind of the graph; extended by methods that have a form for each kind."""
        self.kind, self.num_left = kind, num_left

    def take_num_nodes(self, num_nodes: int) -> None:
        """Keep the public number of nodes of the data; extended by methods that computed with it."""
        self.hparams["num_nodes"] = num_nodes

    @abstractmethod
    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw the edges of a synthetic graph, shape ``(M, 2)``; equal for equal generators."""

    @abstractmethod
    def score(self, pairs: Tensor) -> Tensor:
        """Likeliness of pairs of nodes to be linked: ``(P, 2)`` to ``(P,)``, higher is likelier."""

    @abstractmethod
    def released_state(self) -> dict[str, Tensor]:
        """Tensors that :meth:`sample` and :meth:`score` read, by name in the state dict.

        Whole numbers are 0 or more and tables are finite, or readers refuse the release.
        """

    def sample(self, generator: torch.Generator) -> Data:
        """Draw a synthetic graph on the public nodes, with their public attributes; warn of an empty one."""
        edges = self.sample_edges(generator)
        if not len(edges):
            warnings.warn(NO_EDGES, stacklevel=2)
        graph = self.space.graph(edges, self.node_names)
        if self.node_attributes is not None:
            attach(graph, self.node_attributes)
        return graph

    def attribute_arrays(self) -> dict[str, Any]:
        """Arrays of the public attributes for a release; empty without attributes."""
        return {} if self.node_attributes is None else stored(self.node_attributes)

    def setup(self, stage: str) -> None:
        """Refuse to test on edges that the method was trained on.

        The data module of a test gets the numbering of the nodes and the split of the training, or
        refuses them. Lightning hands it both from a checkpoint.
        """
        super().setup(stage)
        data = typed(self.trainer).datamodule
        state = self._data_state if stage in ("validate", "test") else None
        if state is not None and isinstance(data, LightningDataModule):
            data.load_state_dict(state)

    def on_fit_start(self) -> None:
        """Copy the public facts of the data."""
        records = self.records
        assert isinstance(records, GraphRecords)  # methods for sets copy facts of their own
        check_num_nodes(self, records.num_nodes)
        self.node_names = checked_names(self.node_names, records.node_names)
        self.node_attributes = _public_attributes(records)
        self._take_kind(records)
        self.assumptions = list(records.assumptions)
        if self.node_attributes is not None and PUBLIC_ATTRIBUTES not in self.assumptions:
            self.assumptions.append(PUBLIC_ATTRIBUTES)  # of records of a user's own
        data = typed(self.trainer).datamodule
        self._data_state = data.state_dict() if isinstance(data, LightningDataModule) else None
        # Every rank trains on other public randomness; equal randomness would repeat the work.
        torch.manual_seed(torch.initial_seed() + 1 + self.global_rank)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the public names and attributes of the nodes with the weights."""
        super().on_save_checkpoint(checkpoint)
        checkpoint["node_names"] = self.node_names
        checkpoint["node_attributes"] = packed(self.attribute_arrays())
        checkpoint["kind"], checkpoint["num_left"] = self.kind, self.num_left
        checkpoint["data_state"] = self._data_state

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the ledger, and names and attributes of the nodes."""
        super().on_load_checkpoint(checkpoint)
        self.node_names = checkpoint["node_names"]
        attributes = checkpoint.get("node_attributes")  # not in checkpoints of earlier versions
        self.node_attributes = unpacked(attributes) if attributes else None
        # Checkpoints of earlier versions have no kind.
        self.take_kind(checkpoint.get("kind", "undirected"), checkpoint.get("num_left"))
        self._data_state = checkpoint.get("data_state")  # not in checkpoints of earlier versions

    def on_validation_epoch_start(self) -> None:
        """Forget pairs of an epoch that an error has ended."""
        self._link_metrics = None

    def on_test_epoch_start(self) -> None:
        """Forget pairs of an epoch that an error has ended."""
        self._link_metrics = None

    def validation_step(self, batch: tuple[Tensor, Tensor, Tensor], batch_idx: int) -> None:
        """Measure link prediction on held-out edges (reads the private graph)."""
        if self.trainer.sanity_checking:  # nothing is released yet that could be evaluated
            return
        edges, non_edges, _ = batch
        self._add_links(self._attribute_baseline(), edges, {"": non_edges})

    def on_validation_epoch_end(self) -> None:
        """Log the figures over all batches and processes."""
        figures = self._link_figures()
        if not figures:
            return
        values = {f"nonprivate/val_{name}": value for name, value in figures.items()}
        values["nonprivate/val"] = figures["auc"] + figures["ap"]
        self.log_dict(values, prog_bar=True, sync_dist=True)  # equal in all processes

    def _add_links(
        self, baselines: dict[str, Score], edges: Tensor, others: dict[str, Tensor]
    ) -> None:
        """Add a batch of pairs to the figures of the epoch."""
        scores = {"": self.score} | baselines
        if self._link_metrics is None:
            self._link_metrics = LinkMetrics(scores, others).to(self.device)
        self._link_metrics.add(scores, edges, others)

    def _link_figures(self) -> dict[str, Tensor]:
        """Return the figures of the epoch, and forget its pairs; nothing without a batch."""
        links, self._link_metrics = self._link_metrics, None
        return {} if links is None else links.compute()

    def _attribute_baseline(self) -> dict[str, Score]:
        """Score by public attributes alone, which reads no edge; nothing without attributes."""
        if not isinstance(self.records, AttributedGraphRecords):
            return {}
        attributes = self.records.attributes
        if self._control is None or self._control[0] is not attributes:
            self._control = attributes, attributes_alone(attributes, self.num_left)
        return {"attributes_alone": self._control[1]}

    def link_values(self, batch: tuple[Tensor, Tensor, Tensor]) -> dict[str, float]:
        """Compare scores of held-out edges with baselines (reads the private graph).

        Args:
            batch: Edges, uniform non-edges, and non-edges whose ends have the degrees of edges.
        """
        self._add_all_links(batch)
        return {name: float(value) for name, value in self._link_figures().items()}

    def _add_all_links(self, batch: tuple[Tensor, Tensor, Tensor]) -> None:
        edges, non_edges, matched = batch
        records = self.records
        assert isinstance(records, GraphRecords)
        degrees: dict[str, Score] = {"degree_product": partial(degree_product, records.graph)}
        baselines = degrees | self._attribute_baseline()
        self._add_links(baselines, edges, {"": non_edges, "matched_": matched})

    def test_step(self, batch: tuple[Tensor, Tensor, Tensor], batch_idx: int) -> None:
        """Compare link prediction with its baselines (reads the private graph).

        The degree product is the baseline that explains much of the usual AUC; the second AUC,
        against non-edges whose ends have the degrees of edges, excludes this effect. Where public
        attributes are used, the control with no edge read (epsilon 0) stands beside both.
        """
        self._add_all_links(batch)

    def on_test_epoch_end(self) -> None:
        """Log these figures, and the statistics of a sample and of the graph.

        The figures cover the pairs of all batches and processes. Each process computes the
        statistics, which are equal, from the same released tensors.
        """
        figures = self._link_figures()
        if not figures:
            return
        records = self.records
        assert isinstance(records, GraphRecords)
        values: dict[str, Tensor | float] = {**figures}
        sample = self.sample(torch.Generator().manual_seed(0))
        original = statistics(without_directions(records.graph))
        for name, value in statistics(without_directions(sample)).items():
            values[name] = value
            values[f"{name}_original"] = original[name]
        logged = {f"nonprivate/test_{name}": value for name, value in values.items()}
        self.log_dict(logged, sync_dist=True)  # equal in all processes

    def predict_step(self, seed: Tensor, batch_idx: int) -> Data:
        """Draw one synthetic graph per seed."""
        return self.sample(torch.Generator().manual_seed(int(seed)))


def _public_attributes(records: GraphRecords) -> NodeAttributes | None:
    """Return the attributes that records serve as public; None without any."""
    if isinstance(records, AttributedGraphRecords):
        return NodeAttributes(records.attributes, list(records.attribute_names), records.classes)
    classes = records.classes if isinstance(records, HoldsClasses) else None
    # Classes may be public without any other attribute.
    return None if classes is None else NodeAttributes(torch.empty(len(classes), 0), [], classes)
