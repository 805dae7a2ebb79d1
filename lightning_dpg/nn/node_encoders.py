"""Node encoders: a row of the simplex for each node, and logits of the graph's label.

Jin and Chen, "Gromov-Wasserstein discrepancy with local differential privacy for distributed
structural graphs", 2022, section 4. Rows end in a softmax; their entries have the public
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
    """Base of encoders: rows of nodes, and a linear readout of their mean scores per graph.

    Args:
        width: Width h of the rows.
        num_classes: Number of labels of graphs.
    """

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.readout = nn.Linear(width, num_classes)

    @abstractmethod
    def scores(self, features: Tensor, edge_index: Tensor) -> Tensor:
        """Return unnormalized log-entries of the rows: ``(N, d)`` to ``(N, h)``."""

    def forward(self, features: Tensor, edge_index: Tensor) -> Tensor:
        """Return rows H of nodes, each with sum 1.

        Args:
            features: Features of shape ``(N, d)``.
            edge_index: Both directions of each edge, shape ``(2, E)``.

        Returns:
            Shape ``(N, h)``.
        """
        return self.scores(features, edge_index).softmax(1)

    def logits(self, features: Tensor, edge_index: Tensor, graph_of: Tensor, size: int) -> Tensor:
        """Return logits of the labels of graphs.

        Args:
            features: Features of the nodes of all graphs, shape ``(N, d)``.
            edge_index: Edges of all graphs, shape ``(2, E)``.
            graph_of: Number of each node's graph, shape ``(N,)``.
            size: Number of graphs G.

        Returns:
            Shape ``(G, num_classes)``.
        """
        # From the bounded rows themselves the readout would learn little and slowly.
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
    """Five graph isomorphism layers (Xu et al., 2019) with jumps to two linear layers.

    Layers are normalized per node: batch normalization would mix graphs, and clients would have to
    send its statistics. Without the jump from each layer to the end the encoder hardly learns in
    short rounds.

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
    """Two linear layers of each node's row, which holds neighbor sums already.

    Args:
        feature_dim: Width d of the input rows.
        width: Width h of the output rows.
        num_classes: Number of labels of graphs.
    """

    def __init__(self, feature_dim: int, width: int, num_classes: int) -> None:
        super().__init__(width, num_classes)
        self.layers = _two_layers(feature_dim, width)

    def scores(self, features: Tensor, edge_index: Tensor) -> Tensor:
        """See :class:`NodeEncoder`; edges are ignored."""
        scores: Tensor = self.layers(features)
        return scores


def padded(rows: Tensor, sizes: Tensor, num_nodes: int, value: float) -> Tensor:
    """Pad the rows of each graph to n with a constant: ``(N, h)`` to ``(G n, h)``.

    Args:
        rows: Rows of all graphs, those of the first one first.
        sizes: Number of rows of each graph, shape ``(G,)``, none above n.
        num_nodes: Number n of rows of each graph after padding.
        value: Constant of the padding.
    """
    places = torch.arange(num_nodes, device=rows.device) < sizes[:, None]
    filled = rows.new_full((len(sizes), num_nodes, rows.shape[1]), value)
    filled[places] = rows
    return filled.flatten(0, 1)


def _two_layers(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, GIN_WIDTH), nn.ReLU(), nn.Linear(GIN_WIDTH, outputs))
