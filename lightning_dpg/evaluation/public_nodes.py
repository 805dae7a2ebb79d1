"""Nodes with public attributes, and controls that predict their classes from no edge of a real graph."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.graph.expected_degrees import chung_lu_edges
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.held_out import Split
from lightning_dpg.graph.pair_numbers import pair_keys, pairs_of_keys
from lightning_dpg.methods.neighbor_votes import VoteMoment
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.node_classification import (
    NETWORKS,
    node_log_probabilities,
    scaled,
)
from lightning_dpg.nn.class_student import ClassEvidence, column_student, known_classes
from lightning_dpg.run.fit import fit_method

NO_GRAPH, SIMILARITY_GRAPH = "no graph", "similarity graph"
SELF_TRAINING, ALL_COLUMNS = "self-training", "tf-idf regression"
DEGREES_ALONE, REAL_GRAPH = "degrees alone", "real graph"

_RANK = 64  # of the rows that are compared, as in AttributeEncoder and NeighborVotes


class Drawn(NamedTuple):
    """One split of the nodes, and what all rows of a table learn from."""

    split: Split
    seed: int
    """Public seed of the networks."""
    evidence: ClassEvidence
    """Classes of the training nodes, or reports of their private labels."""


class ClassifiedNodes(NamedTuple):
    """Nodes of a table, with their attributes and true classes."""

    source: str
    """Name of the graph that has them."""
    names: Sequence[str]
    attributes: Tensor
    """Attributes of shape ``(N, F)``."""
    classes: Tensor
    """Class of each node from 0 to C - 1, shape ``(N,)``, -1 where there is none."""
    values: Tensor
    """Number of each class in the data, ascending, shape ``(C,)``."""


class PublicNodes:
    """Attributes and classes of nodes, and graphs that are computed from attributes alone.

    Args:
        nodes: The nodes.
        num_edges: Number of edges of the similarity graph.

    Attributes:
        rows: Principal components of the attributes, shape ``(N, r)``.
        scaled: Attributes for networks, see :func:`scaled`.
        no_graph: The nodes without edges.
        similarity_graph: Nearest neighbors by principal components of the attributes.
    """

    def __init__(self, nodes: ClassifiedNodes, num_edges: int) -> None:
        attributes = nodes.attributes
        self.attributes, self.classes = attributes, nodes.classes
        self.num_classes = len(nodes.values)
        self.scaled = scaled(attributes)
        self._moments = VoteMoment(_RANK)
        self._moments.features.fit(attributes)
        self.rows = self._moments.rows(attributes)
        self.no_graph = make_graph(torch.empty(0, 2), len(attributes))
        similar = nearest_neighbor_edges(self.rows.float(), num_edges)
        self.similarity_graph = make_graph(similar, len(attributes))

    def known(self, nodes: Tensor) -> ClassEvidence:
        """Return the classes of some nodes as what is known of them."""
        return known_classes(nodes, self.classes[nodes], self.num_classes)

    def self_trained(self, evidence: ClassEvidence) -> Tensor:
        """Probabilities of classes by self-training, which reads no edge, shape ``(N, C)``.

        They are the public beliefs with which :class:`NeighborVotes` starts.

        Args:
            evidence: What is known of classes.
        """
        return self._moments.public_beliefs(self.attributes, self.rows, evidence)

    def regressed(self, evidence: ClassEvidence) -> Tensor:
        """Log probabilities of classes by a logistic regression of all columns, shape ``(N, C)``.

        Columns are weighted by tf-idf, and cross-validation chooses the penalty.

        Args:
            evidence: What is known of classes.
        """
        return column_student(self._moments.features.weighted(self.attributes), evidence)[1]

    def trained(self, network: str, graphs: Sequence[Data], drawn: Drawn) -> list[Tensor]:
        """Train a network on the first graph; see :func:`node_log_probabilities`."""
        _, validation, test = drawn.split
        return node_log_probabilities(
            network, graphs, self.scaled, drawn.evidence, self.known(validation), test, drawn.seed
        )

    def learn(
        self,
        method: NodeClassifier,
        graph: Data,
        known: Tensor,
        epsilon: float = math.inf,
        delta: float = 0.0,
        row_epsilon: float | None = None,
    ) -> None:
        """Fit a method to another graph of the nodes, without noise unless there is a budget.

        Args:
            method: A method that was not fitted, whose settings split no classes.
            graph: Its graph, such as the similarity graph, which is public.
            known: Nodes whose classes it learns from, shape ``(K,)``.
            epsilon: Epsilon of the budget.
            delta: Delta of the budget.
            row_epsilon: Epsilon of reports of these classes, which are then private labels.
        """
        given = graph.clone()
        given.x, given.y = self.attributes, torch.full_like(self.classes, -1)
        given.y[known] = self.classes[known]
        given.attribute_names = [f"attribute {n}" for n in range(self.attributes.shape[1])]
        nodes = Nodes(attributes="from_graph")
        if row_epsilon is not None:
            labels = [*map(str, range(self.num_classes))]
            nodes = Nodes(attributes="from_graph", policy={"y": "private_label"}, classes=labels)
        fit_method(method, EdgeListDataModule(given, nodes=nodes), epsilon, delta, row_epsilon)


def controls(
    public: PublicNodes, drawn: Drawn, others: Sequence[Data] = ()
) -> dict[tuple[str, str], Callable[[], list[Tensor]]]:
    """Functions that predict the classes of the test nodes, by graph and network.

    They read no edge of the real graph. A function trains when it is called.

    Args:
        public: The nodes.
        drawn: Split and known classes.
        others: Graphs whose edges networks use after the training as well.

    Returns:
        Functions of no argument. They return log probabilities of shape ``(T, C)``, first with the
        edges of the training, then, of networks, with those of each other graph.
    """
    graphs = {NO_GRAPH: public.no_graph, SIMILARITY_GRAPH: public.similarity_graph}
    evidence, test = drawn.evidence, drawn.split.test
    return {
        **{
            (place, name): partial(public.trained, name, [graph, *others], drawn)
            for place, graph in graphs.items()
            for name in NETWORKS
        },
        (NO_GRAPH, SELF_TRAINING): lambda: [public.self_trained(evidence)[test].log()],
        (NO_GRAPH, ALL_COLUMNS): lambda: [public.regressed(evidence)[test]],
    }


def rewired(real: Data, seed: int) -> Data:
    """Draw a Chung-Lu graph of the degrees of the real graph, without protection."""
    generator = torch.Generator().manual_seed(seed)
    expected = torch.from_numpy(degrees(real))
    edges = chung_lu_edges(expected, real.num_edges // 2, generator)
    return make_graph(edges, real.num_nodes, real.node_names)


def nearest_neighbor_edges(rows: Tensor, num_edges: int) -> Tensor:
    """Link nodes to their nearest neighbors by Euclidean distance.

    The first neighbor of each node comes first, then the second ones, and so on; of equal ranks the
    closer pair comes first.

    Args:
        rows: Rows of shape ``(N, r)``.
        num_edges: Number of edges M; all pairs if there are fewer.

    Returns:
        Edges of shape ``(M, 2)``, each a row ``i < j`` that occurs once.
    """
    num_nodes = len(rows)
    # A list of k neighbors has each pair at most twice: these are enough.
    count = min(math.ceil(2 * num_edges / max(num_nodes, 1)), num_nodes - 1)
    if count < 1:
        return torch.empty(0, 2, dtype=torch.long)
    distances, neighbors = NearestNeighbors(n_neighbors=count).fit(rows.numpy()).kneighbors()
    nodes = np.repeat(np.arange(num_nodes), count)
    ranks = np.tile(np.arange(count), num_nodes)
    order = np.lexsort((distances.ravel(), ranks))
    first, second = nodes[order], neighbors.ravel()[order]
    keys = pair_keys(np.stack([first, second], axis=1), num_nodes)
    places = np.sort(np.unique(keys, return_index=True)[1])[:num_edges]
    return torch.from_numpy(pairs_of_keys(keys[places], num_nodes))
