"""Tables, files and the page of node classification."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from lightning_dpg.benchmark.measured import NOT_PRIVATE
from lightning_dpg.benchmark.pages import NotebookTable, notebook, render
from lightning_dpg.metrics.glossary import GLOSSARY
from lightning_dpg.metrics.node_classification import NODE_QUERIES, NodeScores
from lightning_dpg.tables import as_csv, as_json, as_text

HEADS = ("graph", "edges", "network")


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
        """Values of one score by seed."""
        return [float(getattr(found, query)) for found in self.scores]

    def mean(self, query: str) -> float:
        """Mean of one score."""
        return statistics.mean(self.values(query))

    def deviation(self, query: str) -> float:
        """Sample standard deviation of one score; 0 for one seed."""
        values = self.values(query)
        return statistics.stdev(values) if len(values) > 1 else 0.0

    def text(self, query: str) -> str:
        """Mean and deviation of one score, in percent."""
        return f"{100 * self.mean(query):.1f} ± {100 * self.deviation(query):.1f}"


def table(setting: Setting, rows: Sequence[NodeRow]) -> list[str]:
    """Lines of the table.

    Args:
        setting: The numbers that all rows share.
        rows: The rows.
    """
    heads = [*HEADS, *(GLOSSARY[query].label for query in NODE_QUERIES)]
    return [setting.sentence, *as_text([heads, *map(_cells, rows)], left={0, 2})]


def _cells(row: NodeRow) -> list[str]:
    return [row.graph, f"{row.num_edges:.0f}", row.network, *map(row.text, NODE_QUERIES)]


def json_text(setting: Setting, rows: Sequence[NodeRow]) -> str:
    """Return all scores as strict JSON."""
    content = {
        "task": "node_classification",
        **setting._asdict(),
        "rows": [
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
            for row in rows
        ],
    }
    return as_json(content)


def csv_text(setting: Setting, rows: Sequence[NodeRow]) -> str:
    """Return a row for each graph, network and score, as CSV."""
    seeds = " ".join(map(str, setting.seeds))
    cells = (
        (row.graph, row.num_edges, row.network, query, row.mean(query), row.deviation(query), seeds)
        for row in rows
        for query in NODE_QUERIES
    )
    return as_csv([*HEADS, "score", "mean", "deviation", "seeds"], cells)


def page(setting: Setting, rows: Sequence[NodeRow]) -> str:
    """Build the page as HTML."""
    parts = {
        "sentence": setting.sentence,
        "guarantees": dict.fromkeys((row.graph, row.guarantee) for row in rows if row.guarantee),
        "csv": csv_text(setting, rows),
        "json": json_text(setting, rows),
        "head": HEADS,
        "queries": NODE_QUERIES,
        "rows": map(_cells, rows),
    }
    return render("node_evaluation", parts)


def summary(setting: Setting, rows: Sequence[NodeRow]) -> str:
    """Table without styles of its own, for a notebook."""
    heads = [*HEADS, *(GLOSSARY[query].label for query in NODE_QUERIES)]
    cells = [(name, "", others) for name, *others in map(_cells, rows)]
    return notebook(NOT_PRIVATE, [NotebookTable(setting.sentence, heads, cells)])
