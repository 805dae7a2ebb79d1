"""The page of an evaluation: real and synthetic graphs side by side, without a network."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lightning_dpg.evaluation.purposes import Measured, is_close
from lightning_dpg.metrics.figures import MAX_SHOWN_NODES, degree_curve
from lightning_dpg.metrics.glossary import GROUPS, Group, glossary
from lightning_dpg.metrics.queries import Answer, Profile
from lightning_dpg.pages.charts import COLORS, Axis, Series, image, line_chart
from lightning_dpg.pages.page import Table, render
from lightning_dpg.pages.pictures import (
    DEGREES,
    clustering_curve,
    community_curve,
    distance_curve,
    renderer,
    size_of,
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
        "size": size_of(real.graph),
        "graphs": [*zip(labels, measured, strict=True)],
        "guarantees": guarantees,
        "csv": csv,
        "json": json,
        "shown_groups": [group for group in GROUPS if group in shown],
        "closeness": _closeness,
        "further": _by_title(labels, measured),
    }
    parts |= _pictures(real, measured, labels) | _charts(real, measured[:MAX_SHOWN], labels)
    return render("evaluation", parts)


def _labels(names: Sequence[str]) -> list[str]:
    """Return the last parts of the names, or the whole names where these are not distinct."""
    short = [Path(name).name or name for name in names]
    return short if len(set(short)) == len(short) else list(names)


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
    shown = measured[:MAX_SHOWN]
    whole = measured[0].comparison.real.graph  # with the nodes that the first synthetic graph adds
    cards = [
        (
            "real",
            "not private",
            size_of(real.graph),
            image(renderer(whole)(whole), "The real graph"),
        )
    ]
    for one, label in zip(shown, labels, strict=False):
        drawn = one.comparison.synthetic
        leader = one.comparison.real if one.comparison.is_matched else drawn
        pixels = renderer(leader.graph)(drawn.graph)
        picture = image(pixels, f"Synthetic graph {label}")
        cards.append((label, "synthetic", size_of(drawn.graph), picture))
    caption = "Adjacency matrices, nodes in the order of the communities of the real graph"
    if real.graph.num_nodes > MAX_SHOWN_NODES:
        caption += f" (the {MAX_SHOWN_NODES:,} of highest degree)"
    if not all(one.comparison.is_matched for one in shown):
        caption += "; a graph with other nodes has its own"
    caption += "."
    if len(shown) < len(measured):
        caption += f" Here and in the charts: the first {MAX_SHOWN} of {len(measured):,} graphs."
    return {"caption": caption, "cards": cards}


def _charts(real: Profile, measured: Sequence[Measured], labels: Sequence[str]) -> dict[str, Any]:
    """Draw charts of all distributions with one legend."""
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
    return {"series": series, "charts": charts}


def _by_title(
    labels: Sequence[str], measured: Sequence[Measured]
) -> list[tuple[str, list[tuple[str, Table]]]]:
    """Return the further tables of all graphs by their titles, each with the label of its graph."""
    found: dict[str, list[tuple[str, Table]]] = {}
    for label, one in zip(labels, measured, strict=True):
        for title, table in one.further_tables().items():
            found.setdefault(title.capitalize(), []).append((label, table))
    return [*found.items()]
