"""Node classification: networks that learn classes of nodes from public attributes and edges.

The task is transductive: attributes and edges of all nodes are there in training, the classes of the
training nodes only. All settings are those of the authors of the networks; nothing is tuned.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array, eye_array
from sklearn.preprocessing import maxabs_scale
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam
from torch_geometric.data import Data
from torchmetrics.functional.classification import multiclass_accuracy, multiclass_f1_score

from lightning_dpg.graph.graph import adjacency

_HIDDEN = 16

Facts: TypeAlias = tuple[Tensor, Tensor]
"""What is known of the classes of nodes: their numbers, shape ``(K,)``, and the log probability of what
is known of a node, given each class, shape ``(K, C)``; see :class:`ClassEvidence`."""


class SparseRows:
    """A constant sparse matrix whose products with dense matrices have fast gradients.

    PyTorch would sort the matrix anew in each step, for the gradient of its product.

    Args:
        matrix: The matrix, shape ``(P, Q)``.
    """

    def __init__(self, matrix: csr_array) -> None:
        # Place of each value of the transposed matrix among those of the matrix.
        places = csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape)
        turned = csr_array(places.T)
        self.shape = matrix.shape
        self.values = torch.from_numpy(matrix.data).float()
        self._rows = _indices(matrix)
        self._columns = _indices(turned)
        self._order = torch.from_numpy(turned.data)

    def times(self, dense: Tensor, values: Tensor | None = None) -> Tensor:
        """Multiply by a dense matrix: ``(Q, k)`` to ``(P, k)``.

        Args:
            dense: The dense matrix.
            values: Other values for the nonzero places, as after dropout.
        """
        values = self.values if values is None else values
        matrix = torch.sparse_csr_tensor(*self._rows, values, self.shape)
        turned = torch.sparse_csr_tensor(*self._columns, values[self._order], self.shape[::-1])
        product: Tensor = _Product.apply(matrix, turned, dense)  # type: ignore[no-untyped-call]
        return product


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor, turned: Tensor, dense: Tensor) -> Tensor:
        ctx.turned = turned
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.turned @ gradient


def _indices(matrix: csr_array) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(matrix.indptr).long(), torch.from_numpy(matrix.indices).long()


class GCN(nn.Module):
    """Graph convolutional network of two layers on one graph.

    Kipf, Welling, "Semi-Supervised Classification with Graph Convolutional Networks", 2017. Without
    edges it is a perceptron with one hidden layer, because each node has a loop.

    Args:
        attributes: Attributes of shape ``(N, F)``.
        hop: Normalized adjacency matrix with loops, shape ``(N, N)``.
        num_classes: Number of classes C.
    """

    def __init__(self, attributes: SparseRows, hop: SparseRows, num_classes: int) -> None:
        super().__init__()
        self.attributes, self.hop = attributes, hop
        self.first = nn.Linear(attributes.shape[1], _HIDDEN)
        self.second = nn.Linear(_HIDDEN, num_classes)
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, nodes: Tensor) -> Tensor:
        """Compute the logits of the classes of some nodes, shape ``(P, C)``."""
        values = F.dropout(self.attributes.values, training=self.training)
        hidden = self.hop.times(self.attributes.times(self.first.weight.T, values))
        hidden = F.dropout((hidden + self.first.bias).relu(), training=self.training)
        return self.hop.times(hidden @ self.second.weight.T)[nodes] + self.second.bias


class SGC(nn.Module):
    """Simple graph convolution over two hops on one graph.

    Wu et al., "Simplifying Graph Convolutional Networks", 2019. Without edges it is a logistic
    regression.

    Args:
        attributes: Attributes of shape ``(N, F)``.
        hop: Normalized adjacency matrix with loops, shape ``(N, N)``.
        num_classes: Number of classes C.
    """

    def __init__(self, attributes: SparseRows, hop: SparseRows, num_classes: int) -> None:
        super().__init__()
        self.attributes, self.hop = attributes, hop
        self.layer = nn.Linear(attributes.shape[1], num_classes)

    def forward(self, nodes: Tensor) -> Tensor:
        """Compute the logits of the classes of some nodes, shape ``(P, C)``."""
        # The sums go over numbers of classes, which are fewer than attributes.
        logits = self.hop.times(self.hop.times(self.attributes.times(self.layer.weight.T)))
        return logits[nodes] + self.layer.bias


class Network(NamedTuple):
    """A network, and how it is trained with Adam."""

    build: Callable[..., nn.Module]
    lr: float
    weight_decay: float
    steps: int
    every: int = 1
    """Number of steps from one check of the loss to the next."""
    patience: int = 0
    """Number of checks without a smaller loss that end the training; 0 for never."""


NETWORKS = {
    "GCN": Network(GCN, lr=0.01, weight_decay=5e-4, steps=200),
    "SGC": Network(SGC, lr=0.2, weight_decay=5e-6, steps=100),
}
"""Networks by name, with the settings of Kipf and Welling, and of Wu et al."""


class NodeScores(NamedTuple):
    """Scores of predictions of the test nodes of one split."""

    node_accuracy: float
    """Share of the test nodes whose class is predicted with the edges of the training."""
    node_macro_f1: float
    """F1 score of these predictions, mean of the classes."""
    node_accuracy_on_real_edges: float
    """Share of the test nodes whose class a network predicts with the edges of the real graph; nan
    if nothing was trained on edges."""


NODE_QUERIES: tuple[str, ...] = NodeScores._fields
"""Names of the scores in the order of tables."""


def node_log_probabilities(
    name: str,
    graphs: Sequence[Data],
    attributes: SparseRows,
    known: Facts,
    validation: Facts,
    test: Tensor,
    seed: int,
) -> list[Tensor]:
    """Train a network on one graph, and predict the classes of other nodes.

    The training and the choice of the step use the edges of the first graph only, because a user of a
    release has no others.

    Args:
        name: Name of the network.
        graphs: Graph of the training on N nodes, and other graphs on these nodes, whose edges are
            used after the training.
        attributes: Attributes from :func:`scaled`, shape ``(N, F)``.
        known: What is known of the classes of the training nodes: the network learns its likelihood.
        validation: What is known of the classes of other nodes, which choose the step. A small graph
            may have none, and then the training nodes choose.
        test: Nodes whose classes are predicted, shape ``(T,)``.
        seed: Public seed of the initial weights and of the dropout.

    Returns:
        Log probabilities of the classes of the test nodes with the edges of each graph, shape
        ``(T, C)``.
    """
    network, num_classes = NETWORKS[name], known[1].shape[1]
    chooses = validation if len(validation[0]) else known
    with seeded(seed):
        models = [network.build(attributes, one_hop(graph), num_classes) for graph in graphs]
        train(
            models[0],
            network,
            lambda: fact_loss(models[0](known[0]), known),
            lambda: fact_loss(models[0](chooses[0]), chooses),
        )
        for other in models[1:]:
            other.load_state_dict(models[0].state_dict())
        with torch.no_grad():
            return [F.log_softmax(model.eval()(test), 1) for model in models]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from a public seed, and do not warn of sparse matrices.

    Args:
        seed: The seed.
    """
    # PyTorch warns unless the checks of sparse matrices are turned on or off.
    unchecked = torch.sparse.check_sparse_tensor_invariants(False)  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=[]), unchecked, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta state")
        torch.manual_seed(seed)
        yield


