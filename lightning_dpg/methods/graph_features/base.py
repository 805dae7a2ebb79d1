"""Learners of graphs: they release what each graph of a set is told by, and learn labels from that."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.methods.graph_set.base import check_edge_set, resized
from lightning_dpg.metrics.kernel_svm import Accuracy, cross_validated_accuracy, predicted_labels
from lightning_dpg.privacy.ledger import PrivacyLedger

Embedding = dict[str, Tensor]
"""What is released of some graphs, by name; each tensor has rows for the first graph first."""


class GraphLearner(PrivateModule):
    """A method that releases an embedding of each graph of a set, from which anybody can learn.

    The step of ``fit`` makes the release and keeps it in buffers. A support vector machine on the
    kernels of :meth:`grams` then tells the graphs' labels, which are public; all of it is free.

    Attributes:
        sizes: Number of nodes of each graph (public), shape ``(G,)``.
        labels: Label of each graph (public), shape ``(G,)``; empty without labels.
        max_occurrences: How many edges of the set are one edge of the private data at most (public).
        embedding_names: Names of the tensors of an embedding, which are buffers.
        repeats_edges: Whether the method multiplies its sensitivities by ``max_occurrences``.
        predicts_graphs: Whether ``predict`` reads graphs, those of which the labels are asked for.
    """

    embedding_names: ClassVar[tuple[str, ...]] = ("features",)
    predicts_graphs: ClassVar[bool] = True
    is_trained: ClassVar[bool] = False
    repeats_edges: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        # Lightning counts the steps, and keeps the checkpoints, of automatic optimization only.
        self.automatic_optimization = True
        self.max_occurrences = 1
        self.node_names: None = None
        self.sizes: Tensor
        self.labels: Tensor
        self.is_released: Tensor
        empty = torch.empty(0, dtype=torch.long)
        names = ("sizes", "labels", *self.embedding_names)
        for name in names:
            self.register_buffer(name, empty.clone())
        self.register_buffer("is_released", torch.tensor(False))
        self.register_load_state_dict_pre_hook(resized(*names))  # type: ignore[no-untyped-call]

    @abstractmethod
    def embed(self, data: Any, epsilon: float) -> Embedding:
        """Release an embedding of all graphs of a data module (noisy).

        Args:
            data: A ``GraphSetDataModule`` that has been set up (private).
            epsilon: What all releases together may cost; infinite where nothing is noised.
        """

    @abstractmethod
    def grams(self, embedding: Embedding, sizes: Tensor) -> list[NDArray[np.float64]]:
        """Candidate kernels between graphs, each of shape ``(G, G)``, from released tensors.

        Args:
            embedding: Embedding of G graphs.
            sizes: Their numbers of nodes, shape ``(G,)``.
        """

    @property
    def embedding(self) -> Embedding:
        """What was released of the graphs of ``fit``."""
        return {name: getattr(self, name) for name in self.embedding_names}

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Which graphs tell the accuracy, shape ``(G,)``: all, unless labels are in the release."""
        return np.ones(len(self.sizes), dtype=bool)

    def accuracy(self, folds: int = 10, repetitions: int = 10, seed: int = 0) -> Accuracy:
        """Share of labels told rightly in repeated cross-validation, from what was released.

        Args:
            folds: Number of folds.
            repetitions: How often they are drawn anew.
            seed: Public seed of the folds.

        Raises:
            MisconfigurationException: If the graphs have no labels.
        """
        self._check_labels()
        judged = self.judged
        return cross_validated_accuracy(
            [gram[np.ix_(judged, judged)] for gram in self.grams(self.embedding, self.sizes)],
            self.labels.cpu().numpy()[judged],
            folds=folds,
            repetitions=repetitions,
            seed=seed,
        )

    def released_arrays(self) -> dict[str, NDArray[Any]]:
        """What ``features.npz`` holds."""
        names = ("sizes", "labels", *self.embedding_names)
        return {name: getattr(self, name).cpu().numpy() for name in names}

    def released_state(self) -> dict[str, Tensor]:
        """Everything that is kept."""
        return dict(self.state_dict())

    def load_released_state(self, state: dict[str, Tensor]) -> None:
        """Restore what :meth:`released_state` gave."""
        self.load_state_dict(state)

    def graph_of(self, nodes: Tensor) -> Tensor:
        """Number of the graph of each node, of the same shape."""
        return torch.searchsorted(self.sizes.cumsum(0).cpu(), nodes.contiguous(), right=True)

    def public_sizes(self, data: Any) -> Tensor:
        """Numbers of rows that an embedding has of each graph, shape ``(G,)``: those of nodes."""
        sizes: Tensor = data.sizes
        return sizes

    def on_fit_start(self) -> None:
        """Take over the public facts of the data."""
        self.check_new()
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        self._take_over(data)
        self.sizes = self.public_sizes(data).to(self.device)
        if data.labels is not None:
            self.labels = data.labels.to(self.device)
        self.assumptions = list(data.assumptions)

    def training_step(self, batch: Any, batch_idx: int) -> None:
        """Release, once; a resumed run has done so already."""
        if not self.is_released:
            data = self.trainer.datamodule  # type: ignore[attr-defined]
            self._keep(self.embed(data, self.budget.epsilon))
            self.is_released.fill_(True)
        self.trainer.should_stop = True

    def configure_optimizers(self) -> torch.optim.Optimizer | None:
        """None: there is no gradient."""
        return None

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Nothing: no graph is held out."""

    def test_step(self, batch: Any, batch_idx: int) -> None:
        """Accuracy of what was released, beside the share of the most frequent label.

        Nothing else is read: the accuracy is public for a release that is private. Those of numbers
        of nodes and edges, and of other kernels, are in the tables of ``compare``.
        """
        found = self.accuracy()
        majority = torch.bincount(self.labels).max() / len(self.labels)
        self.log_dict(
            {
                "test_accuracy": found.mean,
                "test_accuracy_sd": found.sd,
                "test_accuracy_of_majority": majority,
            },
            batch_size=1,
        )

    def on_predict_start(self) -> None:
        """Other graphs have a ledger of their own.

        Raises:
            MisconfigurationException: If there are no labels, or new graphs cannot be embedded.
        """
        if not self.predicts_graphs:
            raise MisconfigurationException(
                f"{type(self).__name__} keeps similarities of the graphs of fit, and can tell no new "
                "ones\nfit it on all graphs together"
            )
        budget = self.ledger.budget
        self.ledger = PrivacyLedger(self.relation)
        self.ledger.budget = budget
        self._check_labels()
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        self._take_over(data)
        again = (
            "No edge of these graphs is one of the data that the labels were learned from; of such "
            "an edge this is a second release, and the epsilons and deltas of both add up."
        )
        self.assumptions = [*data.assumptions, again]

    def predict_step(self, batch: Any, batch_idx: int) -> dict[str, NDArray[Any]]:
        """Embed new graphs through the mechanism of ``fit``, and tell their labels."""
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        new = self.embed(data, self.budget.epsilon)
        old = self.embedding
        both = {name: torch.cat([old[name], new[name]]) for name in self.embedding_names}
        grams = self.grams(both, torch.cat([self.sizes, data.sizes]))
        labels = predicted_labels(grams, self.labels.numpy())
        return {"labels": labels} | {name: tensor.numpy() for name, tensor in new.items()}

    def _take_over(self, data: Any) -> None:
        """Check the data that are read next, and what one private edge is in them."""
        check_edge_set(self, data)
        self.max_occurrences = data.max_occurrences

    def _keep(self, embedding: Embedding) -> None:
        for name in self.embedding_names:
            setattr(self, name, embedding[name].to(self.device))

    def _check_labels(self) -> None:
        if not len(self.labels):
            raise MisconfigurationException(
                "the graphs have no labels, which a classifier would learn\n"
                "take a set with NAME_graph_labels.txt, or use features.npz of the release"
            )
