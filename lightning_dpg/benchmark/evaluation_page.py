"""The page of an evaluation: real and synthetic graphs side by side, without a network."""

import math
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

from lightning_dpg.benchmark.charts import COLORS, REAL, Axis, Series, legend, line_chart
from lightning_dpg.benchmark.figures import degree_curve
from lightning_dpg.benchmark.measured import NOT_PRIVATE, Measured, csv_text, json_text
from lightning_dpg.benchmark.pages import NO_NETWORK, download, explained, fill, plural
from lightning_dpg.benchmark.results import number
from lightning_dpg.benchmark.shapes import (
    MAX_COMMUNITIES,
    Drawer,
    clustering_curve,
    community_curve,
    community_matrix,
    distance_curve,
)
from lightning_dpg.metrics.figures import MAX_SHOWN_NODES
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
NO_STATEMENT = "No statement was given: the page says nothing on how these graphs were protected."


def page(name: str, real: Profile, measured: Sequence[Measured]) -> str:
    """Build the page as HTML.

    Args:
        name: Name of the real graph.
        real: Measurements of the real graph.
        measured: Synthetic graphs with their answers.
    """
    labels = _labels([found.name for found in measured])
    return fill(
        "evaluation.html",
        {
            "LEAD": _lead(name, real, measured),
            "DOWNLOADS": download(csv_text(measured), "text/csv", "evaluation.csv", "Numbers (CSV)")
            + download(
                json_text(measured), "application/json", "evaluation.json", "Numbers (JSON)"
            ),
            "SUMMARY": _summary(measured, labels),
            "PICTURES": _pictures(real, measured, labels),
            "CHARTS": _charts(real, measured[:MAX_SHOWN], labels),
            "QUERIES": "\n".join(
                _queries(found, label, is_open=not number)
                for number, (found, label) in enumerate(zip(measured, labels, strict=True))
            ),
            "FOOTER": NO_NETWORK,
        },
    )


def _labels(names: Sequence[str]) -> list[str]:
    """Last parts of the names, or the whole names where these are not distinct."""
    short = [Path(name).name or name for name in names]
    return short if len(set(short)) == len(short) else list(names)


def _lead(name: str, real: Profile, measured: Sequence[Measured]) -> str:
    guarantees = dict.fromkeys(found.guarantee for found in measured)
    count = plural(len(measured), "synthetic graph")
    lines = [f"<p><strong>{escape(name)}</strong> ({_size(real)}) beside {count}.</p>"]
    for guarantee in guarantees:
        of = [found.name for found in measured if found.guarantee == guarantee]
        which = f" of {escape(', '.join(of))}" if len(guarantees) > 1 else ""
        said = f"Guarantee{which}, as its statement says: <strong>{escape(guarantee)}</strong>"
        none = NO_STATEMENT.replace("these graphs", escape(", ".join(of)) if which else "them")
        lines.append(f'<p class="guarantee">{said if guarantee else none}</p>')
    if any(guarantees):
        lines.append(
            '<p class="soft">The sentence protects what was released. <code>python -m lightning_dpg '
            "verify FOLDER</code> recomputes it from the files of the release.</p>"
        )
    return "\n".join(lines)


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


def _summary(measured: Sequence[Measured], labels: Sequence[str]) -> str:
    heads = "".join(f"<th scope=col>{escape(label)}</th>" for label in labels)
    rows = []
    for group, title in GROUPS.items():
        if not any(query.group == group for query in GRAPH_GLOSSARY.values()):
            continue
        cells = "".join(f"<td>{_closeness(found, group)}</td>" for found in measured)
        rows.append(f"<tr><th scope=row>{group}<small>{title}</small></th>{cells}</tr>")
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Summary by groups"><table>'
        f"<thead><tr><th scope=col>group</th>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _closeness(found: Measured, group: Group) -> str:
    if group == "copies":  # a copy is no sign of quality
        share = found.answers["edge_overlap"].score
        return "-" if math.isnan(share) else f"{share:.1%} of the edges"
    close, count = count_close(found.answers, group)
    return f"{close} of {count} close" if count else "-"


def _pictures(real: Profile, measured: Sequence[Measured], labels: Sequence[str]) -> str:
    drawer = Drawer(real)
    cards = [_card("real", "not private", real, drawer.draw(real, "The real graph", True))]
    shown = measured[:MAX_SHOWN]
    for found, label in zip(shown, labels, strict=False):
        profile, common = found.comparison.synthetic, found.comparison.common
        picture = drawer.draw(profile, f"Synthetic graph {label}", common is not None)
        cards.append(_card(label, "synthetic", profile, picture))
    if drawer.is_small:
        said = "Nodes are placed by the real graph and colored by its communities"
    else:
        order = "the communities" if real.communities.size else "the degrees"
        said = f"Adjacency matrices, nodes in the order of {order} of the real graph"
        if real.graph.num_nodes > MAX_SHOWN_NODES:
            said += f" (the {MAX_SHOWN_NODES:,} of highest degree)"
    own = "; a graph with other nodes has its own"
    is_shared = all(found.comparison.common is not None for found in shown)
    lines = f'<p class="soft">{said}{"" if is_shared else own}.'
    if len(shown) < len(measured):
        lines += f" Here and in the charts: the first {MAX_SHOWN} of {len(measured):,} graphs."
    lines += "</p>"
    return f'{lines}<div class="cards pictures">{"".join(cards)}</div>'


