"""Tables, files and the page of node classification."""

import csv
import io
import json
import statistics
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from lightning_dpg.benchmark.measured import NOT_PRIVATE
from lightning_dpg.benchmark.pages import NO_NETWORK, download, explained, fill
from lightning_dpg.metrics.glossary import GLOSSARY
from lightning_dpg.metrics.node_classification import NODE_QUERIES, NodeScores


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
    heads = ["graph", "edges", "network", *(GLOSSARY[query].label for query in NODE_QUERIES)]
    cells = [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    lines = [
        "  ".join(
            text.ljust(width) if place in (0, 2) else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in (heads, *cells)
    ]
    return [setting.sentence, *lines]


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
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def csv_text(setting: Setting, rows: Sequence[NodeRow]) -> str:
    """Return a row for each graph, network and score, as CSV."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["graph", "edges", "network", "score", "mean", "deviation", "seeds"])
    seeds = " ".join(map(str, setting.seeds))
    for row in rows:
        for query in NODE_QUERIES:
            numbers = (row.mean(query), row.deviation(query))
            writer.writerow([row.graph, row.num_edges, row.network, query, *numbers, seeds])
    return text.getvalue()


def page(setting: Setting, rows: Sequence[NodeRow]) -> str:
    """Build the page as HTML."""
    csv_file = download(csv_text(setting, rows), "text/csv", "nodes.csv", "Numbers (CSV)")
    json_file = download(
        json_text(setting, rows), "application/json", "nodes.json", "Numbers (JSON)"
    )
    guarantees = dict.fromkeys((row.graph, row.guarantee) for row in rows if row.guarantee)
    return fill(
        "node_evaluation.html",
        {
            "LEAD": f"<p>{escape(setting.sentence)}.</p>"
            + "".join(
                f'<p class="guarantee">Guarantee of {escape(graph)}, as its statement says: '
                f"<strong>{escape(said)}</strong></p>"
                for graph, said in guarantees
            ),
            "DOWNLOADS": csv_file + json_file,
            "ROWS": _table(rows),
            "FOOTER": NO_NETWORK,
        },
    )


def _table(rows: Sequence[NodeRow]) -> str:
    heads = "".join(f"<th scope=col>{explained(query)}</th>" for query in NODE_QUERIES)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Scores by graph and network">'
        f"<table><thead><tr><th scope=col>graph</th><th scope=col>edges</th>"
        f"<th scope=col>network</th>{heads}</tr></thead><tbody>{_body(rows)}</tbody></table></div>"
    )


def _body(rows: Sequence[NodeRow]) -> str:
    lines = []
    for row in rows:
        first, *others = map(escape, _cells(row))
        cells = "".join(f"<td>{text}</td>" for text in others)
        lines.append(f"<tr><th scope=row>{first}</th>{cells}</tr>")
    return "".join(lines)


def summary(setting: Setting, rows: Sequence[NodeRow]) -> str:
    """Table without styles of its own, for a notebook."""
    heads = ("graph", "edges", "network", *(GLOSSARY[query].label for query in NODE_QUERIES))
    line = "".join(f"<th>{escape(head)}</th>" for head in heads)
    return (
        f"<p><strong>{escape(NOT_PRIVATE)}</strong></p><p>{escape(setting.sentence)}</p>"
        f"<table><thead><tr>{line}</tr></thead><tbody>{_body(rows)}</tbody></table>"
    )
