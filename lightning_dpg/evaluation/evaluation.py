"""Answers of synthetic graphs beside those of the real one, as tables, files and pages."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightning_dpg.evaluation import row_quality, transfer_quality
from lightning_dpg.evaluation.baselines import BASELINES
from lightning_dpg.evaluation.measured import NOT_PRIVATE, Measured, table
from lightning_dpg.evaluation.purposes import is_close
from lightning_dpg.evaluation.row_quality import row_answers, row_lines
from lightning_dpg.evaluation.transfer_quality import transfer_answers, transfer_lines
from lightning_dpg.formats.whole_files import write_whole
from lightning_dpg.metrics.figures import MAX_SHOWN_NODES, degree_curve
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.glossary import GRAPH_GLOSSARY, GROUPS, Group
from lightning_dpg.metrics.queries import ALIGNED, Answer, Profile
from lightning_dpg.metrics.sampled import line_on_sampling
from lightning_dpg.pages.charts import COLORS, Axis, Series, line_chart
from lightning_dpg.pages.page import Table, notebook, number, plural, render, with_meaning
from lightning_dpg.pages.pictures import (
    DEGREES,
    MAX_COMMUNITIES,
    Drawer,
    clustering_curve,
    community_curve,
    community_matrix,
    distance_curve,
)
from lightning_dpg.release.writer import KEY
from lightning_dpg.tables import as_csv, as_data_frame, as_json

NO_NAMES = (
    f"left out: {', '.join(ALIGNED)} and scores of pairs, since the nodes are numbered in a secret order "
    f"and the key ({KEY} of the run) is not beside the release"
)
"""Line on a release without the key of its numbers."""


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Synthetic graphs beside the real graph. All numbers are private: the real graph was read.

    Attributes:
        name: Name of the real graph.
        real: Measurements of the real graph.
        measured: Synthetic graphs in the given order, with their answers.
    """

    name: str
    real: Profile
    measured: tuple[Measured, ...]

    @property
    def answers(self) -> dict[str, dict[str, Answer]]:
        """Answer to each query, by the name of the synthetic graph and by the query."""
        return {each.name: each.answers for each in self.measured}

    def table(self) -> list[str]:
        """Return the lines of tables for each synthetic graph, and behind all what they serve.

        An empty line follows each table and the purposes of each graph. A release with drawn rows
        has a second table, of its private columns, and one with drawn transfers a table of these.
        """
        tables = list[Sequence[str]]()
        for one in self.measured:
            left_out = [] if one.has_key else [NO_NAMES]
            tables.append((*table(self.name, one.name, one.answers), *left_out, ""))
            if one.rows is not None:
                tables.append((*row_lines(one.rows), ""))
            if one.transfers is not None:
                tables.append((*transfer_lines(one.transfers), ""))
        judged = [(one.name, one.purposes) for one in self.measured if one.purposes]
        purposes = [
            (*([f"{name}:"] if len(self.measured) > 1 else []), *found.lines(), "")
            for name, found in judged
        ]
        return [line for lines in (*tables, *purposes) for line in lines]

    def __str__(self) -> str:
        """Return all tables, the purposes served, and a reminder that they are not private."""
        return "\n".join([*self.table(), NOT_PRIVATE])

    def __repr__(self) -> str:
        """Return the tables, as ``str`` does."""
        return str(self)

    def to_json(self) -> str:
        """Return all answers as strict JSON, with null for nan, with their notes and purposes."""
        graphs = [
            {"path": one.name, "queries": {name: _plain(one.answers[name]) for name in one.answers}}
            | (
                {}
                if one.rows is None
                else {"private_columns": [each.for_json() for each in one.rows]}
            )
            | (
                {}
                if one.transfers is None
                else {"transfers": [each.for_json() for each in one.transfers]}
            )
            | (one.purposes.for_json() if one.purposes else {})
            for one in self.measured
        ]
        return as_json({"graphs": graphs})

    def to_csv(self, path: str | Path) -> None:
        """Write a row for each synthetic graph and query.

        Args:
            path: File to write.
        """
        write_whole(Path(path), self._csv())

    def _csv(self) -> str:
        rows = (
            (one.name, name, *answer.for_json().values())
            for one in self.measured
            for name, answer in (one.answers | one.further_answers).items()
        )
        return as_csv(["path", "query", "real", "synthetic", "error", "note"], rows)

    def to_dataframe(self) -> Any:
        r"""Return a row for each synthetic graph and query, as a DataFrame of pandas.

        The columns ``error_ErdosRenyi`` and ``error_ChungLu`` are means over the fits of a baseline,
        and nan where there was none. ``to_latex`` of the DataFrame prints a table for a paper.

        Raises:
            CommandError: If pandas is not installed.

        Example:
            >>> import lightning_dpg as dpg
            >>> frame = dpg.evaluate("karate", "karate").to_dataframe()
            >>> list(frame.columns)  # doctest: +NORMALIZE_WHITESPACE
            ['graph', 'query', 'group', 'real', 'synthetic', 'error', 'better', 'note',
             'error_ErdosRenyi', 'error_ChungLu']
            >>> sizes = frame[frame.group == "size"]
            >>> print(sizes.to_latex(columns=["query", "real"], index=False, float_format="%.0f"))
            \begin{tabular}{lr}
            \toprule
            query & real \\
            \midrule
            num_nodes & 34 \\
            num_edges & 78 \\
            largest_component_size & 34 \\
            num_components & 1 \\
            \bottomrule
            \end{tabular}
            <BLANKLINE>
        """
        head = ("graph", "query", "group", "real", "synthetic", "error", "better", "note")
        no_baseline = [math.nan] * len(BASELINES)
        rows = [
            (*(one.name, name, query.group, *answer[:3], query.better, answer.note), *errors)
            for one in self.measured
            for name, answer in one.answers.items()
            for query, errors in [(GRAPH_GLOSSARY[name], _baseline_errors(one, name))]
        ]
        rows += [
            (one.name, name, group, *answer[:3], "lower", answer.note, *no_baseline)
            for one in self.measured
            for group, answers in (
                ("private columns", row_answers(one.rows or ())),
                ("transfers", transfer_answers(one.transfers or ())),
            )
            for name, answer in answers.items()
        ]
        return as_data_frame([*head, *(f"error_{name}" for name in BASELINES)], rows)

    def to_html(self, path: str | Path) -> None:
        """Write one page that works without a network: pictures, charts, queries and their meaning.

        Args:
            path: File to write.
        """
        write_whole(Path(path), self.to_html_text())

    def to_html_text(self) -> str:
        """Return the text of the page of :meth:`to_html`."""
        return page(self.name, self.real, self.measured, self._csv(), self.to_json())

    def _repr_html_(self) -> str:
        """Show compact tables in a notebook."""
        return summary(self.name, self.measured)


