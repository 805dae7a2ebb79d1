"""The page of an evaluation: real and synthetic graphs side by side, without a network."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lightning_dpg.benchmark.charts import COLORS, Axis, Series, line_chart
from lightning_dpg.benchmark.measured import NOT_PRIVATE, Measured, csv_text, json_text
from lightning_dpg.benchmark.pages import NotebookTable, notebook, plural, render
from lightning_dpg.benchmark.results import number
from lightning_dpg.benchmark.shapes import (
    MAX_COMMUNITIES,
    Drawer,
    clustering_curve,
    community_curve,
    community_matrix,
    distance_curve,
)
from lightning_dpg.metrics.figures import MAX_SHOWN_NODES, degree_curve
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.glossary import GRAPH_GLOSSARY, GROUPS, Group, Query
from lightning_dpg.metrics.queries import Answer, Profile
from lightning_dpg.metrics.sampled import line_on_sampling

MAX_SHOWN = 6
"""Largest number of synthetic graphs in pictures and charts; the tables hold all of them."""
CLOSE = 0.1
_Curve = Callable[[Profile], Sequence[Sequence[float]]]
_DISTRIBUTIONS: tuple[tuple[str, _Curve, Axis, Axis], ...] = (
    (
        "Degrees",
        lambda measured: degree_curve(measured.graph),
        Axis("degree", is_log=True),
        Axis("nodes of at least this degree", is_log=True, low=1),
    ),
    ("Distances", distance_curve, Axis("distance"), Axis("share of connected pairs")),
    (
        "Clustering",
        clustering_curve,
        Axis("degree", is_log=True),
        Axis("mean local clustering"),
    ),
    (
        "Sizes of communities",
        community_curve,
        Axis("rank", is_log=True),
        Axis("nodes of a community", is_log=True, low=1),
    ),
)


class _Line(NamedTuple):
    """A query with its answers as texts, and the share of its bar."""

    query: Query
    real: str
    synthetic: str
    score: str
    share: str
    note: str


class _Graph(NamedTuple):
    """A synthetic graph on the page."""

    label: str
    closeness: dict[Group, str]
    lines: list[_Line]
    sampled: str
    """What was sampled, in one sentence; empty if nothing was."""


def page(name: str, real: Profile, measured: Sequence[Measured]) -> str:
    """Build the page as HTML.

    Args:
        name: Name of the real graph.
        real: Measurements of the real graph.
        measured: Synthetic graphs with their answers.
    """
    labels = _labels([one.name for one in measured])
    shown = [query.group for query in GRAPH_GLOSSARY.values()]
    guarantees: dict[str, list[str]] = {}
    for one in measured:
        guarantees.setdefault(one.guarantee, []).append(one.name)
    parts = {
        "name": name,
        "size": _size(real),
        "graphs": [_graph(one, label) for one, label in zip(measured, labels, strict=True)],
        "guarantees": guarantees,
        "csv": csv_text(measured),
        "json": json_text(measured),
        "shown_groups": [group for group in GROUPS if group in shown],
        "max_communities": MAX_COMMUNITIES,
    }
    parts |= _pictures(real, measured, labels) | _charts(real, measured[:MAX_SHOWN], labels)
    return render("evaluation", parts)


def _graph(measured: Measured, label: str) -> _Graph:
    answers = measured.answers
    closeness = {group: _closeness(measured, group) for group in GROUPS}
    return _Graph(label, closeness, _lines(answers), _sampled(answers))


def _lines(answers: dict[str, Answer]) -> list[_Line]:
    lines = []
    for name, answer in answers.items():
        share = 0.0 if math.isnan(answer.score) else min(max(answer.score, 0.0), 1.0)
        texts = (_text(answer.real, 4), _text(answer.synthetic, 4), _text(answer.score))
        lines.append(_Line(GRAPH_GLOSSARY[name], *texts, f"{share:.1%}", answer.note))
    return lines


def _sampled(answers: dict[str, Answer]) -> str:
    return line_on_sampling({name: answer.note for name, answer in answers.items()})


def _labels(names: Sequence[str]) -> list[str]:
    """Last parts of the names, or the whole names where these are not distinct."""
    short = [Path(name).name or name for name in names]
    return short if len(set(short)) == len(short) else list(names)


def _size(measured: Profile) -> str:
    graph = measured.graph
    isolated = int((degrees(graph) == 0).sum())
    facts = f"{plural(graph.num_nodes, 'node')}, {plural(graph.num_edges // 2, 'edge')}"
    return f"{facts}, {plural(isolated, 'node')} without any" if isolated else facts


def is_close(query: Query, score: float) -> bool:
    """Whether a score is near its best value: an error up to 0.1, an agreement from 0.9 on."""
    return score <= CLOSE if query.better == "lower" else score >= 1 - CLOSE


def count_close(answers: dict[str, Answer], group: Group) -> tuple[int, int]:
    """Count the queries of a group whose score is close, and all of them that have a score."""
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
    """Cards of the real graph and of the first synthetic ones, and what they show."""
    drawer = Drawer(real)
    picture = drawer.draw(real, "The real graph", True)
    cards = [("real", "not private", _size(real), picture)]
    shown = measured[:MAX_SHOWN]
    for one, label in zip(shown, labels, strict=False):
        profile, common = one.comparison.synthetic, one.comparison.common
        picture = drawer.draw(profile, f"Synthetic graph {label}", common is not None)
        cards.append((label, "synthetic", _size(profile), picture))
    if drawer.is_small:
        caption = "Nodes are placed by the real graph and colored by its communities"
    else:
        order = "the communities" if real.communities.size else "the degrees"
        caption = f"Adjacency matrices, nodes in the order of {order} of the real graph"
        if real.graph.num_nodes > MAX_SHOWN_NODES:
            caption += f" (the {MAX_SHOWN_NODES:,} of highest degree)"
    if any(one.comparison.common is None for one in shown):
        caption += "; a graph with other nodes has its own"
    caption += "."
    if len(shown) < len(measured):
        caption += f" Here and in the charts: the first {MAX_SHOWN} of {len(measured):,} graphs."
    return {"caption": caption, "cards": cards}


def _charts(real: Profile, measured: Sequence[Measured], labels: Sequence[str]) -> dict[str, Any]:
    """Charts of all distributions with one legend, and matrices of communities."""
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
        (label, community_matrix(real, one.comparison.synthetic, one.comparison.common))
        for one, label in zip(measured, labels, strict=False)
        if one.comparison.common is not None
        and one.comparison.common.any()
        and real.communities.size
        and one.comparison.synthetic.communities.size
    ]
    return {"series": series, "charts": charts, "matrices": matrices}


def _text(value: float, digits: int = 3) -> str:
    return number(value, digits) if math.isfinite(value) else "-"


def summary(name: str, measured: Sequence[Measured]) -> str:
    """Tables without styles of their own, for a notebook.

    Args:
        name: Name of the real graph.
        measured: Synthetic graphs with their answers.
    """
    tables = []
    for one in measured:
        rows = []
        for line in _lines(one.answers):
            arrow = " ↑" if line.query.better == "higher" else ""
            cells = (line.query.group, line.real, line.synthetic, f"{line.score}{arrow}")
            rows.append((line.query.name, line.query.text, cells))
        head = ("query", "group", "real", "synthetic", "error, or agreement ↑")
        notes = filter(None, (one.guarantee, _sampled(one.answers)))
        tables.append(NotebookTable(f"{one.name} against {name}", head, rows, tuple(notes)))
    return notebook(NOT_PRIVATE, tables)
