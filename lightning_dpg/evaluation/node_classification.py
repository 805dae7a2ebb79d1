"""Node classification on releases, beside controls and the real graph."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.errors import CommandError
from lightning_dpg.evaluation.node_controls import PublicNodes, rewired
from lightning_dpg.evaluation.node_evaluation import NodeEvaluation, NodeRow, Role, Setting
from lightning_dpg.evaluation.node_predictions import (
    Drawn,
    NamedPredictions,
    Nodes,
    Predictions,
    log_posteriors,
    log_student,
    rows_of,
    splits_of,
)
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.node_splits import split_nodes
from lightning_dpg.methods.node_classes.base import NodeClassifier
from lightning_dpg.metrics.node_classification import (
    NETWORKS,
    ensemble,
    node_log_probabilities,
    node_scores,
)
from lightning_dpg.release.release import Release

SEEDS = 5
"""Number of public seeds; each has a split, initial weights and baseline graphs of its own."""


class NamedGraph(NamedTuple):
    """One synthetic graph with its name and the sentence of its guarantee."""

    name: str
    graph: Data
    guarantee: str
    statement: Mapping[str, Any] = {}
    """Privacy statement of its release; empty if there is none."""
    release: Release | Path | None = None
    """Its release, open or as a folder."""


def evaluate_nodes(
    name: str,
    real: Data,
    graphs: Sequence[NamedGraph],
    predictions: Sequence[NamedPredictions] = (),
    *,
    seeds: Sequence[int] | None = None,
    train_fraction: float | None = None,
) -> NodeEvaluation:
    """Score predictions of classes: of releases, of networks on released graphs, and of controls.

    Args:
        name: Name of the real graph.
        real: The real graph (private); nodes that the first synthetic graph lacks are left out.
        graphs: Synthetic graphs on the same nodes. The attributes ``x`` and classes ``y`` are those
            of the first one, or of the real graph where there is none.
        predictions: Releases of methods that learn classes, which must have the same nodes. The
            training nodes of all rows are then those of the releases.
        seeds: Public seeds of the splits; by default those of the releases, or 0 to 4.
        train_fraction: Share of the nodes of each class for training, 20 nodes by default. See
            :func:`lightning_dpg.graph.node_splits.split_nodes`.

    Raises:
        CommandError: If there are no attributes or classes, if a graph or a release has other nodes,
            or if splits are asked for where releases have their own.
    """
    nodes = public_nodes(graphs[0] if graphs else NamedGraph(name, real, ""))
    released = rows_of(predictions)
    drawn = _splits(nodes, released, seeds, train_fraction)
    original = _on_nodes(name, real, nodes.names)
    placed = [each._replace(graph=_on_nodes(each.name, each.graph, nodes.names)) for each in graphs]
    num_edges = (placed[0].graph if placed else original).num_edges // 2
    public = PublicNodes(nodes.attributes, nodes.classes, num_edges)
    task = _Task(nodes, public, original, drawn)
    rows = (
        *task.controls(released),
        *task.trained("degrees alone", "real", [rewired(original, one.seed) for one in drawn]),
        *(row for one in placed for row in task.on_release(one)),
        *(row for one in released for row in task.predicted(one)),
        *task.trained("real graph", "real", [original] * len(drawn)),
    )
    seeds = tuple(one.seed for one in drawn)
    sizes = map(len, drawn[0].split)
    return NodeEvaluation(Setting(name, len(nodes.names), seeds, *sizes), rows)


def _splits(
    nodes: Nodes,
    released: Sequence[Predictions],
    seeds: Sequence[int] | None,
    train_fraction: float | None,
) -> list[Drawn]:
    """Return the splits of the releases, or those of public seeds."""
    if not released:
        found = range(SEEDS) if seeds is None else seeds
        return [Drawn(split_nodes(nodes.classes, seed, train_fraction), seed) for seed in found]
    if seeds is not None or train_fraction is not None:
        option = "a number of seeds" if seeds is not None else "a share for training"
        raise CommandError(
            f"{released[0].name}: has learned from nodes of its own, and {option} is given\n"
            "leave it out (--seeds, --train-fraction): the releases have their splits"
        )
    return splits_of(released, nodes)


_Logs = tuple[Tensor, Tensor | None]
"""Log probabilities of the test nodes, and those with the edges of the real graph, if any."""


class _Task(NamedTuple):
    """Everything that the rows share."""

    nodes: Nodes
    public: PublicNodes
    real: Data
    drawn: Sequence[Drawn]

    def controls(self, released: Sequence[Predictions]) -> Iterator[NodeRow]:
        """Yield the rows that read no edge of the real graph."""
        found = {}
        both = {"no graph": self.public.no_graph, "similarity graph": self.public.similarity_graph}
        for place, graph in both.items():
            for network in NETWORKS:
                logs = self._logs(network, [graph] * len(self.drawn))
                found[place, network] = [own for own, _ in logs]
                yield self._row(place, "control", graph.num_edges // 2, network, logs)
        num_edges = self.public.similarity_graph.num_edges // 2
        for network in NETWORKS:
            pairs = zip(*(found[place, network] for place in both), strict=True)
            logs = [(ensemble(pair), None) for pair in pairs]
            yield self._row("ensemble of both", "control", num_edges, network, logs)
        logs = [(self.public.self_trained(one.split), None) for one in self.drawn]
        yield self._row("no graph", "control", 0, "self-training", logs)
        for row in _distinct_methods(released):
            fitted = [self._without_noise(row, one.split.train) for one in self.drawn]
            numbered = self.nodes._replace(
                names=fitted[0].method.node_names, values=torch.arange(len(self.nodes.values))
            )
            method = type(fitted[0].method).__name__
            for part, logs in self._parts(fitted, numbered):
                yield self._row("similarity graph", "control", num_edges, f"{method} {part}", logs)

    def trained(
        self, name: str, role: Role, graphs: Sequence[Data], guarantee: str = ""
    ) -> Iterator[NodeRow]:
        """Yield the row of each network that is trained on a graph for each seed."""
        num_edges = statistics.fmean(graph.num_edges // 2 for graph in graphs)
        for network in NETWORKS:
            yield self._row(name, role, num_edges, network, self._logs(network, graphs), guarantee)

    def on_release(self, one: NamedGraph) -> Iterator[NodeRow]:
        """Yield the rows of a released graph."""
        return self.trained(one.name, "released", [one.graph] * len(self.drawn), one.guarantee)

    def predicted(self, row: Predictions) -> Iterator[NodeRow]:
        """Yield the rows of releases that predict."""
        for part, logs in self._parts(row.releases, self.nodes):
            yield self._row(row.name, "released", math.nan, part, logs, row.guarantee)

    def _logs(self, network: str, graphs: Sequence[Data]) -> list[_Logs]:
        """Train a network on a graph for each split."""
        found = []
        for graph, one in zip(graphs, self.drawn, strict=True):
            own, on_real = node_log_probabilities(
                network,
                [graph, self.real],
                self.public.scaled,
                self.nodes.classes,
                one.split,
                one.seed,
            )
            found.append((own, on_real))
        return found

    def _without_noise(self, row: Predictions, known: Tensor) -> NamedPredictions:
        """Fit the method of a row to the similarity graph."""
        method: NodeClassifier = type(row.releases[0].method)(**row.settings)
        self.public.learn(method, known)
        return NamedPredictions(row.name, Release(method, {}))

    def _parts(
        self, releases: Sequence[NamedPredictions], nodes: Nodes
    ) -> Iterator[tuple[str, list[_Logs]]]:
        """Yield the predictions of each part of a release."""
        for part, predict in (("posteriors", log_posteriors), ("student", log_student)):
            pairs = zip(releases, self.drawn, strict=True)
            yield part, [(predict(each, nodes, one.split.test), None) for each, one in pairs]

    def _row(
        self,
        name: str,
        role: Role,
        num_edges: float,
        network: str,
        logs: Sequence[_Logs],
        guarantee: str = "",
    ) -> NodeRow:
        scores = tuple(
            node_scores(own, self.nodes.classes[one.split.test], on_real)
            for (own, on_real), one in zip(logs, self.drawn, strict=True)
        )
        return NodeRow(name, guarantee, role, num_edges, network, scores)


def _distinct_methods(released: Sequence[Predictions]) -> list[Predictions]:
    """Return a row for each method and settings: budgets do not change a fit without noise."""
    found = {
        (type(row.releases[0].method), repr(sorted(row.settings.items()))): row for row in released
    }
    return [*found.values()]


def public_nodes(source: NamedGraph) -> Nodes:
    """Return the nodes of a graph with their public attributes and classes.

    Args:
        source: The graph, with ``x`` and ``y``; a node without a class has -1.

    Raises:
        CommandError: If it has none, or too few classes or nodes.
    """
    attributes, classes = source.graph.x, source.graph.y
    lacks = "classes" if classes is None else "attributes"
    if attributes is None or not attributes.shape[1] or classes is None:
        raise CommandError(
            f"{source.name}: no {lacks} of nodes, which node classification learns from\n"
            "fit with a table that has them: --attributes people.csv\n"
            "a column y of whole numbers is the classes; another column is with\n"
            "--data.nodes.policy.COLUMN label"
        )
    has_class = classes >= 0
    numbers = torch.full_like(classes, -1)
    values, numbers[has_class] = classes[has_class].unique(return_inverse=True)
    if len(values) < 2 or not len(split_nodes(numbers, 0).test):
        raise CommandError(
            f"{source.name}: {int(has_class.sum()):,} nodes with a class, of {len(values)} classes: "
            "too few for node classification\nexpected 2 classes, and nodes beyond those of the "
            "training"
        )
    return Nodes(source.name, source.graph.node_names, attributes, numbers, values)


def _on_nodes(name: str, graph: Data, nodes: Sequence[str]) -> Data:
    """Put a graph on given nodes; edges at other nodes are left out."""
    number = {node: i for i, node in enumerate(nodes)}
    numbers = torch.tensor([number.get(node, -1) for node in graph.node_names])
    if not (numbers >= 0).any():
        raise CommandError(
            f"{name}: none of its nodes is in the first synthetic graph, whose first node is "
            f"{nodes[0]!r}\nnode classification needs graphs of the same nodes"
        )
    edges = numbers[undirected_edges(graph)]
    return make_graph(edges[(edges >= 0).all(1)], len(nodes), nodes)