def _baseline_errors(measured: Measured, query: str) -> tuple[float, ...]:
    """Return the mean error of each baseline in a query; nan where there is none."""
    found = measured.purposes.scores if measured.purposes else {}
    scores = [found.get(name, {}).get(query, []) for name in BASELINES]
    return tuple(statistics.fmean(values) if values else math.nan for values in scores)


def _plain(answer: Answer) -> dict[str, float | str | None]:
    """Return an answer as plain values, without an empty note."""
    return {key: value for key, value in answer.for_json().items() if key != "note" or value}


MAX_SHOWN = 6
"""Largest number of synthetic graphs in pictures and charts; the tables hold all of them."""
_Curve = Callable[[Profile], Sequence[Sequence[float]]]
_DISTRIBUTIONS: tuple[tuple[str, _Curve, Axis, Axis], ...] = (
    ("Degrees", lambda measured: degree_curve(measured.graph), *DEGREES),
    ("Distances", distance_curve, Axis("distance"), Axis("share of connected pairs")),
    ("Clustering", clustering_curve, Axis("degree", is_log=True), Axis("mean local clustering")),
    (
        "Sizes of communities",
        community_curve,
        Axis("rank", is_log=True),
        Axis("nodes of a community", is_log=True, low=1),
    ),
)


def page(name: str, real: Profile, measured: Sequence[Measured], csv: str, json: str) -> str:
    """Build the page as HTML.

    Args:
        name: Name of the real graph.
        real: Measurements of the real graph.
        measured: Synthetic graphs with their answers.
        csv: All numbers as CSV, to save them.
        json: All numbers as JSON, to save them.
    """
    labels = _labels([one.name for one in measured])
    shown = [query.group for query in GRAPH_GLOSSARY.values()]
    guarantees: dict[str, list[str]] = {}
    for one in measured:
        guarantees.setdefault(one.guarantee, []).append(one.name)
    parts = {
        "name": name,
        "size": _size(real),
        "graphs": [*zip(labels, measured, strict=True)],
        "guarantees": guarantees,
        "csv": csv,
        "json": json,
        "shown_groups": [group for group in GROUPS if group in shown],
        "max_communities": MAX_COMMUNITIES,
        "closeness": _closeness,
        "sampled": _sampled,
        "further": _by_title(labels, measured),
    }
    parts |= _pictures(real, measured, labels) | _charts(real, measured[:MAX_SHOWN], labels)
    return render("evaluation", parts)


def _sampled(answers: dict[str, Answer]) -> str:
    return line_on_sampling({name: answer.note for name, answer in answers.items()})


def _labels(names: Sequence[str]) -> list[str]:
    """Return the last parts of the names, or the whole names where these are not distinct."""
    short = [Path(name).name or name for name in names]
    return short if len(set(short)) == len(short) else list(names)


def _size(measured: Profile) -> str:
    graph = measured.graph
    isolated = int((degrees(graph) == 0).sum())
    facts = f"{plural(graph.num_nodes, 'node')}, {plural(graph.num_edges // 2, 'edge')}"
    return f"{facts}, {plural(isolated, 'node')} without any" if isolated else facts