def node_scores(
    log_probabilities: Tensor, target: Tensor, on_real_edges: Tensor | None = None
) -> NodeScores:
    """Compare predictions with the classes of the test nodes.

    Args:
        log_probabilities: Log probabilities of the C classes of the test nodes, shape ``(T, C)``.
        target: Their classes, shape ``(T,)``.
        on_real_edges: Log probabilities with the edges of the real graph, shape ``(T, C)``.
    """
    num_classes = log_probabilities.shape[1]

    def accuracy(logs: Tensor) -> float:
        return float(multiclass_accuracy(logs.argmax(1), target, num_classes, average="micro"))

    predicted = log_probabilities.argmax(1)
    f1 = multiclass_f1_score(predicted, target, num_classes, average="macro")
    on_real = math.nan if on_real_edges is None else accuracy(on_real_edges)
    return NodeScores(accuracy(log_probabilities), float(f1), on_real)


def one_hop(graph: Data) -> SparseRows:
    """Adjacency matrix with loops, divided by the roots of the degrees of both ends."""
    matrix = adjacency(graph) + eye_array(graph.num_nodes)
    scale = diags_array(matrix.sum(0) ** -0.5)
    return SparseRows(csr_array(scale @ matrix @ scale))


def scaled(attributes: Tensor) -> SparseRows:
    """Scale attributes of shape ``(N, F)`` for the networks, as Kipf and Welling scale bags of words.

    A row is divided by the sum of its absolute values. Before that a column with values beyond 1 is
    divided by the largest of them. Incomes then do not outweigh branches.
    """
    columns = attributes.abs().amax(0) > 1 if len(attributes) else torch.zeros(0, dtype=torch.bool)
    rows = attributes.float().clone()
    if columns.any():
        rows[:, columns] = torch.from_numpy(maxabs_scale(rows[:, columns].numpy()))
    # Bags of words are mostly zeros, and a sparse matrix is many times as fast.
    return SparseRows(csr_array(F.normalize(rows, p=1).numpy()))


def train(
    model: nn.Module, network: Network, loss: Callable[[], Tensor], check: Callable[[], Tensor]
) -> None:
    """Train, and keep the weights of the step with the smallest loss of a check.

    Args:
        model: The model.
        network: Its network.
        loss: Function that computes the loss of a step.
        check: Function that computes the loss that chooses the step.
    """
    optimizer = Adam(model.parameters(), lr=network.lr, weight_decay=network.weight_decay)
    smallest, best, waited = math.inf, model.state_dict(), 0
    for step in range(1, network.steps + 1):
        model.train()
        value = loss()
        optimizer.zero_grad()
        torch.autograd.backward(value)
        optimizer.step()
        if step % network.every:
            continue
        model.eval()
        with torch.no_grad():
            checked, waited = float(check()), waited + 1
        if checked < smallest:
            best = {key: value.clone() for key, value in model.state_dict().items()}
            smallest, waited = checked, 0
        elif waited == network.patience:
            break
    model.load_state_dict(best)


def fact_loss(logits: Tensor, facts: Facts) -> Tensor:
    """Mean negative log likelihood of facts; of known classes it is the cross entropy."""
    logs = F.log_softmax(logits, 1) + facts[1].to(logits.dtype)
    return -torch.logsumexp(logs, 1).mean()