def _card(name: str, kind: str, measured: Profile, picture: str) -> str:
    caption = f"{escape(name)}<span>{kind}</span><span>{_size(measured)}</span>"
    return f"<figure><figcaption>{caption}</figcaption>{picture}</figure>"


def _charts(real: Profile, measured: Sequence[Measured], labels: Sequence[str]) -> str:
    profiles = [real, *(found.comparison.synthetic for found in measured)]
    names = ["real", *labels[: len(measured)]]
    lines = [Series(names[0], [], REAL, is_dashed=True)]
    lines += [Series(name, [], COLORS[i % len(COLORS)]) for i, name in enumerate(names[1:])]
    figures = []
    for title, curve, x, y in _DISTRIBUTIONS:
        series = [
            line._replace(points=curve(profile))
            for line, profile in zip(lines, profiles, strict=True)
        ]
        chart = line_chart(series, title, x, y)
        figures.append(f"<figure><figcaption>{title}</figcaption>{chart}</figure>")
    for found, label in zip(measured, labels, strict=False):
        common = found.comparison.common
        other = found.comparison.synthetic
        if common is not None and common.any() and real.communities.size and other.communities.size:
            matrix = community_matrix(real, other, common)
            figures.append(
                f"<figure><figcaption>Communities of {escape(label)}<span>Rows: the largest "
                f"{MAX_COMMUNITIES} of the real graph, at most; columns: those of the synthetic "
                "graph. One dark square in each row: the same communities.</span></figcaption>"
                f"{matrix}</figure>"
            )
    return legend(lines) + f'<div class="cards wide">{"".join(figures)}</div>'


def _queries(found: Measured, label: str, *, is_open: bool) -> str:
    rows = []
    for group, title in GROUPS.items():
        entries = [GRAPH_GLOSSARY[q] for q in GRAPH_GLOSSARY if q in found.answers]
        entries = [query for query in entries if query.group == group]
        if entries:
            head = f"<span>{title} <small>{_closeness(found, group)}</small></span>"
            rows.append(f'<tr class="group"><th scope=colgroup colspan=4>{head}</th></tr>')
        rows += [_query_row(query, found.answers[query.name]) for query in entries]
    said = line_on_sampling({name: answer.note for name, answer in found.answers.items()})
    return (
        f'<details class="block"{" open" if is_open else ""}><summary>{escape(label)}</summary>'
        f"{_soft(said)}"
        '<div class="scroll" tabindex="0" role="region" aria-label="Answers to the queries">'
        '<table class="queries"><thead><tr><th scope=col>query</th><th scope=col>real</th>'
        "<th scope=col>synthetic</th><th scope=col>error, or agreement ↑</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _query_row(query: Query, answer: Answer) -> str:
    share = 0.0 if math.isnan(answer.score) else min(max(answer.score, 0.0), 1.0)
    arrow = "&nbsp;↑" if query.better == "higher" else ""
    kind = "bar agreement" if query.better == "higher" else "bar"
    note = f"<small>{escape(answer.note)}</small>" if answer.note else ""
    return (
        f'<tr data-query="{query.name}"><th scope=row>{explained(query.name)}{note}</th>'
        f"<td>{_text(answer.real, 4)}</td><td>{_text(answer.synthetic, 4)}</td>"
        f'<td class="{kind}" style="--share:{share:.1%}">{_text(answer.score)}{arrow}</td></tr>'
    )


def _soft(said: str) -> str:
    return f'<p class="soft">{escape(said)}</p>' if said else ""


def _text(value: float, digits: int = 3) -> str:
    return number(value, digits) if math.isfinite(value) else "-"


def summary(name: str, measured: Sequence[Measured]) -> str:
    """Tables without styles of their own, for a notebook.

    Args:
        name: Name of the real graph.
        measured: Synthetic graphs with their answers.
    """
    parts = [f"<p><strong>{escape(NOT_PRIVATE)}</strong></p>"]
    for position, found in enumerate(measured):
        rows = "".join(
            f'<tr><th style="text-align:left" title="{escape(query.text)}">{query.name}</th>'
            f"<td>{query.group}</td><td>{_text(answer.real, 4)}</td>"
            f"<td>{_text(answer.synthetic, 4)}</td><td>{_text(answer.score)}"
            f"{' ↑' if query.better == 'higher' else ''}</td></tr>"
            for query, answer in ((GRAPH_GLOSSARY[q], a) for q, a in found.answers.items())
        )
        title = f"{escape(found.name)} against {escape(name)}"
        guarantee = f"<p>{escape(found.guarantee)}</p>" if found.guarantee else ""
        notes = {name: answer.note for name, answer in found.answers.items()}
        guarantee += _soft(line_on_sampling(notes))
        parts.append(
            f"<details{'' if position else ' open'}><summary>{title}</summary>{guarantee}"
            "<table><thead><tr><th>query</th><th>group</th><th>real</th><th>synthetic</th>"
            f"<th>error, or agreement ↑</th></tr></thead><tbody>{rows}</tbody></table></details>"
        )
    return "".join(parts)
