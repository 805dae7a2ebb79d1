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
from lightning_dpg.evaluation.node_controls import (
    DEGREES_ALONE,
    NO_GRAPH,
    REAL_GRAPH,
    SIMILARITY_GRAPH,
    ClassifiedNodes,
    Drawn,
    PublicNodes,
    controls,
    rewired,
)
from lightning_dpg.evaluation.node_evaluation import NodeEvaluation, NodeRow, Role, Setting
from lightning_dpg.evaluation.node_predictions import (
    NamedPredictions,
    Predicted,
    of_release,
    refitted,
    settings_of,
    splits_of,
)
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.held_out import split_nodes
from lightning_dpg.metrics.node_classification import NETWORKS, node_scores
from lightning_dpg.release.release import Release

_FIT = (
    "fit with a table that has them: --attributes people.csv\n"
    "a column y of whole numbers is the classes; another column is with\n"
    "--data.nodes.policy.COLUMN label"
)
_GIVE = (
    "evaluate RUN reads those of the fit\n"
    "in Python give them: attributes in the graph, labels='COLUMN', or the data module of the fit"
)


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
    num_seeds: int | None = None,
    first_seed: int = 0,
    train_fraction: float | None = None,
) -> NodeEvaluation:
    """Score predictions of classes: of releases, of networks on released graphs, and of controls.

    Args:
        name: Name of the real graph.
        real: The real graph (private), with the true classes ``y`` where labels are private; nodes
            that the first synthetic graph lacks are left out.
        graphs: Synthetic graphs on the same nodes. The attributes ``x`` and classes ``y`` are those
            of the first one, or of the real graph where there is none.
        predictions: Releases of methods that learn classes, on the same nodes. The training nodes
            and seed of the first split are theirs, unless they have learned all classes. For all
            other splits their methods are fitted again, within the same budget.
        num_seeds: Number of splits, 5 by default.
        first_seed: Public seed of the first split, unless the releases have one.
        train_fraction: Share of the nodes of each class for training, 20 nodes by default; see
            :func:`lightning_dpg.graph.held_out.split_nodes`.

    Raises:
        CommandError: If there are no attributes or classes, if a graph or a release has other nodes,
            or if splits are asked for where releases have their own.
    """
    nodes = public_nodes(graphs[0] if graphs else NamedGraph(name, real, ""), predictions)
    own = [of_release(one, nodes) for one in predictions]
    seeds, splits, has_own = splits_of(
        nodes, predictions, own, num_seeds, first_seed, train_fraction
    )
    original = _on_nodes(name, real, nodes.names)
    placed = [each._replace(graph=_on_nodes(each.name, each.graph, nodes.names)) for each in graphs]
    num_edges = (placed[0].graph if placed else original).num_edges // 2
    public = PublicNodes(nodes, num_edges)
    fits = [
        [
            release
            if has_own and not place
            else refitted(one, public, original, split.train, is_private=True)
            for place, split in enumerate(splits)
        ]
        for one, release in zip(predictions, own, strict=True)
    ]
    learned = [one.evidence for one in fits[0]] if fits else [public.known(s.train) for s in splits]
    drawn = [Drawn(*each) for each in zip(splits, seeds, learned, strict=True)]
    task = _Task(public, original, drawn)
    rows = [
        *task.controls(),
        *(row for one in _distinct(predictions) for row in task.without_noise(one)),
        *task.trained(DEGREES_ALONE, "real", [rewired(original, seed) for seed in seeds]),
        *(row for one in placed for row in task.on_release(one)),
        *(
            row
            for one, found in zip(predictions, fits, strict=True)
            for row in task.predictions(one, found, len(drawn) - has_own)
        ),
        *task.trained(REAL_GRAPH, "real", [original] * len(drawn)),
    ]
    sizes = map(len, splits[0])
    return NodeEvaluation(Setting(name, len(nodes.names), tuple(seeds), *sizes), tuple(rows))


_Logs = Sequence[Tensor]
"""Log probabilities of the test nodes, and those with the edges of the real graph, if any."""