def count_close(answers: dict[str, Answer], group: Group) -> tuple[int, int]:
    """Count the queries of a group with a close score, and those with any score."""
    scores = [
        (GRAPH_GLOSSARY[name], answer.score)
        for name, answer in answers.items()
        if GRAPH_GLOSSARY[name].group == group and not math.isnan(answer.score)
    ]
    return sum(is_close(query, score) for query, score in scores), len(scores)


def _closeness(measured: Measured, group: Group) -> str:
    if group == "copies":  # a copy is no sign of quality
        share = measured.answers["edge_overlap"].score
        return "-" if math.isnan(share) else f"{share:.1%} of the edges"
    close, count = count_close(measured.answers, group)
    return f"{close} of {count} close" if count else "-"


def _pictures(real: Profile, measured: Sequence[Measured], labels: Sequence[str]) -> dict[str, Any]:
    """Draw cards of the real graph and of the first synthetic ones, and say what they show."""
    drawer = Drawer(real)
    shown = measured[:MAX_SHOWN]
    whole = measured[0].comparison.real  # with the nodes that the first synthetic graph adds
    cards = [("real", "not private", _size(real), drawer.draw(whole, "The real graph", whole))]
    for one, label in zip(shown, labels, strict=False):
        drawn = one.comparison.synthetic
        leader = one.comparison.real if one.comparison.is_matched else drawn
        picture = drawer.draw(drawn, f"Synthetic graph {label}", leader)
        cards.append((label, "synthetic", _size(drawn), picture))
    if drawer.is_small:
        caption = "Nodes are placed by the real graph and colored by its communities"
    else:
        order = "the communities" if real.communities.size else "the degrees"
        caption = f"Adjacency matrices, nodes in the order of {order} of the real graph"
        if real.graph.num_nodes > MAX_SHOWN_NODES:
            caption += f" (the {MAX_SHOWN_NODES:,} of highest degree)"
    if not all(one.comparison.is_matched for one in shown):
        caption += "; a graph with other nodes has its own"
    caption += "."
    if len(shown) < len(measured):
        caption += f" Here and in the charts: the first {MAX_SHOWN} of {len(measured):,} graphs."
    return {"caption": caption, "cards": cards}


def _charts(real: Profile, measured: Sequence[Measured], labels: Sequence[str]) -> dict[str, Any]:
    """Draw charts of all distributions with one legend, and matrices of communities."""
    profiles = [real, *(one.comparison.synthetic for one in measured)]
    series = [Series("real", [], is_dashed=True)]
    series += [
        Series(label, [], COLORS[i % len(COLORS)])
        for i, label in enumerate(labels[: len(measured)])
    ]
    charts = []
    for title, curve, x, y in _DISTRIBUTIONS:
        lines = [
            one._replace(points=curve(profile))
            for one, profile in zip(series, profiles, strict=True)
        ]
        charts.append((title, line_chart(lines, title, x, y)))
    matrices = [
        (label, community_matrix(one.comparison.real, one.comparison.synthetic))
        for one, label in zip(measured, labels, strict=False)
        if one.comparison.is_matched
        and real.communities.size
        and one.comparison.synthetic.communities.size
    ]
    return {"series": series, "charts": charts, "matrices": matrices}


def _further_tables(one: Measured) -> list[Table]:
    """Return the tables of private columns and of transfers, as far as there are any."""
    found = (
        ("private columns", row_quality, one.rows),
        ("transfers", transfer_quality, one.transfers),
    )
    return [
        Table(
            f"{one.name}: {title}",
            "",
            quality.HEAD,
            [each.cells() for each in figures],
            [" ".join(quality.EXPLANATION if figures else quality.NOT_COMPARED)],
        )
        for title, quality, figures in found
        if figures is not None
    ]


def _by_title(
    labels: Sequence[str], measured: Sequence[Measured]
) -> list[tuple[str, list[tuple[str, Table]]]]:
    """Return the further tables of all graphs by their titles, each with the label of its graph."""
    found: dict[str, list[tuple[str, Table]]] = {}
    for label, one in zip(labels, measured, strict=True):
        for each in _further_tables(one):
            title = each.title.rpartition(": ")[2].capitalize()
            found.setdefault(title, []).append((label, each))
    return [*found.items()]


def summary(name: str, measured: Sequence[Measured]) -> str:
    """Build tables without styles of their own, for a notebook.

    Args:
        name: Name of the real graph.
        measured: Synthetic graphs with their answers.
    """
    tables = []
    for one in measured:
        rows = []
        for query, answer in ((GRAPH_GLOSSARY[name], one.answers[name]) for name in one.answers):
            score = number(answer.score) + (" ↑" if query.better == "higher" else "")
            texts = (query.group, number(answer.real, 4), number(answer.synthetic, 4), score)
            rows.append((with_meaning(query.name), *texts))
        head = ("query", "group", "real", "synthetic", "error, or agreement ↑")
        purposes = one.purposes.lines() if one.purposes else ()
        notes = [note for note in (one.guarantee, *purposes, _sampled(one.answers)) if note]
        tables.append(Table(f"{one.name} against {name}", "", head, rows, notes))
        tables += _further_tables(one)
    return notebook(NOT_PRIVATE, tables)
