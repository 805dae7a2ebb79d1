"""Base class of methods that learn classes of nodes: they predict, and draw no graph."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor, nn
from torch.nn.functional import one_hot
from torch.optim import Optimizer

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.attributes import PUBLIC_ATTRIBUTES
from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.graph.held_out import split_at_random, split_nodes
from lightning_dpg.graph.pair_space import UndirectedPairs
from lightning_dpg.interfaces import (
    AttributedGraphRecords,
    HoldsPrivateLabels,
    KeepsBudget,
    PrivateLabels,
)
from lightning_dpg.methods.base import PrivateModule, check_num_nodes, checked_names
from lightning_dpg.methods.constraints import SHARE, Constraints, either
from lightning_dpg.methods.planning import Reads, by_key
from lightning_dpg.methods.single_graph.base import statistics_of
from lightning_dpg.nn.class_student import ClassEvidence
from lightning_dpg.nn.resized_buffers import resize_own_buffers
from lightning_dpg.preflight.data import served_records
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.reports import (
    label_reports_entry,
    report_labels,
    report_log_likelihoods,
)
from lightning_dpg.privacy.sensitivity.private_columns import LABEL_REPORTS

PUBLIC_CLASSES = "the classes of the nodes that the method learns from"
"""Assumption of each guarantee of edges where classes are public."""

PUBLIC_DOMAIN = (
    "the list of classes, and which nodes have a label (the private column of a node is its label)"
)
"""Assumption of each guarantee of edges where classes are private labels."""

FEW_LABELS = 1000
"""Number of private labels below which a run warns: too many of few reports are wrong."""

NODE_CLASS_SETTINGS: Constraints = {"train_fraction": either(None, SHARE)}


class NodeClassifier(PrivateModule):
    """A method that learns classes of nodes, from public attributes and private edges.

    The step of ``fit`` makes all releases and keeps them, and functions of them, in buffers.
    :meth:`node_posteriors` are the predictions for the nodes of the graph; :meth:`predict_proba`
    predicts classes of new nodes from their attributes alone, and reads no edge. Both cost no privacy. No graph is
    drawn. A method that trains networks replaces the step: one of its steps calls
    :meth:`release_once`, and all others read public facts and releases only.

    The classes that the data hold are public, or private labels. Each private label is reported once
    by randomized response, at the cost of the row budget, and everything else reads the reports
    only. The methods know the law of the reports, see :meth:`evidence`.

    A subclass has the settings ``num_nodes``, ``split_seed`` and ``train_fraction``, which this class
    reads. One that learns private labels sets ``learns_private_labels``, has :meth:`label_reads` in
    its plan, and learns from :meth:`evidence`.

    Attributes:
        node_names: Names of the nodes (public).
        classes: Numbers of the C classes in ascending order (public), shape ``(C,)``.
        known_nodes: Nodes whose classes the method learns from (public), shape ``(K,)``.
        known_classes: Places of their classes in :attr:`classes`, shape ``(K,)``: public ones, or the
            reports of private labels.
        label_epsilon: Epsilon of these reports; infinite for public classes.
        num_private_classes: Number C of classes of private labels (public); 0 for public classes.
        posteriors: Released probabilities of the classes of all nodes, shape ``(N, C)``.
        summed: Rows that the last read sums over neighbors, shape ``(N, k)``: public ones,
            or functions of earlier releases. They are no part of the release.
    """

    capabilities = replace(
        PrivateModule.capabilities, reads=AttributedGraphRecords, is_trained=False
    )
    constraints: ClassVar[Constraints] = NODE_CLASS_SETTINGS
    records: AttributedGraphRecords

    def __init__(self) -> None:
        super().__init__()
        # Lightning counts the steps, and keeps the checkpoints, of automatic optimization only.
        self.automatic_optimization = True
        self.node_names: list[str] | None = None
        self.classes: Tensor
        self.known_nodes: Tensor
        self.known_classes: Tensor
        self.summed: Tensor
        for name in ("classes", "known_nodes", "known_classes"):
            self.register_buffer(name, torch.empty(0, dtype=torch.long))
        self.label_epsilon: Tensor = nn.Buffer(torch.tensor(torch.inf, dtype=torch.double))
        self.num_private_classes: Tensor = nn.Buffer(torch.tensor(0))
        self.posteriors: Tensor = nn.Buffer(torch.empty(0, 0))
        self.is_released: Tensor = nn.Buffer(torch.tensor(False))
        resize_own_buffers(self)

    @abstractmethod
    def release(self, source: GraphStatisticsSource, attributes: Tensor, reads: Reads) -> Tensor:
        """Pay for all planned reads, and keep what they release.

        Args:
            source: The edges and their counts (private).
            attributes: Attributes of the nodes (public), shape ``(N, F)``.
            reads: The entries of :meth:`plan`, by key; under an infinite budget without noise.

        Returns:
            Probabilities of the classes of all nodes, shape ``(N, C)``, a function of releases. Those
            of nodes with public classes are replaced by their classes.
        """

    @abstractmethod
    def predict_proba(self, attributes: Tensor) -> Tensor:
        """Predict classes from attributes of shape ``(P, F)`` alone: probabilities ``(P, C)``."""

    def node_posteriors(self) -> Tensor:
        """Probabilities of the classes of the nodes of the graph, shape ``(N, C)``."""
        return self.posteriors

    @property
    def num_nodes(self) -> int:
        """Number of nodes N (public)."""
        return int(self.hparams["num_nodes"])

    @property
    def space(self) -> UndirectedPairs:
        """Pairs of nodes that may be linked (public)."""
        return UndirectedPairs(self.num_nodes)

    @property
    def reads_private_columns(self) -> bool:
        """Whether the labels of the data are private."""
        return bool(self.num_private_classes)

    def label_reads(self) -> list[LedgerEntry]:
        """Entry of the reports of private labels; none for public classes.

        All of the row budget is for them.
        """
        budget = self.ledger.budget_of(Relation.ATTRIBUTES)
        if budget is None:
            return []
        return [label_reports_entry(budget.epsilon, int(self.num_private_classes))]

    def evidence(self) -> ClassEvidence:
        """What is known of the classes: public ones, or the reports with their likelihoods."""
        logs = report_log_likelihoods(float(self.label_epsilon), len(self.classes))
        return ClassEvidence(self.known_nodes.cpu(), logs[self.known_classes.cpu()])

    def known_rows(self) -> Tensor:
        """Known, or reported, classes of the known nodes as rows of 0 and 1, shape ``(K, C)``."""
        return one_hot(self.known_classes, len(self.classes)).float()

    def known_labels(self) -> Tensor:
        """Known, or reported, class number of each known node, -1 of the others, shape ``(N,)``."""
        labels = torch.full((self.num_nodes,), -1)
        labels[self.known_nodes.cpu()] = self.classes[self.known_classes].cpu()
        return labels

    def released_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of ``features.npz``: classes of all nodes, by their names."""
        names = ("classes", "known_nodes", "known_classes", "posteriors")
        arrays = {name: getattr(self, name).cpu().numpy() for name in names}
        if self.reads_private_columns:
            arrays["reported_classes"] = arrays.pop("known_classes")
        return {"node_names": np.array(self.node_names, dtype=np.str_)} | arrays

    def released_state(self) -> dict[str, Tensor]:
        """All buffers and parameters."""
        return dict(self.state_dict())

    def accept_data(self, data: object) -> None:
        """Refuse data of another kind, or without classes; take the number of nodes."""
        super().accept_data(data)
        records = served_records(type(self).__name__, self.capabilities.reads, data)
        assert isinstance(records, AttributedGraphRecords)
        if self.hparams["num_nodes"] is None:
            self.hparams["num_nodes"] = records.num_nodes
        check_num_nodes(self, records.num_nodes)
        self._find_classes(records)

    def on_fit_start(self) -> None:
        """Copy the public facts of the data: names, classes, and which of them are known.

        Fewer than :data:`FEW_LABELS` private labels get a warning.
        """
        records = self.records
        check_num_nodes(self, records.num_nodes)
        self.node_names = checked_names(self.node_names, records.node_names)
        classes, known, places = self._find_classes(records)
        self.classes, self.known_nodes = classes.to(self.device), known.to(self.device)
        if places is not None:
            self.known_classes = places.to(self.device)
        elif len(known) < FEW_LABELS:
            rank_zero_warn(
                f"{len(known):,} private labels are few: reports are wrong by chance, and only many "
                f"of them show a class\ntake {FEW_LABELS:,} nodes with a label or more, or declare "
                "the labels public if they are"
            )
        self.assumptions = list(records.assumptions)
        if PUBLIC_ATTRIBUTES not in self.assumptions:
            self.assumptions.append(PUBLIC_ATTRIBUTES)  # of records of a user's own
        self.assumptions.append(PUBLIC_DOMAIN if self.reads_private_columns else PUBLIC_CLASSES)

    def training_step(self, batch: AttributedGraphRecords, batch_idx: int) -> None:
        """Make the releases, and end the run."""
        self.release_once(batch)
        self.trainer.should_stop = True

    def release_once(self, batch: AttributedGraphRecords) -> None:
        """Make the releases, unless they are made, also by a run that is resumed."""
        if not self.is_released:
            source = statistics_of(batch, self.space)
            reads = by_key(self.plan(self.budget, 1))
            labels = private_labels_of(batch)
            if labels is not None:
                self._report(labels, reads[LABEL_REPORTS])
            self.keep_posteriors(self.release(source, batch.attributes, reads))
            self.is_released.fill_(True)

    def keep_posteriors(self, posteriors: Tensor) -> None:
        """Keep probabilities of classes of shape ``(N, C)``; known nodes have their public classes."""
        posteriors = posteriors.float().cpu()
        if not self.reads_private_columns:  # a report is no class
            posteriors[self.known_nodes.cpu()] = self.known_rows().cpu()
        self.posteriors = posteriors.to(self.device)

    def configure_optimizers(self) -> Optimizer | None:
        """Return None, since there is no gradient."""
        return None

    def validation_step(self, batch: object, batch_idx: int) -> None:
        """Do nothing: classes are compared by ``evaluate``."""

    def test_step(self, batch: object, batch_idx: int) -> None:
        """Do nothing: classes are compared by ``evaluate``."""

    def on_predict_start(self) -> None:
        """Take the budget of the run, with whose delta predictions repeat the guarantee."""
        for callback in typed(self.trainer).callbacks:
            if isinstance(callback, KeepsBudget):
                self.ledger.budget = callback.budget
                self._set_rows(callback.row_budget)

    def predict_step(self, batch: Tensor, batch_idx: int) -> dict[str, NDArray[Any]]:
        """Predict classes from released tensors, which reads no edge.

        Args:
            batch: Attributes of new nodes, shape ``(P, F)``. Data modules of graphs serve a seed in
                place of it; the nodes of the graph then get classes.
            batch_idx: Number of the batch.

        Returns:
            Classes of shape ``(P,)`` as ``labels``, and their probabilities, shape ``(P, C)``.
        """
        posteriors = self.predict_proba(batch) if batch.dim() == 2 else self.node_posteriors()
        labels = self.classes[posteriors.argmax(1)]
        return {"labels": labels.cpu().numpy(), "posteriors": posteriors.cpu().numpy()}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the public names of the nodes with the ledger."""
        super().on_save_checkpoint(checkpoint)
        checkpoint["node_names"] = self.node_names

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restore the ledger, and the names of the nodes."""
        super().on_load_checkpoint(checkpoint)
        self.node_names = checkpoint["node_names"]

    def _report(self, labels: PrivateLabels, read: LedgerEntry) -> None:
        """Pay for the reports of the labels of the known nodes, and keep them."""
        law = report_labels(read, len(labels.classes))
        reports = self.pay(read, labels.values[self.known_nodes.cpu()], law)
        self.known_classes = reports.to(self.device)
        self.label_epsilon.fill_(read.event.pure_epsilon)

    def _find_classes(
        self, records: AttributedGraphRecords
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Find the numbers of the classes, the known nodes, and their classes unless these are private.

        Raises:
            Refusal: If there are no two classes, or no nodes that have them.
        """
        labels = private_labels_of(records)
        self.num_private_classes.fill_(0 if labels is None else len(labels.classes))
        if labels is None:
            return self._public_classes(records)
        # Which nodes have a label is public, and no more than that is read here.
        known = torch.nonzero(labels.values >= 0)[:, 0]
        if not len(known):
            raise Refusal(
                f"{type(self).__name__} learns classes of nodes, and no node has a label in "
                f"{labels.column!r}"
            )
        seed, share = self.hparams["split_seed"], self.hparams["train_fraction"]
        if seed is not None and share is None:
            raise Refusal(
                "split_seed takes 20 nodes of each class, and the labels are private\n"
                "set train_fraction as well: a share of all nodes with a label, such as 0.75"
            )
        if seed is not None:
            known = split_at_random(known, seed, share).train.sort().values
        return torch.tensor(labels.numbers), known, None

    def _public_classes(self, records: AttributedGraphRecords) -> tuple[Tensor, Tensor, Tensor]:
        """Find the numbers of public classes, the known nodes, and their places among the classes."""
        given = records.classes
        if given is None:
            raise Refusal(
                f"{type(self).__name__} learns classes of nodes, and the data have none\n"
                "name their column: --data.nodes.policy.COLUMN label"
            )
        given = given.cpu()
        count = len(torch.unique(given[given >= 0]))
        if count < 2:
            raise Refusal(
                f"{type(self).__name__} learns classes of nodes, and the data have {count}\n"
                "give the classes of some nodes of each of two classes or more"
            )
        seed = self.hparams["split_seed"]
        known = torch.nonzero(given >= 0)[:, 0]
        if seed is not None:
            known = split_nodes(given, seed, self.hparams["train_fraction"]).train.sort().values
        classes, places = torch.unique(given[known], return_inverse=True)
        return classes, known, places


def private_labels_of(records: object) -> PrivateLabels | None:
    """Return the private labels that records hold, if any."""
    return records.private_labels if isinstance(records, HoldsPrivateLabels) else None
