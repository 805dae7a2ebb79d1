"""The report of attacks, as tables for people and numbers for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lightning_dpg.apps.audit.link_stealing import BY_ATTRIBUTES, BY_POSTERIORS
from lightning_dpg.pages.page import Table
from lightning_dpg.pages.report import Report

_LINKS = (
    "  Of two pairs the AUC is how often the edge scores higher; chance is .5, and degrees alone",
    "  give more unless both have the same. Found: edges named at 1 % false alarms; chance is .01.",
)
_ATTRIBUTES = (
    f"  Attributes of the nodes are public, so {BY_ATTRIBUTES} are an attack without any release.",
    "  A release that has not seen the targets scores pairs by them, too: only a difference between",
    "  the two columns can be due to the targets.",
)
_NAMES = (
    "  A node that is found in a graph reveals no link of it: edges of synthetic graphs were",
    "  drawn. Degrees are published on purpose, and names mostly with them.",
)
_PREDICTION = (
    "  Accuracy over as many pairs without a link; chance is .5. Nodes of generated graphs are",
    "  identified by their degrees. What is real is what the rest gives away of a link that nobody",
    "  has seen.",
)
_BEYOND = (
    "  Above 0, classes tell more about links than attributes do. Influence of a node's attributes",
    "  on the class of another one is 0 (AUC .5) where classes follow from a node's own ones.",
)
_NOT_GIVEN = "  attack RUN reads those of the fit; in Python give its data module"
_ROWS = (
    "  Prior: everybody has the most frequent value of the release. The row beside a name was drawn",
    "  for its degree. Neighbors: all edges and the rows of all others are known; that linked nodes",
    "  are alike is learned from all, and says much even of a node that is not in the data.",
)


@dataclass(frozen=True, eq=False, repr=False)
class AttackReport(Report):
    """Result of attacks; ``str(report)`` is a text for people. Its numbers are not private.

    Attributes:
        numbers: All numbers as plain values, with the name of the graph as ``graph``.
    """

    title: ClassVar[str] = "Attacks on a release"

    numbers: Mapping[str, Any]

    @property
    def values(self) -> dict[str, Any]:
        """All numbers as plain values."""
        return dict(self.numbers)

    def sections(self) -> list[Table]:
        """Return a table for each kind of attack."""
        found = self.numbers
        if "link_stealing" not in found:
            count = f"{found['hidden']} of {found['edges']} links of {found['graphs']} graphs"
            title = f"{count}, not seen by the method; {found['sets']} generated sets"
            return [_prediction(title, found["link_prediction"])]
        links = _links(found)
        if "beyond_attributes" in found:
            rows = [(row["others"], _interval(row["auc"])) for row in found["beyond_attributes"]]
            title = f"{BY_POSTERIORS}: AUC minus that of {BY_ATTRIBUTES}"
            return [links, Table(title, "", ("other pairs", "difference"), rows, _BEYOND)]
        by_degrees = found["baseline"] == "degrees alone"
        remark = "seen" if by_degrees else "not seen"
        hidden = f"hidden links, {remark} by the method, nodes identified by their degrees"
        tables = [links, _names(found), _prediction(hidden, found["link_prediction"])]
        if "row_guesses" in found:
            tables.append(_rows(found["nodes"], found["row_guesses"]))
        return tables


def _second(found: Mapping[str, Any]) -> str:
    """Return what stands beside the release."""
    return "degrees alone" if found["baseline"] == "degrees alone" else "without them"


def _links(found: Mapping[str, Any]) -> Table:
    keys = ("auc", "accuracy", "found")
    held = (
        f"{found['graphs']} graphs" if "graphs" in found else f"classes of {found['nodes']} nodes"
    )
    rows = []
    for row in found["link_stealing"]:
        base = row["baseline"]
        other = ", ".join(_share(base[key]["value"]) for key in keys) if base else "-"
        cells = (_interval(row["release"][key]) for key in keys)
        rows.append((row["attack"], row["others"], *cells, other))
    has_attributes = any(row["attack"] == BY_ATTRIBUTES for row in found["link_stealing"])
    second = f"{_second(found)}: AUC, accuracy, found"
    return Table(
        f"links: {found['targets']} of {found['edges']} edges; {held}",
        "",
        ("attack", "other pairs", "AUC", "accuracy", "found at 1 %", second),
        rows,
        [*_LINKS, *(_ATTRIBUTES if has_attributes else ())],
        (0, 1, 5),
    )


def _names(found: Mapping[str, Any]) -> Table:
    head = ("knowledge", "release", _second(found), "chance")
    rows = [
        (
            row["knowledge"],
            _interval(row["release"]),
            _share(row["baseline"]["value"]),
            f"{row['chance']:.4f}",
        )
        for row in found["reidentification"]
    ]
    return Table("names: nodes found by what is known of them", "", head, rows, _NAMES)


def _prediction(what: str, found: Mapping[str, Mapping[str, float]]) -> Table:
    names = {
        "real": "real, without the hidden links",
        "generated": "generated graphs",
        "degrees_alone": "random graphs of equal degrees",
    }
    rows = [(text, _interval(found[key])) for key, text in names.items() if key in found]
    return Table(f"prediction: {what}", "", ("predicted from", "accuracy"), rows, _PREDICTION)


def _rows(num_nodes: int, guesses: Sequence[Mapping[str, Any]]) -> Table:
    if not guesses:
        given = "rows: not guessed, since the real private columns are not given"
        return Table(given, "", (), (), [_NOT_GIVEN])
    rows = [
        (
            row["column"],
            row["knowledge"],
            _interval(row["release"]),
            _share(row["prior"]),
            f"{'' if row['better'] else 'no '}better than the prior",
        )
        for row in guesses
    ]
    title = f"rows: private columns of all {num_nodes} nodes, guessed by what is known of them"
    return Table(title, "", ("column", "knowledge", "right", "prior", ""), rows, _ROWS, (0, 1, 4))


def _interval(estimate: Mapping[str, float]) -> str:
    value, low, high = (_share(estimate[key]) for key in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def _share(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1)
