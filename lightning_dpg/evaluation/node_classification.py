"""Node classification on synthetic graphs, beside baselines and the real graph."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.errors import CommandError
from lightning_dpg.evaluation.measured import NOT_PRIVATE
from lightning_dpg.evaluation.node_controls import PublicNodes, rewired
from lightning_dpg.formats.whole_files import write_whole
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.node_splits import split_nodes
from lightning_dpg.metrics.glossary import GLOSSARY
from lightning_dpg.metrics.node_classification import (
    NETWORKS,
    NODE_QUERIES,
    NodeScores,
    node_log_probabilities,
    node_scores,
)
from lightning_dpg.pages.page import Table, notebook, render
from lightning_dpg.release.release import Release
from lightning_dpg.tables import as_csv, as_data_frame, as_json, as_text

SEEDS = (0, 1, 2, 3, 4)
"""Public seeds; each has a split, initial weights and baseline graphs of its own."""

_HEADS = ("graph", "edges", "network")


class Setting(NamedTuple):
    """The numbers that all rows share."""

    real: str
    """Name of the real graph."""
    num_nodes: int
    seeds: tuple[int, ...]
    num_train: int
    num_validation: int
    num_test: int

    @property
    def sentence(self) -> str:
        """The setting in one line."""
        return (
            f"Node classification against {self.real}: {self.num_nodes:,} nodes, {self.num_train:,} "
            f"for training, {self.num_validation:,} for validation, {self.num_test:,} for the test; "
            f"in %, mean ± standard deviation of {len(self.seeds)} seeds"
        )


class NodeRow(NamedTuple):
    """Scores of one network that was trained on one graph."""

    graph: str
    """Name of the graph of the training."""
    guarantee: str
    """Guarantee of its release in one sentence; empty if no statement was given."""
    reads_real: bool
    """Whether the edges of the training were computed from the real graph without a guarantee."""
    num_edges: float
    """Number of its edges, mean of the seeds."""
    network: str
    scores: tuple[NodeScores, ...]
    """Scores by seed."""

    def values(self, query: str) -> list[float]:
        """Return the values of one score by seed."""
        return [float(getattr(scores, query)) for scores in self.scores]

    def mean(self, query: str) -> float:
        """Return the mean of one score."""
        return statistics.mean(self.values(query))

    def deviation(self, query: str) -> float:
        """Sample standard deviation of one score; 0 for one seed."""
        values = self.values(query)
        return statistics.stdev(values) if len(values) > 1 else 0.0

    def text(self, query: str) -> str:
        """Format the mean and deviation of one score, in percent."""
        return f"{100 * self.mean(query):.1f} ± {100 * self.deviation(query):.1f}"


class NamedGraph(NamedTuple):
    """One synthetic graph with its name and the sentence of its guarantee."""

    name: str
    graph: Data
    guarantee: str
    statement: Mapping[str, Any] = {}
    """Privacy statement of its release; empty if there is none."""
    release: Release | Path | None = None
    """Its release, open or as a folder."""


@dataclass(frozen=True, eq=False, repr=False)
class NodeEvaluation:
    """Scores of networks that predict classes of nodes from synthetic graphs.

    A network is trained on the edges of one graph, with the public attributes of all nodes and the
    public classes of the training nodes. It predicts the classes of the test nodes from the same
    edges, because a user of a release has no others. So these scores of a release are computed from
    the release and cost no privacy. The real graph is read in the rows "degrees alone" and "real
    graph", and for the last score, the accuracy with the edges of the real graph: those numbers are
    private.

    The baselines are: no graph; a similarity graph, which links nearest neighbors by attributes and
    has as many edges as the first synthetic graph; and degrees alone, Chung-Lu graphs of the degrees
    of the real graph, without noise. The real graph is the upper bound.

    Attributes:
        setting: Name of the real graph, seeds and sizes of the parts.
        rows: A row for each graph and network.
    """

    setting: Setting
    rows: tuple[NodeRow, ...]

    def table(self) -> list[str]:
        """Return the lines of the table, with an empty line after them."""
        rows = [self._heads(), *map(_cells, self.rows)]
        return [self.setting.sentence, *as_text(rows, left={0, 2}), ""]

    def _heads(self) -> list[str]:
        return [*_HEADS, *(GLOSSARY[query].label for query in NODE_QUERIES)]

    def __str__(self) -> str:
        """Return the table, and a reminder that it is not private."""
        return "\n".join([*self.table(), NOT_PRIVATE])

    def __repr__(self) -> str:
        """Return the table, as ``str`` does."""
        return str(self)

    def to_json(self) -> str:
        """Return all scores as strict JSON, with the value of each seed."""
        rows = [
            {
                **{name: getattr(row, name) for name in ("graph", "num_edges", "network")},
                "trained_on_real_edges": row.reads_real,
                "guarantee": row.guarantee,
                "scores": {
                    query: {
                        "mean": row.mean(query),
                        "deviation": row.deviation(query),
                        "values": row.values(query),
                    }
                    for query in NODE_QUERIES
                },
            }
            for row in self.rows
        ]
        return as_json({"task": "node_classification", **self.setting._asdict(), "rows": rows})

    def to_csv(self, path: str | Path) -> None:
        """Write a row for each graph, network and score.

        Args:
            path: File to write.
        """
        write_whole(Path(path), self._csv())

    def _csv(self) -> str:
        seeds = " ".join(map(str, self.setting.seeds))
        rows = (
            (row.graph, row.num_edges, row.network, query, row.mean(query), row.deviation(query))
            for row in self.rows
            for query in NODE_QUERIES
        )
        head = [*_HEADS, "score", "mean", "deviation", "seeds"]
        return as_csv(head, ((*row, seeds) for row in rows))

    def to_dataframe(self) -> Any:
        """Return a row for each graph, network and score, as a DataFrame of pandas.

        ``to_latex`` of the DataFrame prints a table for a paper.

        Raises:
            CommandError: If pandas is not installed.
        """
        rows = [
            [*start, query, row.mean(query), row.deviation(query), row.reads_real]
            for row in self.rows
            for start in [(row.graph, row.num_edges, row.network)]
            for query in NODE_QUERIES
        ]
        head = [*_HEADS, "score", "mean", "deviation", "trained_on_real_edges"]
        return as_data_frame(head, rows)

    def to_html(self, path: str | Path) -> None:
        """Write one page that works without a network: the table, and the meaning of the scores.

        Args:
            path: File to write.
        """
        write_whole(Path(path), self.to_html_text())

    def to_html_text(self) -> str:
        """Return the text of the page of :meth:`to_html`."""
        guarantees = dict.fromkeys((row.graph, row.guarantee) for row in self.rows if row.guarantee)
        parts = {
            "sentence": self.setting.sentence,
            "guarantees": guarantees,
            "csv": self._csv(),
            "json": self.to_json(),
            "head": _HEADS,
            "queries": NODE_QUERIES,
            "rows": map(_cells, self.rows),
        }
        return render("node_evaluation", parts)

    def _repr_html_(self) -> str:
        """Show the table in a notebook."""
        rows = [*map(_cells, self.rows)]
        return notebook(NOT_PRIVATE, [Table(self.setting.sentence, "", self._heads(), rows)])


def _cells(row: NodeRow) -> list[str]:
    return [row.graph, f"{row.num_edges:.0f}", row.network, *map(row.text, NODE_QUERIES)]


def evaluate_nodes(
    name: str, real: Data, graphs: Sequence[NamedGraph], seeds: Sequence[int] = SEEDS
) -> NodeEvaluation:
    """Train networks on synthetic graphs, baselines and the real graph, and score predictions.

    Args:
        name: Name of the real graph.
        real: The real graph (private); nodes that the first synthetic graph lacks are left out.
        graphs: Synthetic graphs, at least one. The attributes ``x`` and classes ``y`` are those of
            the first one, and the others have the same nodes.
        seeds: Public seeds.

    Raises:
        CommandError: If the first graph has no attributes or classes, or if a graph has other nodes.
    """
    first = graphs[0]
    attributes, classes = public_parts(first)
    nodes = first.graph.node_names
    original = _on_nodes(name, real, nodes)
    synthetic = [each._replace(graph=_on_nodes(each.name, each.graph, nodes)) for each in graphs]
    public = PublicNodes(attributes, classes, synthetic[0].graph.num_edges // 2)
    splits = [split_nodes(classes, seed) for seed in seeds]

    def scores(network: str, graph: Data, number: int) -> NodeScores:
        split = splits[number]
        own, on_real = node_log_probabilities(
            network, [graph, original], public.scaled, classes, split, seeds[number]
        )
        return node_scores(own, classes[split.test], on_real)

    measured = tuple(
        NodeRow(
            place.name,
            place.guarantee,
            place.reads_real,
            statistics.mean(graph.num_edges // 2 for graph in place.graphs),
            network,
            tuple(scores(network, graph, number) for number, graph in enumerate(place.graphs)),
        )
        for place in _places(original, synthetic, public, seeds)
        for network in NETWORKS
    )
    sizes = tuple(map(len, splits[0]))
    return NodeEvaluation(Setting(name, len(nodes), tuple(seeds), *sizes), measured)


class _Place(NamedTuple):
    """A row of the table before it is measured."""

    name: str
    guarantee: str
    reads_real: bool
    graphs: Sequence[Data]
    """Graph of the training for each seed."""


def _places(
    real: Data, graphs: Sequence[NamedGraph], public: PublicNodes, seeds: Sequence[int]
) -> Iterator[_Place]:
    """Yield baselines, synthetic graphs, and the real graph."""
    yield _Place("no graph", "", False, [public.no_graph] * len(seeds))
    yield _Place("similarity graph", "", False, [public.similarity_graph] * len(seeds))
    yield _Place("degrees alone", "", True, [rewired(real, seed) for seed in seeds])
    for synthetic in graphs:
        yield _Place(synthetic.name, synthetic.guarantee, False, [synthetic.graph] * len(seeds))
    yield _Place("real graph", "", True, [real] * len(seeds))


def public_parts(named_graph: NamedGraph) -> tuple[Tensor, Tensor]:
    """Return the attributes ``(N, F)`` of a graph, and its classes from 0 on, shape ``(N,)``.

    Args:
        named_graph: The graph, with ``x`` and ``y``; a node without a class has -1.

    Raises:
        CommandError: If it has none, or too few classes or nodes.
    """
    attributes, classes = named_graph.graph.x, named_graph.graph.y
    lacks = "classes" if classes is None else "attributes"
    if attributes is None or not attributes.shape[1] or classes is None:
        raise CommandError(
            f"{named_graph.name}: no {lacks} of nodes, which node classification learns from\n"
            "fit with a table that has them: --attributes people.csv\n"
            "a column y of whole numbers is the classes; another column is with\n"
            "--data.nodes.policy.COLUMN label"
        )
    has_class = classes >= 0
    numbers = torch.full_like(classes, -1)
    values, numbers[has_class] = classes[has_class].unique(return_inverse=True)
    if len(values) < 2 or not len(split_nodes(numbers, 0).test):
        raise CommandError(
            f"{named_graph.name}: {int(has_class.sum()):,} nodes with a class, of {len(values)} classes: "
            "too few for node classification\nexpected 2 classes, and nodes beyond those of the "
            "training"
        )
    return attributes, numbers


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
