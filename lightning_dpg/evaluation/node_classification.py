"""Node classification on releases, beside controls and the real graph."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.evaluation.node_evaluation import NodeEvaluation, NodeRow, Role, Setting
from lightning_dpg.evaluation.public_nodes import (
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
from lightning_dpg.graph.graph import make_graph, places_of, undirected_edges
from lightning_dpg.graph.held_out import Split, split_at_random, split_nodes, split_others
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.metrics.node_classification import (
    NETWORKS,
    node_scores,
)
from lightning_dpg.nn.class_student import ClassEvidence
from lightning_dpg.release.release import Release

SEEDS = 5
"""Usual number of public seeds; each has a split, initial weights and graphs for comparison of its own."""

_SPLITTING = ("split_seed", "train_fraction", "num_nodes")
"""Settings that depend on the nodes and on their split."""
_PRIVATE_FRACTION = 0.75
"""Share of the nodes for training where labels are private, which have no use of few nodes."""


class NamedPredictions(NamedTuple):
    """An open release of a method that learns classes of nodes, with its name."""

    name: str
    release: Release

    @property
    def method(self) -> NodeClassifier:
        """Its method."""
        method: NodeClassifier = self.release.method
        return method

    @property
    def row_epsilon(self) -> float | None:
        """Epsilon of its reports of private labels; None where classes are public."""
        return float(self.method.label_epsilon) if self.method.reads_private_columns else None


class Predicted(NamedTuple):
    """What one fit has learned from and predicts, on the nodes and classes of a table."""

    evidence: ClassEvidence
    logs: dict[str, Tensor]
    """Log probabilities of shape ``(N, C)``: ``posteriors``, which are those of the release, and
    ``student``, from attributes alone."""


def settings_of(method: NodeClassifier) -> dict[str, Any]:
    """Return the settings of a method but those of its nodes and its split."""
    return {
        name: value
        for name, value in method.hparams.items()
        if name[:1] != "_" and name not in _SPLITTING  # "_": the command line's own
    }


def predicted(method: NodeClassifier, attributes: Tensor, values: Tensor) -> Predicted:
    """Return the predictions of a fit, whose nodes are those of the table in their order.

    Args:
        method: The fitted method.
        attributes: Attributes of shape ``(N, F)``.
        values: Number of each class in its data, ascending, shape ``(C,)``; those that it does not
            know have the probability 0.
    """
    columns = torch.searchsorted(values, method.classes.cpu())

    def on_classes(rows: Tensor, absent: float) -> Tensor:
        found = torch.full((len(rows), len(values)), absent, dtype=rows.dtype)
        found[:, columns] = rows.cpu()
        return found

    with torch.no_grad():
        student = method.eval().predict_proba(attributes)
    nodes, log_likelihoods = method.evidence()
    return Predicted(
        ClassEvidence(nodes, on_classes(log_likelihoods, -torch.inf)),
        {
            "posteriors": on_classes(method.node_posteriors(), 0.0).log(),
            "student": on_classes(student, 0.0).log(),
        },
    )


def of_release(one: NamedPredictions, nodes: ClassifiedNodes) -> Predicted:
    """Return the predictions of a release for the nodes of a table; no edge is read.

    Args:
        one: The release.
        nodes: Nodes of the table, which it may have in another order.

    Raises:
        CommandError: If its nodes, attributes or classes are not those of the table.
    """
    places = _places(one, nodes)
    _check_classes(one, nodes, places)
    try:
        found = predicted(one.method, nodes.attributes, nodes.values)
    except Refusal as error:
        raise CommandError(
            f"{one.name}: its attributes are not those of {nodes.source}: {error}"
        ) from error
    known = places.argsort()[found.evidence.nodes]
    order = known.argsort()
    evidence = ClassEvidence(known[order], found.evidence.log_likelihoods[order])
    return Predicted(evidence, found.logs | {"posteriors": found.logs["posteriors"][places]})


def refitted(
    one: NamedPredictions, public: PublicNodes, graph: Data, train: Tensor, *, is_private: bool
) -> Predicted:
    """Fit the method of a release again, with its settings, to a graph of the nodes.

    Labels that are private in the release are so again, and are reported anew.

    Args:
        one: The release.
        public: Nodes of the table.
        graph: The graph.
        train: Nodes whose classes are learned from, shape ``(K,)``.
        is_private: Whether the fit has the budget of the release, or no noise of edges.
    """
    method: NodeClassifier = type(one.method)(**settings_of(one.method))
    epsilon, delta = math.inf, 0.0
    if is_private:
        statement = one.release.statement
        epsilon, delta = float(statement["epsilon"]), float(statement["delta"])
    public.learn(method, graph, train, epsilon, delta, one.row_epsilon)
    return predicted(method, public.attributes, torch.arange(public.num_classes))


class Splits(NamedTuple):
    """The splits of a table.

    Attributes:
        seeds: Public seed of each split.
        splits: The splits.
        has_own: Whether the training nodes of the first one are those of the releases.
    """

    seeds: Sequence[int]
    splits: Sequence[Split]
    has_own: bool


def splits_of(
    nodes: ClassifiedNodes,
    releases: Sequence[NamedPredictions],
    found: Sequence[Predicted],
    num_seeds: int | None,
    first_seed: int,
    train_fraction: float | None,
) -> Splits:
    """Return splits by public seeds, of which the first one is that of the releases if they have one.

    A release that has learned all classes has no split, and leaves none to predict.

    Args:
        nodes: Nodes of the table.
        releases: The releases, if there are any.
        found: What each of them has learned from.
        num_seeds: Number of splits; None is the usual one.
        first_seed: Seed of the first split, unless releases have one.
        train_fraction: Share of the nodes for training, see :func:`split_nodes`, unless releases have
            a split.

    Raises:
        CommandError: If the releases have not learned from the same, or have a split and another one
            is asked for.
    """
    count = SEEDS if num_seeds is None else num_seeds

    def drawn(first: int, number: int, share: float | None) -> list[Split]:
        seeds = range(first, first + number)
        if releases and releases[0].method.reads_private_columns:
            some = torch.nonzero(nodes.classes >= 0)[:, 0]
            return [split_at_random(some, seed, share or _PRIVATE_FRACTION) for seed in seeds]
        return [split_nodes(nodes.classes, seed, share) for seed in seeds]

    own = _own_split(nodes, releases, found)
    if own is None:
        splits = drawn(first_seed, count, train_fraction)
        return Splits(range(first_seed, first_seed + count), splits, has_own=False)
    name, settings = releases[0].name, releases[0].method.hparams
    if train_fraction is not None:
        raise CommandError(
            f"{name}: has training nodes of its own, and a share for training is given\n"
            "leave it out: --train-fraction, in Python train_fraction"
        )
    seed, share = settings["split_seed"], settings["train_fraction"]
    if seed is not None:
        splits = [own, *drawn(seed + 1, count - 1, share)]
        return Splits(range(seed, seed + count), splits, has_own=True)
    if num_seeds not in (None, 1):
        raise CommandError(
            f"{name}: has learned the classes that its data had, and there are no other splits\n"
            "leave the number of seeds out: --num-seeds, in Python num_seeds"
        )
    return Splits((first_seed,), (own,), has_own=True)


def _own_split(
    nodes: ClassifiedNodes, releases: Sequence[NamedPredictions], found: Sequence[Predicted]
) -> Split | None:
    """Split around the training nodes of releases; None if they leave no class to predict."""
    for one, other in zip(releases, found, strict=True):
        if not _is_same(other.evidence, found[0].evidence):
            has_reports = any(each.method.reads_private_columns for each in (releases[0], one))
            what = "other reports of labels" if has_reports else "the classes of other nodes"
            raise CommandError(
                f"{one.name}: learned from {what} than {releases[0].name}\n"
                "all rows of a table learn from the same: evaluate each one by itself"
            )
    if not releases:
        return None
    settings = releases[0].method.hparams
    seed, share = settings["split_seed"] or 0, settings["train_fraction"]
    own = split_others(nodes.classes, found[0].evidence.nodes, seed, share)
    return own if len(own.test) else None


def _is_same(first: ClassEvidence, second: ClassEvidence) -> bool:
    return all(map(torch.equal, first, second))


def _places(one: NamedPredictions, nodes: ClassifiedNodes) -> Tensor:
    """Row of each node of the table in a release, shape ``(N,)``."""
    names = one.method.node_names or ()
    places = places_of(nodes.names, names)
    if places is None:
        missing = [name for name in nodes.names if name not in {*names}]
        raise CommandError(
            f"{one.name}: has {len(names):,} nodes, and {nodes.source} has {len(nodes.names):,}"
            + (f", such as {missing[0]!r}, which it lacks" if missing else "")
            + "\nnode classification needs the same nodes in all rows"
        )
    return places


def _check_classes(one: NamedPredictions, nodes: ClassifiedNodes, places: Tensor) -> None:
    """Refuse a release whose classes are not those of the table; reports may be wrong by chance."""
    given = nodes.values[nodes.classes.clamp(min=0)].where(nodes.classes >= 0, -1)
    learned = one.method.known_labels()[places]
    if one.method.reads_private_columns:
        is_same = torch.isin(given[given >= 0], one.method.classes.cpu())
    else:
        is_same = given[learned >= 0] == learned[learned >= 0]
    if not is_same.all():
        raise CommandError(
            f"{one.name}: learned other classes than {nodes.source} has\n"
            "evaluate it with the column of classes of its fit: evaluate RUN, or in Python its data"
        )


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
    original = on_nodes(name, real, nodes.names)
    placed = [each._replace(graph=on_nodes(each.name, each.graph, nodes.names)) for each in graphs]
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
    domains = [one.method.classes.cpu() for one in predictions if one.method.reads_private_columns]
    if domains:
        values = torch.unique(torch.cat([values, *domains]))
        numbers[has_class] = torch.searchsorted(values, classes[has_class])
    return ClassifiedNodes(source.name, source.graph.node_names, attributes, numbers, values)


def on_nodes(name: str, graph: Data, nodes: Sequence[str]) -> Data:
    """Put a graph on given nodes; edges at other nodes are left out.

    Args:
        name: Name of the graph.
        graph: The graph.
        nodes: Names of the nodes.

    Raises:
        CommandError: If it has none of them.
    """
    number = {node: i for i, node in enumerate(nodes)}
    numbers = torch.tensor([number.get(node, -1) for node in graph.node_names])
    if not (numbers >= 0).any():
        raise CommandError(
            f"{name}: none of its nodes is in the first synthetic graph, whose first node is "
            f"{nodes[0]!r}\nnode classification needs graphs of the same nodes"
        )
    edges = numbers[undirected_edges(graph)]
    return make_graph(edges[(edges >= 0).all(1)], len(nodes), nodes)
