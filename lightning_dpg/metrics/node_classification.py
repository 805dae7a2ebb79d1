"""Node classification: networks that learn classes of nodes from public attributes and edges.

The task is transductive: attributes and edges of all nodes are there in training, the classes of the
training nodes only. All settings are those of the authors of the networks; nothing is tuned.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from scipy.sparse import csr_array
from sklearn.preprocessing import maxabs_scale
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torchmetrics.functional.classification import multiclass_accuracy, multiclass_f1_score

from lightning_dpg.graph.graph import adjacency
from lightning_dpg.graph.node_splits import Split, split_nodes


class GCN(nn.Module):
    """Graph convolutional network of two layers on one graph.

    Kipf, Welling, "Semi-Supervised Classification with Graph Convolutional Networks", 2017. Without
    edges it is a perceptron with one hidden layer, because each node has a loop.

    Args:
        attributes: Attributes of shape ``(N, F)``.
        edges: Adjacency matrix in CSR format, shape ``(N, N)``.
        num_classes: Number of classes C.
    """

    def __init__(self, attributes: Tensor, edges: Tensor, num_classes: int) -> None:
        super().__init__()
        # Bags of words are mostly zeros, and a sparse matrix is many times as fast for Cora-ML.
        self.attributes, self.edges = _sparse(csr_array(attributes.numpy())), edges
        self.first = GCNConv(attributes.shape[1], 16, cached=True)
        self.second = GCNConv(16, num_classes, cached=True)

    def forward(self, nodes: Tensor) -> Tensor:
        """Compute the logits of the classes of some nodes, shape ``(P, C)``."""
        x = self.attributes
        values = F.dropout(x.values(), training=self.training)
        x = torch.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)
        hidden = self.first(x, self.edges).relu()
        hidden = F.dropout(hidden, training=self.training)
        logits: Tensor = self.second(hidden, self.edges)[nodes]
        return logits


class SGC(nn.Module):
    """Simple graph convolution over two hops on one graph.

    Wu et al., "Simplifying Graph Convolutional Networks", 2019. Without edges it is a logistic
    regression.

    Args:
        attributes: Attributes of shape ``(N, F)``.
        edges: Adjacency matrix in CSR format, shape ``(N, N)``.
        num_classes: Number of classes C.
    """

    def __init__(self, attributes: Tensor, edges: Tensor, num_classes: int) -> None:
        super().__init__()
        hop, _ = gcn_norm(edges, num_nodes=len(attributes))
        # SGConv would multiply all rows in each step, and those of a few nodes are enough.
        self.propagated = hop @ (hop @ attributes)
        self.layer = nn.Linear(attributes.shape[1], num_classes)

    def forward(self, nodes: Tensor) -> Tensor:
        """Compute the logits of the classes of some nodes, shape ``(P, C)``."""
        logits: Tensor = self.layer(self.propagated[nodes])
        return logits


class Network(NamedTuple):
    """A network, and how its authors train it with Adam."""

    build: Callable[[Tensor, Tensor, int], nn.Module]
    lr: float
    weight_decay: float
    steps: int


NETWORKS = {
    "GCN": Network(GCN, lr=0.01, weight_decay=5e-4, steps=200),
    "SGC": Network(SGC, lr=0.2, weight_decay=5e-6, steps=100),
}
"""Networks by name, with the settings of Kipf and Welling, and of Wu et al."""


class NodeScores(NamedTuple):
    """Scores of one network on the test nodes of one split."""

    node_accuracy: float
    """Share of the test nodes whose class is predicted with the edges of the training."""
    node_macro_f1: float
    """F1 score of these predictions, mean of the classes."""
    node_accuracy_on_real_edges: float
    """Share of the test nodes whose class the network predicts with the edges of the real graph."""


NODE_QUERIES: tuple[str, ...] = NodeScores._fields
"""Names of the scores in the order of tables."""


def node_scores(
    name: str, graph: Data, real: Data, attributes: Tensor, classes: Tensor, seed: int
) -> NodeScores:
    """Train a network on one graph, and score its predictions on the test nodes.

    The training, the choice of the step and the first two scores use the edges of ``graph`` only,
    because a user of a release has no others. The edges of ``real`` are used after the training.

    Args:
        name: Name of the network.
        graph: Graph of the training on N nodes.
        real: Real graph on the same nodes.
        attributes: Attributes from :func:`scaled`, shape ``(N, F)``.
        classes: Class of each node from 0 on, shape ``(N,)``, -1 where there is none.
        seed: Public seed of the split, of the initial weights and of the dropout.
    """
    num_classes, split = int(classes.max()) + 1, split_nodes(classes, seed)
    network = NETWORKS[name]
    # PyTorch warns unless the checks of sparse matrices are turned on or off.
    unchecked = torch.sparse.check_sparse_tensor_invariants(False)  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=[]), unchecked:
        torch.manual_seed(seed)
        model = network.build(attributes, _sparse(adjacency(graph)), num_classes)
        _train(model, network, classes, split)
        other = network.build(attributes, _sparse(adjacency(real)), num_classes)
        other.load_state_dict(model.state_dict())
        predicted, on_real = (_logits(trained, split.test).argmax(1) for trained in (model, other))
    target = classes[split.test]
    f1 = multiclass_f1_score(predicted, target, num_classes, average="macro")
    accuracy, accuracy_on_real = (
        multiclass_accuracy(each, target, num_classes, average="micro")
        for each in (predicted, on_real)
    )
    return NodeScores(float(accuracy), float(f1), float(accuracy_on_real))


def scaled(attributes: Tensor) -> Tensor:
    """Scale attributes of shape ``(N, F)`` for the networks, as Kipf and Welling scale bags of words.

    A row is divided by the sum of its absolute values. Before that a column with values beyond 1 is
    divided by the largest of them. Incomes then do not outweigh branches.
    """
    columns = attributes.abs().amax(0) > 1 if len(attributes) else torch.zeros(0, dtype=torch.bool)
    rows = attributes.float().clone()
    if columns.any():
        rows[:, columns] = torch.from_numpy(maxabs_scale(rows[:, columns].numpy()))
    return F.normalize(rows, p=1)


def _train(model: nn.Module, network: Network, classes: Tensor, split: Split) -> None:
    """Train, and keep the weights of the step with the smallest loss on the validation nodes."""
    optimizer = Adam(model.parameters(), lr=network.lr, weight_decay=network.weight_decay)
    # A small graph may have no validation nodes, and then chooses by the training nodes.
    nodes = split.validation if len(split.validation) else split.train
    smallest, best = float("inf"), model.state_dict()
    for _ in range(network.steps):
        model.train()
        loss = F.cross_entropy(model(split.train), classes[split.train])
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        validation_loss = float(F.cross_entropy(_logits(model, nodes), classes[nodes]))
        if validation_loss < smallest:
            smallest = validation_loss
            best = {key: value.clone() for key, value in model.state_dict().items()}
    model.load_state_dict(best)


def _logits(model: nn.Module, nodes: Tensor) -> Tensor:
    with torch.no_grad():
        logits: Tensor = model.eval()(nodes)
    return logits


def _sparse(matrix: csr_array) -> Tensor:
    """Convert a matrix to CSR format of PyTorch."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr).long(),
            torch.from_numpy(matrix.indices).long(),
            torch.from_numpy(matrix.data).float(),
            size=matrix.shape,
        )
