r"""Networks that give each node of a graph a row of the simplex, and the logits of the graph's label.

Jin and Chen, "Gromov-Wasserstein discrepancy with local differential privacy for distributed
structural graphs", 2022, section 4. Rows end in a softmax, so that their entries have the public
bounds 0 and 1. Nothing is computed over a batch: the row of a node depends on its own graph.
"""

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, LayerNorm, global_mean_pool, models

GCN_WIDTH = 16
GIN_WIDTH = 64
GIN_LAYERS = 5


class NodeEncoder(nn.Module):
    """Rows of nodes by a subclass, and a linear readout of the mean of their scores over each graph.

    Args:
        width: Width h of the rows.
        num_classes: Number of labels of graphs.
    """

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.readout = nn.Linear(width, num_classes)

    @abstractmethod
    def scores(self, features: Tensor, edge_index: Tensor) -> Tensor:
        """Logarithms of the entries of the rows, but for a constant: ``(N, d)`` to ``(N, h)``."""

    def forward(self, features: Tensor, edge_index: Tensor) -> Tensor:
        """Rows H of nodes, each of which adds up to 1.

        Args:
            features: Features of shape ``(N, d)``.
            edge_index: Both directions of each edge, shape ``(2, E)``.

        Returns:
            Shape ``(N, h)``.
        """
        return self.scores(features, edge_index).softmax(1)

    def logits(self, features: Tensor, edge_index: Tensor, graph_of: Tensor, size: int) -> Tensor:
        """Logits of the labels of graphs.

        Args:
            features: Features of the nodes of all graphs, shape ``(N, d)``.
            edge_index: Edges of all graphs, shape ``(2, E)``.
            graph_of: Number of each node's graph, shape ``(N,)``.
            size: Number of graphs G.

        Returns:
            Shape ``(G, num_classes)``.
        """
        # Of the rows themselves, which are bounded, the readout would learn little and slowly.
        pooled: Tensor = global_mean_pool(self.scores(features, edge_index), graph_of, size)
        return self.readout(pooled)


class GCN(NodeEncoder):
    """Two graph convolutions (Kipf and Welling, 2017).

    Args:
        feature_dim: Width d of the features.
        width: Width h of the rows.
        num_classes: Number of labels of graphs.
    """

    def __init__(self, feature_dim: int, width: int, num_classes: int) -> None:
        super().__init__(width, num_classes)
        self.first = GCNConv(feature_dim, GCN_WIDTH)
        self.second = GCNConv(GCN_WIDTH, width)

    def scores(self, features: Tensor, edge_index: Tensor) -> Tensor:
        """See :class:`NodeEncoder`."""
        hidden = self.first(features, edge_index).relu()
        scores: Tensor = self.second(hidden, edge_index)
        return scores


class GIN(NodeEncoder):
    """Five graph isomorphism layers (Xu et al., 2019), all of which are read by two linear ones.

    Norms are of each node by itself: batch normalization would mix graphs, and its statistics would
    be one more thing that clients send. Without the jump from each layer to the end the encoder
    hardly learns in short rounds.

    Args:
        feature_dim: Width d of the features.
        width: Width h of the rows.
        num_classes: Number of labels of graphs.
    """

    def __init__(self, feature_dim: int, width: int, num_classes: int) -> None:
        super().__init__(width, num_classes)
        norm = LayerNorm(GIN_WIDTH, mode="node")
        self.layers = models.GIN(feature_dim, GIN_WIDTH, GIN_LAYERS, norm=norm, jk="cat")
        self.output = _two_layers(GIN_WIDTH, width)

    def scores(self, features: Tensor, edge_index: Tensor) -> Tensor:
        """See :class:`NodeEncoder`."""
        scores: Tensor = self.output(self.layers(features, edge_index))
        return scores


class RowNet(NodeEncoder):
    """Two linear layers of each node's own row, where sums over neighbors are in the row already.

    Args:
        feature_dim: Width d of the rows that go in.
        width: Width h of those that come out.
        num_classes: Number of labels of graphs.
    """

    def __init__(self, feature_dim: int, width: int, num_classes: int) -> None:
        super().__init__(width, num_classes)
        self.layers = _two_layers(feature_dim, width)

    def scores(self, features: Tensor, edge_index: Tensor) -> Tensor:
        """See :class:`NodeEncoder`; the edges are not looked at."""
        scores: Tensor = self.layers(features)
        return scores


def padded(rows: Tensor, sizes: Tensor, num_nodes: int, value: float) -> Tensor:
    """The same number of rows for each graph, the missing ones constant: ``(N, h)`` to ``(G n, h)``.

    Args:
        rows: Rows of all graphs, those of the first one first.
        sizes: Number of rows of each graph, shape ``(G,)``, none above n.
        num_nodes: Number n of rows that each has afterwards.
        value: What the missing ones are filled with.
    """
    places = torch.arange(num_nodes, device=rows.device) < sizes[:, None]
    filled = rows.new_full((len(sizes), num_nodes, rows.shape[1]), value)
    filled[places] = rows
    return filled.flatten(0, 1)


def _two_layers(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, GIN_WIDTH), nn.ReLU(), nn.Linear(GIN_WIDTH, outputs))
