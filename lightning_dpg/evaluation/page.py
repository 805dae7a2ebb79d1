"""The page of an evaluation: real and synthetic graphs side by side, without a network."""

import math
from collections.abc import Sequence
from pathlib import Path

from torch_geometric.data import Data

from lightning_dpg.evaluation.purposes import Measured, is_close
from lightning_dpg.metrics.figures import Bars, Chart, Pictures, Series
from lightning_dpg.metrics.glossary import GROUPS, Group, glossary
from lightning_dpg.metrics.pictures import (
    MAX_SHOWN_NODES,
    OF_GRAPHS,
    OF_ROWS,
    OF_TRANSFERS,
    REAL,
    graph_pictures,
    row_pictures,
    transfer_pictures,
)
from lightning_dpg.metrics.queries import Answer, Profile
from lightning_dpg.pages.charts import inlined
from lightning_dpg.pages.page import Table, render
from lightning_dpg.pages.pictures import size_of

MAX_SHOWN = 6
"""Largest number of synthetic graphs in pictures; the tables hold all of them."""
_OF_TABLES = {"Private columns": OF_ROWS, "Transfers": OF_TRANSFERS}


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
    }
    found = pictures(real, measured)
    sizes = [size_of(graph) for graph in _graphs(real, measured).values()]
    parts |= {
        "caption": _caption(real, measured),
        "cards": [*zip(sizes, inlined(found, OF_GRAPHS[:1]), strict=True)],
        "series": _series(found, OF_GRAPHS[1:]),
        "charts": inlined(found, OF_GRAPHS[1:]),
        "further": [
            (title, _series(found, _OF_TABLES[title]), inlined(found, _OF_TABLES[title]), tables)
            for title, tables in _by_title(labels, measured)
        ],
    }
    return render("evaluation", parts)


def pictures(real: Profile, measured: Sequence[Measured]) -> Pictures:
    """Return the pictures of the first :data:`MAX_SHOWN` synthetic graphs, beside the real one.

    Args:
        real: Measurements of the real graph.
        measured: Synthetic graphs with their answers.
    """
    shown = dict(zip(_labels([one.name for one in measured]), measured[:MAX_SHOWN], strict=False))
    graphs = _graphs(real, measured)
    profiles = [real, *(one.comparison.synthetic for one in shown.values())]
    known = {id(graph): each for graph, each in zip(graphs.values(), profiles, strict=True)}
    matched = [name for name, one in shown.items() if one.comparison.is_matched]
    first = graphs[matched[0]] if matched else graphs[REAL]
    leaders = {name: first if name in (REAL, *matched) else graph for name, graph in graphs.items()}
    found = dict(
        graph_pictures(
            graphs,
            leaders,
            lambda graph: known[id(graph)].distances,
            lambda graph: known[id(graph)].clustering,
        )
    )
    rows = {name: one.row_tables for name, one in shown.items() if one.row_tables}
    if rows:
        domains, values, _ = next(iter(rows.values()))
        drawn = {name: each.synthetic for name, each in rows.items() if each.domains == domains}
        found |= row_pictures(domains, {REAL: values} | drawn)
    sent = {name: one.transfer_tables for name, one in shown.items() if one.transfer_tables}
    if sent:
        transfers, _, *facts = next(iter(sent.values()))
        drawn_transfers = {name: each.synthetic for name, each in sent.items()}
        found |= transfer_pictures({REAL: transfers} | drawn_transfers, *facts)
    return found


def _graphs(real: Profile, measured: Sequence[Measured]) -> dict[str, Data]:
    """Return the graphs that are shown, by their labels."""
    labels = _labels([one.name for one in measured])
    # With the nodes that the first synthetic graph adds.
    graphs = {REAL: measured[0].comparison.real.graph}
    drawn = (one.comparison.synthetic.graph for one in measured[:MAX_SHOWN])
    return graphs | dict(zip(labels, drawn, strict=False))


def _series(found: Pictures, kinds: Sequence[str]) -> Sequence[Series]:
    """Return the lines or bars of the first picture of some kinds that has any."""
    chosen = (picture for kind in kinds if kind in found for picture in found[kind]())
    return next((each.series for each in chosen if isinstance(each, Chart | Bars)), ())


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
) -> list[tuple[str, list[tuple[str, Table]]]]:
    """Return the further tables of all graphs by their titles, each with the label of its graph."""
    found: dict[str, list[tuple[str, Table]]] = {}
    for label, one in zip(labels, measured, strict=True):
        for title, table in one.further_tables().items():
            found.setdefault(title.capitalize(), []).append((label, table))
    return [*found.items()]