class _Task(NamedTuple):
    """Everything that the rows share."""

    public: PublicNodes
    real: Data
    drawn: Sequence[Drawn]

    def controls(self) -> Iterator[NodeRow]:
        """Yield the rows that read no edge of the real graph, but those of methods of releases."""
        found = [controls(self.public, one, [self.real]) for one in self.drawn]
        num_similar = self.public.similarity_graph.num_edges // 2
        for graph, network in found[0]:
            logs = [predict[graph, network]() for predict in found]
            num_edges = 0 if graph == NO_GRAPH else num_similar
            yield self._row(graph, "control", num_edges, network, logs)

    def without_noise(self, one: NamedPredictions) -> Iterator[NodeRow]:
        """Yield the rows of the method of a release on the similarity graph, without noise."""
        graph = self.public.similarity_graph
        fits = [
            refitted(one, self.public, graph, drawn.split.train, is_private=False)
            for drawn in self.drawn
        ]
        method = type(one.method).__name__
        for part, logs in self._parts(fits):
            network = f"{method}, {part}"
            yield self._row(SIMILARITY_GRAPH, "control", graph.num_edges // 2, network, logs)

    def trained(
        self, name: str, role: Role, graphs: Sequence[Data], guarantee: str = ""
    ) -> Iterator[NodeRow]:
        """Yield the row of each network that is trained on a graph for each seed."""
        num_edges = statistics.mean(graph.num_edges // 2 for graph in graphs)
        for network in NETWORKS:
            logs = [
                self.public.trained(network, [graph, self.real], one)
                for graph, one in zip(graphs, self.drawn, strict=True)
            ]
            yield self._row(name, role, num_edges, network, logs, guarantee)

    def on_release(self, one: NamedGraph) -> Iterator[NodeRow]:
        """Yield the rows of a released graph."""
        return self.trained(one.name, "released", [one.graph] * len(self.drawn), one.guarantee)

    def predictions(
        self, one: NamedPredictions, fits: Sequence[Predicted], num_refits: int
    ) -> Iterator[NodeRow]:
        """Yield the rows of a release that predicts."""
        for part, logs in self._parts(fits):
            row = self._row(one.name, "released", math.nan, part, logs, one.release.guarantee)
            yield row._replace(num_refits=num_refits)

    def _parts(self, fits: Sequence[Predicted]) -> Iterator[tuple[str, list[_Logs]]]:
        """Yield the predictions of the test nodes by each part of the fits of all seeds."""
        for part in fits[0].logs:
            pairs = zip(fits, self.drawn, strict=True)
            yield part, [[fit.logs[part][one.split.test]] for fit, one in pairs]

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
            node_scores(found[0], self.public.classes[one.split.test], *found[1:])
            for found, one in zip(logs, self.drawn, strict=True)
        )
        return NodeRow(name, guarantee, role, num_edges, network, scores)


def _distinct(predictions: Sequence[NamedPredictions]) -> list[NamedPredictions]:
    """Return a release for each method and settings: budgets do not change a fit without noise."""
    found = {(type(one.method), repr(settings_of(one.method))): one for one in predictions}
    return [*found.values()]


def public_nodes(
    source: NamedGraph, predictions: Sequence[NamedPredictions] = ()
) -> ClassifiedNodes:
    """Return the nodes of a graph with their attributes and classes.

    Args:
        source: The graph, with ``x`` and ``y``; a node without a class has -1.
        predictions: Releases, whose private labels may have more classes than the nodes.

    Raises:
        CommandError: If it has none, or too few classes or nodes.
    """
    attributes, classes = source.graph.x, source.graph.y
    lacks = "classes" if classes is None else "attributes"
    if attributes is None or not attributes.shape[1] or classes is None:
        raise CommandError(
            f"{source.name}: no {lacks} of nodes, which node classification learns from\n"
            + (_GIVE if predictions else _FIT)
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
    domains = [one.method.classes.cpu() for one in predictions if one.method.pays_rows]
    if domains:
        values = torch.unique(torch.cat([values, *domains]))
        numbers[has_class] = torch.searchsorted(values, classes[has_class])
    return ClassifiedNodes(source.name, source.graph.node_names, attributes, numbers, values)


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
