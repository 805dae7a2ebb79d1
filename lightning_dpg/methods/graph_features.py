"""Releases of features of each graph of a set, for the prediction of graph labels."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn
from torchmetrics import MetricCollection

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.methods.planning import Reads, by_key
from lightning_dpg.metrics.kernel_svm import (
    Accuracy,
    Predictions,
    cross_validated_predictions,
    predicted_labels,
)
from lightning_dpg.metrics.label_prediction import label_metrics
from lightning_dpg.nn.resized_buffers import resize_on_loading
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import PrivacyLedger

Embedding = dict[str, Tensor]
"""What is released of some graphs, by name; each tensor has rows for the first graph first."""


class GraphFeatureRelease(PrivateModule):
    """A method that releases features of each graph of a set, for label prediction by any user.

    The step of ``fit`` makes the release and keeps it in buffers. A support vector machine on the
    :meth:`kernels` then predicts the graphs' labels, which are public, at no cost of privacy.

    Attributes:
        sizes: Number of nodes of each graph (public), shape ``(G,)``.
        labels: Label of each graph (public), shape ``(G,)``; empty without labels.
        max_occurrences: Largest number of edges of the set that are one private edge (public).
        embedding_names: Names of the tensors of an embedding, which are buffers.
    """

    embedding_names: ClassVar[tuple[str, ...]] = ("features",)
    curve_names: ClassVar[tuple[str, ...]] = (
        "test_accuracy",
        "test_accuracy_sd",
        "test_accuracy_of_majority",
        "test_macro_f1",
    )
    is_inductive: ClassVar[bool] = True
    is_trained: ClassVar[bool] = False
    reads: ClassVar[type] = GraphSetRecords
    records: GraphSetRecords

    def __init__(self) -> None:
        super().__init__()
        # Of the test that runs: predictions and their folds, classes, and places among the tested.
        self._predictions: tuple[Tensor, Tensor]
        self._classes: Tensor
        self._places: Tensor
        self._figures: MetricCollection
        # Lightning counts the steps, and keeps the checkpoints, of automatic optimization only.
        self.automatic_optimization = True
        self.max_occurrences = 1
        self.node_names: list[str] | None = None
        self.sizes: Tensor
        self.labels: Tensor
        empty = torch.empty(0, dtype=torch.long)
        names = ("sizes", "labels", *self.embedding_names)
        for name in names:
            self.register_buffer(name, empty.clone())
        self.is_released: Tensor = nn.Buffer(torch.tensor(False))
        resize_on_loading(self, *names)

    @abstractmethod
    def release_features(self, records: GraphSetRecords, reads: Reads) -> Embedding:
        """Pay for all planned reads, and release features of all graphs (noisy).

        Args:
            records: The graphs (private).
            reads: The entries of :meth:`plan`, by key; under an infinite budget without noise.
        """

    @abstractmethod
    def kernels(self, embedding: Embedding, sizes: Tensor) -> list[NDArray[np.float64]]:
        """Candidate kernels between graphs, each of shape ``(G, G)``, from released tensors.

        Args:
            embedding: Embedding of G graphs.
            sizes: Their numbers of nodes, shape ``(G,)``.
        """

    def public_features(self, records: GraphSetRecords) -> Embedding:
        """Public features of all graphs, which cost nothing; by default none.

        Args:
            records: The graphs, of which it reads public facts only.
        """
        return {}

    @property
    def embedding(self) -> Embedding:
        """The released features of the graphs of ``fit``."""
        return {name: getattr(self, name) for name in self.embedding_names}

    @property
    def test_mask(self) -> NDArray[np.bool_]:
        """Graphs of the accuracy, ``(G,)``: all, unless the release depends on labels."""
        return np.ones(len(self.sizes), dtype=bool)

    def accuracy(self, folds: int = 10, repetitions: int = 10, seed: int = 0) -> Accuracy:
        """Share of labels that repeated cross-validation predicts correctly from the release.

        Args:
            folds: Number of folds.
            repetitions: Number of random divisions into folds.
            seed: Public seed of the folds.

        Raises:
            MisconfigurationException: If the graphs have no labels.
        """
        labels = self.labels.cpu().numpy()[self.test_mask]
        return self.predictions(folds, repetitions, seed).accuracy(labels)

    def predictions(self, folds: int = 10, repetitions: int = 10, seed: int = 0) -> Predictions:
        """Labels that repeated cross-validation predicts for the graphs of :attr:`test_mask`.

        Args:
            folds: Number of folds.
            repetitions: Number of random divisions into folds.
            seed: Public seed of the folds.

        Raises:
            MisconfigurationException: If the graphs have no labels.
        """
        self._check_labels()
        tested = self.test_mask
        return cross_validated_predictions(
            [kernel[np.ix_(tested, tested)] for kernel in self.kernels(self.embedding, self.sizes)],
            self.labels.cpu().numpy()[tested],
            folds=folds,
            repetitions=repetitions,
            seed=seed,
        )

    def released_arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of ``features.npz``."""
        names = ("sizes", "labels", *self.embedding_names)
        return {name: getattr(self, name).cpu().numpy() for name in names}

    def released_state(self) -> dict[str, Tensor]:
        """All buffers and parameters."""
        return dict(self.state_dict())

    def graph_of(self, nodes: Tensor) -> Tensor:
        """Number of the graph of each node, of the same shape."""
        return torch.searchsorted(self.sizes.cumsum(0).cpu(), nodes.contiguous(), right=True)

    def public_sizes(self, records: GraphSetRecords) -> Tensor:
        """Number of embedding rows of each graph, shape ``(G,)``: by default one per node."""
        return records.sizes

    def assumed(self, records: GraphSetRecords) -> list[str]:
        """Facts of graphs that the guarantee treats as public."""
        if self.relation is Relation.LOCAL_GRAPH:
            return local_assumptions(records)
        return list(records.assumptions)

    def on_fit_start(self) -> None:
        """Copy the public facts of the data."""
        records = self.records
        self.max_occurrences = records.max_occurrences
        self.sizes = self.public_sizes(records).to(self.device)
        if records.labels is not None:
            self.labels = records.labels.to(self.device)
        self.assumptions = self.assumed(records)

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> None:
        """Make the release, unless a resumed run has made it."""
        if not self.is_released:
            self._keep(self._paid_features(batch))
            self.is_released.fill_(True)
        self.trainer.should_stop = True

    def configure_optimizers(self) -> torch.optim.Optimizer | None:
        """Return None, since there is no gradient."""
        return None

    def validation_step(self, batch: Tensor, batch_idx: int) -> None:
        """Do nothing: no graph is held out."""

    def on_test_epoch_start(self) -> None:
        """Predict the labels of all graphs, in each process alike."""
        predictions = self.predictions()
        names, labels = np.unique(self.labels.cpu().numpy(), return_inverse=True)
        places = np.full(len(labels), -1)
        places[self.test_mask] = np.arange(int(self.test_mask.sum()))
        arrays = (np.searchsorted(names, predictions.labels), predictions.folds, labels, places)
        predicted, folds, self._classes, self._places = (
            torch.from_numpy(np.asarray(each)).to(self.device) for each in arrays
        )
        self._predictions = predicted, folds
        self._figures = label_metrics(len(folds), int(folds.max()) + 1, len(names)).to(self.device)

    def test_step(self, batch: Tensor, batch_idx: int) -> None:
        """Count the predictions of the graphs of a batch, by their numbers, shape ``(P,)``."""
        numbers = batch[self._places[batch] >= 0]
        predicted, folds = (each[:, self._places[numbers]] for each in self._predictions)
        target = self._classes[numbers].expand(len(predicted), -1)
        self._figures.update(preds=predicted, target=target, folds=folds)

    def on_test_epoch_end(self) -> None:
        """Log the accuracy of the release, beside the share of the most frequent label.

        It reads nothing else: the accuracy is public for a private release. The tables of
        ``compare`` hold the accuracies of numbers of nodes and edges, and of other kernels.
        """
        values = self._figures.compute()
        values["test_accuracy_of_majority"] = self._classes.bincount().max() / len(self._classes)
        self.log_dict(values, sync_dist=True)  # equal in all processes

    def on_predict_start(self) -> None:
        """Start a fresh ledger: graphs to predict are another data set than the training graphs.

        Raises:
            MisconfigurationException: If there are no labels, or if the method reads no new graphs.
        """
        if not self.is_inductive:
            raise MisconfigurationException(
                f"{type(self).__name__} keeps similarities of the graphs of fit, and predicts no new "
                "ones\nfit it on all graphs together"
            )
        budget = self.ledger.budget
        self.ledger = PrivacyLedger(self.relation)
        self.ledger.budget = budget
        self._check_labels()
        records = self.records
        self.max_occurrences = records.max_occurrences
        again = (
            "that no edge of these graphs is one of the data that the labels were learned from (of "
            "such an edge this is a second release, and the epsilons and deltas of both add up)"
        )
        self.assumptions = [*self.assumed(records), again]

    def predict_step(self, batch: Tensor, batch_idx: int) -> dict[str, NDArray[Any]]:
        """Release features of new graphs by the mechanism of ``fit``, and predict their labels."""
        records = self.records
        new = self._paid_features(records)
        old = self.embedding
        both = {name: torch.cat([old[name], new[name]]) for name in self.embedding_names}
        kernels = self.kernels(both, torch.cat([self.sizes, records.sizes]))
        labels = predicted_labels(kernels, self.labels.numpy())
        return {"labels": labels} | {name: tensor.numpy() for name, tensor in new.items()}

    def _paid_features(self, records: GraphSetRecords) -> Embedding:
        public = self.public_features(records)  # it may refuse the graphs, before anything is spent
        return self.release_features(records, by_key(self.plan(self.budget, 1))) | public

    def _keep(self, embedding: Embedding) -> None:
        for name in self.embedding_names:
            setattr(self, name, embedding[name].to(self.device))

    def _check_labels(self) -> None:
        if not len(self.labels):
            raise MisconfigurationException(
                "the graphs have no labels, which a classifier would learn\n"
                "take a set with NAME_graph_labels.txt, or use features.npz of the release"
            )


def local_assumptions(
    records: GraphSetRecords, max_nodes: int | None = None, *, is_trusted: bool = False
) -> list[str]:
    """Assumptions of a guarantee for whole graphs.

    Args:
        records: The graphs.
        max_nodes: Public bound on their nodes; None if the numbers of nodes are public.
        is_trusted: Whether a trusted server adds up updates of clients.
    """
    assumed = [
        "the number of graphs, their labels and the kinds of node features",
        "the number of nodes of each graph"
        if max_nodes is None
        else f"that no graph has more than {max_nodes} nodes",
    ]
    if is_trusted:
        assumed.append("that a trusted server adds up the clients' updates and keeps none")
    if records.max_occurrences > 1:
        assumed.append("that what is in several graphs is protected in each of them by itself")
    return [*assumed, *records.preparation]
