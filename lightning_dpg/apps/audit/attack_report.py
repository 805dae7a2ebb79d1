"""The report of attacks: tables for people, numbers for programs, and a line for a budget book."""

import html
from dataclasses import dataclass
from typing import Any

from lightning_dpg.apps.audit.link_stealing import BY_ATTRIBUTES, BY_POSTERIORS
from lightning_dpg.tables import as_json

_ATTRIBUTES = (
    f"  Attributes of the nodes are public, so {BY_ATTRIBUTES} are an attack without any release.",
    "  A release that has not seen the targets scores pairs by them, too: only a difference between",
    "  the two columns can be due to the targets.",
)

_NOT_PRIVATE = "not private: the numbers were computed from the real graph"


@dataclass(frozen=True, eq=False, repr=False)
class AttackReport:
    """Result of attacks; ``str(report)`` is a text for people. Its numbers are not private.

    Attributes:
        values: All numbers as plain values, with the name of the graph as ``graph``.
    """

    values: dict[str, Any]

    def to_json(self) -> str:
        """Return all values as strict JSON."""
        return as_json(self.values)

    def __str__(self) -> str:
        """Return the tables of all attacks."""
        is_set = "link_stealing" not in self.values
        return "\n".join(_set_lines(self.values) if is_set else _lines(self.values))

    def __repr__(self) -> str:
        """Return the tables, as ``str`` does."""
        return str(self)

    def _repr_html_(self) -> str:
        """Show the tables in a notebook."""
        return f"<pre>{html.escape(str(self))}</pre>"


def _lines(report: dict[str, Any]) -> list[str]:
    """Format the report on a graph."""
    by_degrees, has_graphs = report["baseline"] == "degrees alone", "graphs" in report
    second, keys = "degrees alone" if by_degrees else "without them", ("auc", "accuracy", "found")
    head = f"{'attack':<31}{'other pairs':<14}{'AUC':>24}{'accuracy':>24}{'found at 1 %':>24}"
    has_attributes = any(row["attack"] == BY_ATTRIBUTES for row in report["link_stealing"])
    text = [
        f"links: {report['targets']} of {report['edges']} edges; "
        + (f"{report['graphs']} graphs" if has_graphs else f"classes of {report['nodes']} nodes"),
        f"{head}   {second}: AUC, accuracy, found",
    ]
    for row in report["link_stealing"]:
        cells = "".join(f"{_interval(row['release'][key]):>24}" for key in keys)
        base = row["baseline"]
        other = ", ".join(_share(base[key]["value"]) for key in keys) if base else "-"
        text.append(f"{row['attack']:<31}{row['others']:<14}{cells}   {other}")
    text += [
        "  Of two pairs the AUC is how often the edge scores higher; chance is .5, and degrees alone",
        "  give more unless both have the same. Found: edges named at 1 % false alarms; chance is .01.",
        *(_ATTRIBUTES if has_attributes else ()),
    ]
    if not has_graphs:
        return [*text, *_beyond_lines(report), "", _NOT_PRIVATE]
    text += [
        "",
        f"names: nodes found by what is known of them; {second} in brackets",
    ]
    for row in report["reidentification"]:
        text.append(
            f"{row['knowledge']:<31}{_interval(row['release'])}   [{_share(row['baseline']['value'])}]"
            f"   chance {row['chance']:.4f}"
        )
    text += [
        "  A node that is found in a graph reveals no link of it: edges of synthetic graphs were",
        "  drawn. Degrees are published on purpose, and names mostly with them.",
        "",
    ]
    prediction = report["link_prediction"]
    remark = "seen" if by_degrees else "not seen"
    text += [
        f"prediction: hidden links, {remark} by the method, nodes identified by their degrees",
        f"{'from the real remaining graph':<31}{_interval(prediction['real'])}",
        f"{'from the generated graphs':<31}{_interval(prediction['generated'])}",
        "  Accuracy over as many pairs without a link; chance is .5. The first line is what the",
        "  structure of the rest gives away of a link that nobody has seen.",
        "",
        *_row_lines(report),
        _NOT_PRIVATE,
    ]
    return text


def _row_lines(report: dict[str, Any]) -> list[str]:
    """Format guesses of private rows, if there are any."""
    guesses = report.get("row_guesses")
    if guesses is None:
        return []
    if not guesses:
        return [
            "rows: not guessed, since the real private columns are not given",
            "  attack RUN reads those of the fit; in Python give its data module",
            "",
        ]
    width = max(31, *(len(row["column"]) + 2 for row in guesses))
    lines = [
        f"rows: private columns of all {report['nodes']} nodes, guessed by what is known of them"
    ]
    for row in guesses:
        verdict = "better than the prior" if row["better"] else "no better than the prior"
        right = f"{_interval(row['release'])}   [{_share(row['prior'])}]   {verdict}"
        lines.append(f"{row['column']:<{width}}{row['knowledge']:<14}{right}")
    return [
        *lines,
        "  In brackets the prior: everybody has the most frequent value of the release. The row beside a",
        "  name was drawn for its degree. Neighbors: all edges and the rows of all others are known; that",
        "  linked nodes are alike is learned from all, and says much even of a node that is not in the data.",
        "",
    ]


def _beyond_lines(report: dict[str, Any]) -> list[str]:
    """Format how much more predicted classes tell than attributes do."""
    return [
        "",
        f"{BY_POSTERIORS}: AUC minus that of {BY_ATTRIBUTES}",
        *(
            f"{'':<31}{row['others']:<14}{_interval(row['auc'], '+.3f'):>28}"
            for row in report["beyond_attributes"]
        ),
        "  Above 0, classes tell more about links than attributes do. Influence of a node's attributes",
        "  on the class of another one is 0 (AUC .5) where classes follow from a node's own ones.",
    ]


def _set_lines(report: dict[str, Any]) -> list[str]:
    """Format the report on a set of graphs."""
    names = {
        "real": "from the real remaining graphs",
        "generated": "from the generated graphs",
        "degrees_alone": "from random graphs of equal degrees",
    }
    rows = report["link_prediction"]
    count = f"{report['hidden']} of {report['edges']} links of {report['graphs']} graphs"
    return [
        f"prediction: {count}, not seen by the method; {report['sets']} generated sets",
        *(
            f"{text:<37}{row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
            for key, text in names.items()
            for row in [rows[key]]
        ),
        "  Accuracy over as many pairs without a link; chance is .5. Nodes of generated graphs are",
        "  identified by their degrees. The first line is what the rest of the links gives away.",
        "",
        "not private: the numbers were computed from the real graphs",
    ]


def _interval(estimate: dict[str, float], form: str = ".3f") -> str:
    value, low, high = (_share(estimate[key], form) for key in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def _share(value: float, form: str = ".3f") -> str:
    return f"{value:{form}}".replace("0.", ".", 1)
