"""The page of an evaluation: real and synthetic graphs side by side, without a network."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lightning_dpg.evaluation.purposes import Measured, is_close
from lightning_dpg.metrics.figures import MAX_SHOWN_NODES, degree_curve
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.metrics.glossary import GROUPS, Group, glossary
from lightning_dpg.metrics.queries import Answer, Profile
from lightning_dpg.pages.charts import COLORS, Axis, Series, line_chart
from lightning_dpg.pages.page import Table, plural, render
from lightning_dpg.pages.pictures import (
    DEGREES,
    MAX_COMMUNITIES,
    Drawer,
    clustering_curve,
    community_curve,
    community_matrix,
    distance_curve,
)

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
    shown = [query.group for query in glossary("graphs").values()]
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
        "further": _by_title(labels, measured),
    }
    parts |= _pictures(real, measured, labels) | _charts(real, measured[:MAX_SHOWN], labels)
    return render("evaluation", parts)


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
        (glossary("graphs")[name], answer.score)
        for name, answer in answers.items()
        if glossary("graphs")[name].group == group and not math.isnan(answer.score)
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


def _by_title(
    labels: Sequence[str], measured: Sequence[Measured]
) -> list[tuple[str, list[tuple[str, Table]]]]:
    """Return the further tables of all graphs by their titles, each with the label of its graph."""
    found: dict[str, list[tuple[str, Table]]] = {}
    for label, one in zip(labels, measured, strict=True):
        for title, table in one.further_tables().items():
            found.setdefault(title.capitalize(), []).append((label, table))
    return [*found.items()]
