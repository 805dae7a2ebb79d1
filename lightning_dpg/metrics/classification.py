"""Graph classifiers that learn from synthetic graphs and are tested on real ones.

Yang et al., "Secure Deep Graph Generation with Link Differential Privacy" (DPGGAN), 2021, Table 2:
a graph isomorphism network is trained on generated graphs, each with the label of its original, and
tested on original graphs. The paper has no baselines; here they are reported beside it.
"""

from collections.abc import Sequence

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam
from torch.optim.lr_scheduler import StepLR
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GIN, global_add_pool

_DEGREES = 128
"""Number of degrees that node features distinguish; larger degrees count as the last."""
_BATCH_SIZE = 64


class GraphClassifier(nn.Module):
    """Graph isomorphism network on degrees, with all layers summed over the nodes of a graph.

    Xu, Hu, Leskovec, Jegelka, "How Powerful are Graph Neural Networks?" (GIN), 2019, equation 4.2.

    Args:
        num_classes: Number of classes C.
        hidden_dim: Width of the layers.
        num_layers: Number of layers.
    """

    def __init__(self, num_classes: int, hidden_dim: int = 32, num_layers: int = 4) -> None:
        super().__init__()
        # The map from all layers to the classes is linear and may precede the sum.
        self.layers = GIN(
            _DEGREES, hidden_dim, num_layers, num_classes, dropout=0.5, norm="batch_norm", jk="cat"
        )

    def forward(self, batch: Batch) -> Tensor:
        """Return the logits of the classes, shape ``(B, C)``, of a batch of B graphs."""
        degree = torch.bincount(batch.edge_index[0], minlength=batch.num_nodes)
        x = F.one_hot(degree.clamp(max=_DEGREES - 1), _DEGREES).float()
        scores = self.layers(x, batch.edge_index)
        return global_add_pool(scores, batch.batch, batch.num_graphs)


def gin_accuracy(
    train: Sequence[Data], test: Sequence[Data], num_classes: int, seed: int = 0, steps: int = 800
) -> float:
    """Train a graph isomorphism network and return its accuracy on test graphs.

    Args:
        train: Graphs to learn from, each with its label ``y`` from 0 to ``num_classes - 1``.
        test: Graphs to classify, likewise.
        num_classes: Number of classes.
        seed: Public seed of the initial weights and of the batches.
        steps: Training steps of 64 graphs; the learning rate, 0.01 at first, is halved after each
            quarter of them.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GraphClassifier(num_classes)
        optimizer = Adam(model.parameters(), lr=0.01)
        schedule = StepLR(optimizer, max(steps // 4, 1), 0.5)
        # Batches are built once: that takes longer than a step.
        order = torch.split(torch.randperm(len(train)), _BATCH_SIZE)
        batches = [_batch([train[i] for i in part.tolist()]) for part in order]
        for _ in range(steps):
            batch = batches[int(torch.randint(len(batches), ()))]
            loss = F.cross_entropy(model(batch), batch.y)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()
    model.eval()
    batch = _batch(test)
    with torch.no_grad():
        return float((model(batch).argmax(1) == batch.y).float().mean())


def size_accuracy(train: Sequence[Data], test: Sequence[Data]) -> float:
    """Return the accuracy of a size-only baseline: numbers of nodes and edges.

    A support vector machine with Gaussian kernel learns from the two numbers.
    """
    x, y = _sizes(train)
    model = make_pipeline(StandardScaler(), SVC()).fit(x, y)
    return float(model.score(*_sizes(test)))


def majority_accuracy(train: Sequence[Data], test: Sequence[Data]) -> float:
    """Return the accuracy of the majority-class baseline: the most frequent class of ``train``."""
    labels = torch.cat([graph.y for graph in train])
    return float((torch.cat([graph.y for graph in test]) == labels.mode().values).float().mean())


def classification_accuracies(
    real: Sequence[Data],
    synthetic: Sequence[Data],
    folds: int = 5,
    seed: int = 0,
    steps: int = 800,
) -> dict[str, float]:
    """Return accuracies on real graphs in cross-validation, averaged over the folds.

    Args:
        real: Graphs with label ``y`` of shape ``(1,)``.
        synthetic: For each real graph the graph generated in its place, in the same order. In each
            fold a classifier learns from the graphs whose originals are not tested.
        folds: Number of folds.
        seed: Public seed of folds and networks.
        steps: Training steps of each network.

    Returns:
        ``gin`` and ``size``, learned from synthetic graphs; ``gin_real`` and ``size_real``, learned
        from the originals, which bound the others from above; and ``majority``.
    """
    classes, labels = np.unique([int(graph.y) for graph in real], return_inverse=True)
    originals, replacements = (
        [
            Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes, y=label)
            for graph, label in zip(graphs, torch.from_numpy(labels[:, None]), strict=True)
        ]
        for graphs in (real, synthetic)
    )
    rows = []
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for learned, tested in split.split(labels, labels):
        test = [originals[i] for i in tested]
        generated, train = ([graphs[i] for i in learned] for graphs in (replacements, originals))
        rows.append(
            {
                "gin": gin_accuracy(generated, test, len(classes), seed, steps),
                "size": size_accuracy(generated, test),
                "gin_real": gin_accuracy(train, test, len(classes), seed, steps),
                "size_real": size_accuracy(train, test),
                "majority": majority_accuracy(train, test),
            }
        )
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _batch(graphs: Sequence[Data]) -> Batch:
    return Batch.from_data_list(
        [Data(edge_index=g.edge_index, num_nodes=g.num_nodes, y=g.y) for g in graphs]
    )


def _sizes(graphs: Sequence[Data]) -> tuple[np.ndarray, np.ndarray]:
    x = np.array([(graph.num_nodes, graph.num_edges / 2) for graph in graphs], dtype=np.float64)
    return x, torch.cat([graph.y for graph in graphs]).numpy()
