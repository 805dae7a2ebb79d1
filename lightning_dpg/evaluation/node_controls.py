"""Controls of node classification: what attributes and public classes predict without an edge."""

import math

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.graph.expected_degrees import chung_lu_edges
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.nearest_neighbors import nearest_neighbor_edges
from lightning_dpg.graph.node_splits import Split
from lightning_dpg.methods.node_classes.base import NodeClassifier
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.node_classification import scaled
from lightning_dpg.nn.attribute_rows import AttributeRows
from lightning_dpg.nn.class_student import as_rows, self_trained
from lightning_dpg.running.fit import fit_method

_RANK = 64  # of the rows that are compared, as in AttributeEncoder and NeighborVotes


class PublicNodes:
    """Attributes and classes of nodes, and graphs that are computed from attributes alone.

    Args:
        attributes: Attributes of shape ``(N, F)``.
        classes: Class of each node from 0 on, shape ``(N,)``, -1 where there is none.
        num_edges: Number of edges of the similarity graph.

    Attributes:
        scaled: Attributes for networks, see :func:`scaled`.
        no_graph: The nodes without edges.
        similarity_graph: Nearest neighbors by principal components of the attributes.
    """

    def __init__(self, attributes: Tensor, classes: Tensor, num_edges: int) -> None:
        self.attributes, self.classes = attributes, classes
        self.scaled = scaled(attributes)
        features = AttributeRows(_RANK)
        features.fit(attributes)
        self._rows = features(attributes)
        self.no_graph = make_graph(torch.empty(0, 2), len(attributes))
        similar = nearest_neighbor_edges(self._rows, num_edges)
        self.similarity_graph = make_graph(similar, len(attributes))

    def self_trained(self, split: Split) -> Tensor:
        """Log probabilities of the test nodes by self-training, which reads no edge.

        Their order is that of the public beliefs with which :class:`NeighborVotes` starts.

        Args:
            split: Training and test nodes.

        Returns:
            Log probabilities of shape ``(T, C)``.
        """
        known = as_rows(self.classes[split.train], int(self.classes.max()) + 1)
        student = self_trained(self._rows.double(), split.train, known, 1.0)
        found: Tensor = student(self._rows[split.test])
        return found

    def learn(self, method: NodeClassifier, known: Tensor) -> None:
        """Fit a method to the similarity graph without noise: no private edge is read.

        Args:
            method: A method that was not fitted, whose settings split no classes.
            known: Nodes whose classes it learns from, shape ``(K,)``.
        """
        given = self.similarity_graph.clone()
        given.x, given.y = self.attributes, torch.full_like(self.classes, -1)
        given.y[known] = self.classes[known]
        given.attribute_names = [f"attribute {n}" for n in range(self.attributes.shape[1])]
        data = EdgeListDataModule(given, nodes=Nodes(attributes="from_graph"))
        fit_method(method, data, math.inf, 0.0)


def rewired(real: Data, seed: int) -> Data:
    """Draw a Chung-Lu graph of the degrees of the real graph, without protection."""
    generator = torch.Generator().manual_seed(seed)
    expected = torch.from_numpy(degrees(real))
    edges = chung_lu_edges(expected, real.num_edges // 2, generator)
    return make_graph(edges, real.num_nodes, real.node_names)
