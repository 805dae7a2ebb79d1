"""Scores of predicted classes of nodes as tables, files and pages, and differences from controls."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.stats import t

from lightning_dpg.metrics.figures import COLORS, Bars, Pictures, Series
from lightning_dpg.metrics.glossary import glossary
from lightning_dpg.metrics.node_classification import NODE_QUERIES, NodeScores
from lightning_dpg.pages.page import Table
from lightning_dpg.pages.report import Report

_LEVEL = 0.95


class Difference(NamedTuple):
    """Mean difference of paired values, with a confidence interval of 95 %."""

    mean: float
    half_width: float
    """Half of the interval; nan for a single pair."""

    @property
    def is_noise(self) -> bool:
        """Whether the interval holds 0, or there is none."""
        return not abs(self.mean) > self.half_width

    def text(self, factor: float = 1.0) -> str:
        """Format the difference with its interval, if there is one.

        Args:
            factor: Factor of both, such as 100 for shares in percent.
        """
        half = "" if math.isnan(self.half_width) else f" ± {factor * self.half_width:.1f}"
        return f"{factor * self.mean:+.1f}{half}"


def paired_difference(values: Sequence[float], others: Sequence[float]) -> Difference:
    """Mean of the differences of pairs, and half of its t interval of 95 %.

    Args:
        values: Values by seed.
        others: Values of the other row at the same seeds.
    """
    differences = np.subtract(values, others)
    count = len(differences)
    if count < 2:
        return Difference(float(differences.mean()), math.nan)
    quantile = float(t.ppf((1 + _LEVEL) / 2, count - 1))
    error = float(differences.std(ddof=1)) / count**0.5
    return Difference(float(differences.mean()), quantile * error)


_HEADS = ("graph", "edges", "network")
_CAPTION = (
    "A network is trained on the edges of the graph in its row, with the public attributes of all nodes and "
    "the known classes of the training nodes. It predicts the classes of the test nodes from the same edges, "
    "because a user of a release has no others. A release that predicts classes is scored by its posteriors, "
    "and by its student from attributes alone. Controls read no edge of the real graph; they stand in the "
    'first rows, and have no difference. The real graph is read in the rows "degrees alone" and "real graph", '
    "and for the accuracy on its edges."
)
_BY = "node_accuracy"
"""Score that chooses the best control."""


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
        count = len(self.seeds)
        return (
            f"Node classification against {self.real}: {self.num_nodes:,} nodes, {self.num_train:,} "
            f"for training, {self.num_validation:,} for validation, {self.num_test:,} for the test; "
            f"in %, mean ± standard deviation of {count} {'seeds' if count > 1 else 'seed'}"
        )


Role = Literal["control", "released", "real"]
"""A row that reads no edge of the real graph, a row of a release, or one without protection."""


class NodeRow(NamedTuple):
    """Scores of one network that was trained on one graph, or of released predictions."""

    graph: str
    """Name of the graph of the training, or of the release."""
    guarantee: str
    """Guarantee of its release in one sentence; empty if no statement was given."""
    role: Role
    num_edges: float
    """Number of edges of the training, mean of the seeds; nan for released predictions."""
    network: str
    """Network or method, or the part of a release that predicts: ``posteriors`` or ``student``."""
    scores: tuple[NodeScores, ...]
    """Scores by seed."""
    num_refits: int = 0
    """Number of the last seeds whose scores are those of another fit in place of the release."""

    def values(self, query: str) -> list[float]:
        """Return the values of one score by seed."""
        return [float(getattr(scores, query)) for scores in self.scores]

    def mean(self, query: str) -> float:
        """Return the mean of one score; nan if the row does not have it."""
        return statistics.fmean(self.values(query))

    def deviation(self, query: str) -> float:
        """Sample standard deviation of one score; 0 for one seed."""
        values = self.values(query)
        if math.isnan(self.mean(query)):
            return math.nan
        return statistics.stdev(values) if len(values) > 1 else 0.0

    def text(self, query: str) -> str:
        """Format the mean and deviation of one score, in percent."""
        if math.isnan(self.mean(query)):
            return ""
        deviation = f" ± {100 * self.deviation(query):.1f}" if len(self.scores) > 1 else ""
        return f"{100 * self.mean(query):.1f}{deviation}"

    @property
    def title(self) -> str:
        """Name of the row in a sentence."""
        return f"{self.graph} ({self.network})"


@dataclass(frozen=True, eq=False, repr=False)
class NodeEvaluation(Report):
    """Scores of predicted classes of nodes, from releases and from controls.

    A network is trained on the edges of one graph, with the public attributes of all nodes and the
    known classes of the training nodes. It predicts the classes of the test nodes from the same
    edges, because a user of a release has no others. The classes of the validation nodes choose its
    step. A release of a method that learns classes itself is scored by its posteriors, and by its
    student from attributes alone. So the scores of a release are computed from the release and cost
    no privacy.

    Each seed has a split. A release has learned from the training nodes of the first one; for the
    other seeds, and for all if it has learned all classes, its method is fitted again, within the
    budget of the release, from the training nodes of the seed. These fits measure the method, and
    are no releases. Where labels are private, all rows of a seed learn from the same reports,
    and the true labels choose the steps of networks and are scored.

    Controls read no edge of the real graph: networks without a graph, and on a similarity graph,
    which links nearest neighbors by attributes; self-training; a logistic regression of
    all columns by tf-idf; and the method of each release on the similarity graph, without noise. The
    similarity graph has as many edges as the first synthetic graph, or as the real graph where there
    is none. What a release has learned from edges is its distance from the best control.

    The real graph is read in the rows "degrees alone", Chung-Lu graphs of its degrees, and "real
    graph", which is the upper bound, and for the last score, the accuracy with its edges.

    Attributes:
        setting: Name of the real graph, seeds and sizes of the parts.
        rows: A row for each graph and network.
    """

    title: ClassVar[str] = "Node classification on a release"
    columns: ClassVar[Sequence[str]] = (
        *(*_HEADS, "score", "mean", "deviation", "to_best_control", "half_width", "role", "seeds"),
    )

    setting: Setting
    rows: tuple[NodeRow, ...]

    @property
    def best_control(self) -> NodeRow:
        """The control with the best mean accuracy."""
        controls = [row for row in self.rows if row.role == "control"]
        return max(controls, key=lambda row: row.mean(_BY))

    def difference(self, row: NodeRow, query: str = _BY) -> Difference:
        """Return the difference of a row from the best control, paired by seeds.

        Args:
            row: The row.
            query: Score that is compared.
        """
        return paired_difference(row.values(query), self.best_control.values(query))

    def sections(self) -> list[Table]:
        """Return the scores and their conclusion as one table."""
        labels = (glossary()[query].label for query in NODE_QUERIES)
        guarantees = dict.fromkeys(
            f"guarantee of {row.graph}: {row.guarantee}" for row in self.rows if row.guarantee
        )
        head = (*_HEADS, *labels, "to best control")
        notes = [*self.conclusion(), *guarantees]
        rows = [*map(self._cells, self.rows)]
        return [Table(f"{self.setting.sentence}.", _CAPTION, head, rows, notes, (0, 2))]

    def pictures(self) -> Pictures:
        """Return the mean accuracy of each row as bars, of the kind ``classes``."""
        shares = [*enumerate(row.mean(_BY) for row in self.rows)]
        titles = [row.title for row in self.rows]
        series = [Series("accuracy", shares, COLORS[0])]
        return {"classes": lambda: [Bars("Classes of nodes", "accuracy", titles, series)]}

    def conclusion(self) -> list[str]:
        """Name the best control, and say which released rows are beyond the noise of seeds."""
        start = [
            f"Best control: {self.best_control.title}. "
            + "Differences in accuracy are paired by seed, ± half of their 95 % interval.",
            *self._refits(),
        ]
        if len(self.setting.seeds) == 1:
            return [*start, "One seed has no interval: it cannot tell a difference from noise."]
        groups: dict[str, list[str]] = {"above it": [], "within noise of it": [], "below it": []}
        for row in self.rows:
            if row.role == "released":
                found = self.difference(row)
                beyond = "above it" if found.mean > 0 else "below it"
                groups["within noise of it" if found.is_noise else beyond].append(row.title)
        found_groups = [f"{group}: {', '.join(names)}" for group, names in groups.items() if names]
        return [*start, *found_groups]

    def _refits(self) -> Iterator[str]:
        """Say where the scores are not those of the releases themselves."""
        refits = {row.graph: row.num_refits for row in self.rows if row.num_refits}
        if not refits:
            return
        names, count = ", ".join(refits), len(self.setting.seeds)
        if count in refits.values():  # all rows of a table have learned from the same
            yield (
                f"{names}: learned all classes, which leaves none to predict. For each seed the method "
                "was fitted again, within its budget, without the classes of other nodes."
            )
        else:
            yield (
                f"{names}: the first seed is the release. For all others the method was fitted again, "
                "within its budget."
            )

    def _cells(self, row: NodeRow) -> list[str]:
        edges = "" if math.isnan(row.num_edges) else f"{row.num_edges:.0f}"
        found = "" if row.role == "control" else self.difference(row).text(100)
        return [row.graph, edges, row.network, *map(row.text, NODE_QUERIES), found]

    @property
    def values(self) -> dict[str, Any]:
        """All scores, with the value of each seed; nan is what a row lacks."""
        best = self.best_control
        names = ("graph", "num_edges", "network", "role", "guarantee", "num_refits")
        rows = [
            {
                **{name: getattr(row, name) for name in names},
                "scores": {
                    query: {
                        "mean": row.mean(query),
                        "deviation": row.deviation(query),
                        "values": row.values(query),
                        "to_best_control": self._compared(row, query),
                    }
                    for query in NODE_QUERIES
                },
            }
            for row in self.rows
        ]
        control = {"graph": best.graph, "network": best.network}
        content = {"task": "node_classification", **self.setting._asdict(), "best_control": control}
        return content | {"rows": rows}

    def _compared(self, row: NodeRow, query: str) -> dict[str, Any] | None:
        found = self.difference(row, query)
        if math.isnan(found.mean):
            return None
        return {**found._asdict(), "within_noise": found.is_noise}

    def records(self) -> Iterator[list[Any]]:
        """Yield the values of each row and score; nan is what a row lacks."""
        seeds = " ".join(map(str, self.setting.seeds))
        for row in self.rows:
            for query in NODE_QUERIES:
                numbers = row.mean(query), row.deviation(query), *self.difference(row, query)
                yield [row.graph, row.num_edges, row.network, query, *numbers, row.role, seeds]
