"""The page of an evaluation: real and synthetic graphs side by side, without a network."""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup
from torch_geometric.data import Data

from lightning_dpg.evaluation.purposes import Measured, is_close
from lightning_dpg.metrics.figures import Draw, Picture, Pictures
from lightning_dpg.metrics.glossary import GROUPS, Group, glossary
from lightning_dpg.metrics.pictures import (
    MAX_SHOWN_NODES,
    OF_GRAPHS,
    OF_ROWS,
    OF_TRANSFERS,
    REAL,
    graph_pictures,
    series_of,
)
from lightning_dpg.metrics.queries import Profile
from lightning_dpg.pages.charts import inlined
from lightning_dpg.pages.page import Table, render
from lightning_dpg.pages.pictures import size_of

MAX_SHOWN = 6
"""Largest number of synthetic graphs in pictures; the tables hold all of them."""
SHOWN_GROUPS = [
    group for group in GROUPS if any(each.group == group for each in glossary("graphs").values())
]
"""Groups of queries of graphs, in the order of the page."""
_OF_TABLES = {"private columns": OF_ROWS, "transfers": OF_TRANSFERS}


def page(name: str, real: Profile, measured: Sequence[Measured], csv: str, json: str) -> str:
    """Build the page as HTML.

    Args:
        name: Name of the real graph.
        real: Measurements of the real graph.
        measured: Synthetic graphs with their answers.
        csv: All numbers as CSV, to save them.
        json: All numbers as JSON, to save them.
    """
    guarantees: dict[str, list[str]] = {}
    for one in measured:
        guarantees.setdefault(one.guarantee, []).append(one.name)
    parts = {
        "name": name,
        "size": size_of(real.graph),
        "guarantees": guarantees,
        "csv": csv,
        "json": json,
        "view": view(real, measured),
    }
    return render("evaluation", parts)


def view(real: Profile, measured: Sequence[Measured]) -> dict[str, Any]:
    """Return what the sections of a page show of synthetic graphs beside a real one.

    Args:
        real: Measurements of the real graph.
        measured: Synthetic graphs with their answers.
    """
    labels = _labels([one.name for one in measured])
    graphs = _graphs(real, measured)
    found = _of_graphs(real, measured)
    return {
        "graphs": [*zip(labels, measured, strict=True)],
        "shown_groups": SHOWN_GROUPS,
        "closeness": closeness,
        "caption": _caption(real, measured),
        "cards": [*zip(map(size_of, graphs.values()), inlined(found, OF_GRAPHS[:1]), strict=True)],
        "series": series_of(dict.fromkeys(graphs, ())),
        "both": series_of({REAL: (), "synthetic": ()}),
        "charts": inlined(found, OF_GRAPHS[1:]),
        "further": _by_title(labels, measured),
    }


def pictures(real: Profile, measured: Sequence[Measured]) -> Pictures:
    """Return the pictures of the first :data:`MAX_SHOWN` synthetic graphs, beside the real one.

    Args:
        real: Measurements of the real graph.
        measured: Synthetic graphs with their answers.
    """
    found = dict(_of_graphs(real, measured))
    for kind in (*OF_ROWS, *OF_TRANSFERS):
        draws = [one.pictures[kind] for one in measured[:MAX_SHOWN] if kind in one.pictures]
        if draws:
            found[kind] = partial(_all, draws)
    return found


def _all(draws: Sequence[Draw]) -> list[Picture]:
    return [picture for draw in draws for picture in draw()]


def _of_graphs(real: Profile, measured: Sequence[Measured]) -> Pictures:
    """Return the pictures of the graphs, the matrices of equal nodes in the order of the first one."""
    graphs = _graphs(real, measured)
    shown = [one.comparison for one in measured[:MAX_SHOWN]]
    profiles = [real, *(one.synthetic for one in shown)]
    known = {id(graph): each for graph, each in zip(graphs.values(), profiles, strict=True)}
    matched = [one.synthetic.graph for one in shown if one.is_matched]
    first = next(iter(matched), graphs[REAL])
    are_matched = [True, *(one.is_matched for one in shown)]
    leaders = {
        name: first if is_matched else graph
        for (name, graph), is_matched in zip(graphs.items(), are_matched, strict=True)
    }
    return graph_pictures(
        graphs,
        leaders,
        lambda graph: known[id(graph)].distances,
        lambda graph: known[id(graph)].clustering,
    )


def _graphs(real: Profile, measured: Sequence[Measured]) -> dict[str, Data]:
    """Return the graphs that are shown, by their labels."""
    labels = _labels([one.name for one in measured])
    # With the nodes that the first synthetic graph adds.
    graphs = {REAL: measured[0].comparison.real.graph}
    drawn = (one.comparison.synthetic.graph for one in measured[:MAX_SHOWN])
    return graphs | dict(zip(labels, drawn, strict=False))


def _labels(names: Sequence[str]) -> list[str]:
    """Return the last parts of the names, or the whole names where these are not distinct; with numbers."""
    short = [Path(name).name or name for name in names]
    taken = [REAL, *(short if len(set(short)) == len(short) else names)]
    return [
        name if taken.index(name) == number else f"{name} ({number})"
        for number, name in enumerate(taken)
    ][1:]


def closeness(measured: Measured, group: Group) -> str:
    """Count the queries of a group with a close score among those with any score, in words."""
    if group == "copies":  # a copy is no sign of quality
        share = measured.answers["edge_overlap"].score
        return "-" if math.isnan(share) else f"{share:.1%} of the edges"
    scores = [
        (glossary("graphs")[name], answer.score)
        for name, answer in measured.answers.items()
        if glossary("graphs")[name].group == group and not math.isnan(answer.score)
    ]
    close = sum(is_close(query, score) for query, score in scores)
    return f"{close} of {len(scores)} close" if scores else "-"


def _caption(real: Profile, measured: Sequence[Measured]) -> str:
    """Say what the pictures of matrices show."""
    are_matched = [one.comparison.is_matched for one in measured[:MAX_SHOWN]]
    caption = "Adjacency matrices, nodes in the order of the communities of "
    caption += "the synthetic graph" if len(measured) == 1 else "the first synthetic graph"
    if real.graph.num_nodes > MAX_SHOWN_NODES:
        caption += f" (the {MAX_SHOWN_NODES:,} of highest degree)"
    if not all(are_matched):
        caption += "; a graph with other nodes has its own order"
    caption += "."
    if len(are_matched) < len(measured):
        caption += f" In all pictures: the first {MAX_SHOWN} of {len(measured):,} graphs."
    return caption


def _by_title(
    labels: Sequence[str], measured: Sequence[Measured]
) -> list[tuple[str, list[tuple[str, Table, list[tuple[str, Markup]]]]]]:
    """Return the further tables of all graphs by their titles, each with its label and pictures."""
    found: dict[str, list[tuple[str, Table, list[tuple[str, Markup]]]]] = {}
    for number, (label, one) in enumerate(zip(labels, measured, strict=True)):
        for title, table in one.further_tables().items():
            shown = inlined(one.pictures, _OF_TABLES[title]) if number < MAX_SHOWN else []
            found.setdefault(title.capitalize(), []).append((label, table, shown))
    return [*found.items()]
