r"""Groups of data sets whose owner declares them to be disjoint, such as one for each tenant or month.

Each part has a total and a filter of its own. **For one record, a group proves the largest total of its
parts.** Proof: let two neighbors differ in a record of part j, and let no other part depend on it. All
releases from the other parts, the totals of parts that are registered later, and the choice of every
next run are then functions of part j's releases and of randomness that is the same for both neighbors:
together they are one adaptive analyst of part j. Its filter holds against any such analyst, with
:math:`(\epsilon_j, \delta_j)`. So :math:`(\max_j \epsilon_j, \max_j \delta_j)` holds for each record. ∎

Two things are needed, and only the owner can know them:

* Each record lies in one part. Where the same pair of nodes is linked in two months, these are two
  records, and a statement on both adds the epsilons of both parts.
* The part follows from public facts, as its tenant or its month, and from no other edge. Parts that
  were found by clustering are no partition: one edge changes the parts of others.

Equal parts are refused. Files are not compared edge by edge: months may share pairs as two records,
and tenants in separate files can still have been cut by what the edges say.

**Totals of private columns** are no part of a group: the columns of a person are the same in all parts
that have the person.

**For a node, or a person, parts add up**: the edges of a node lie in many of them. Edge-level releases of
all parts compose as groups of D edges each, where D bounds the edges of a node in any one part.
"""

from collections.abc import Sequence
from typing import Any

from lightning_dpg.apps.book import totals
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.report import Content, read, released_entries, summary_of
from lightning_dpg.apps.book.state import DataSet
from lightning_dpg.apps.book.wording import MARK, PLANNED
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.budget import digits_up, rounded_up
from lightning_dpg.privacy.events import Relation

DECLARED = "declared by the owner, and not checked"


def parts_of(book: Book, group: str) -> list[DataSet]:
    """Data sets that were registered as parts of a group."""
    return [each for each in book.data_sets() if each.part_of == group]


def names_of(book: Book, name: str | None) -> list[str]:
    """Names of one data set, of all parts of a group, or of all data sets.

    Args:
        book: The book.
        name: Data set or group; None for all.

    Raises:
        BookError: If there is neither.
    """
    if name is None:
        return [each.name for each in book.data_sets()]
    return [each.name for each in parts_of(book, name)] or [book.data_set(name).name]


def group_summary(book: Book, group: str) -> dict[str, Any]:
    """Guarantee of a group of disjoint parts for one record and for a node, as plain values.

    Args:
        book: The book.
        group: Name of the group.

    Raises:
        BookError: If no data set is a part of it.
    """
    with book.database.snapshot():
        parts = [read(book, part.name) for part in parts_of(book, group)]
    if not parts:
        raise BookError(f"{book.url}: no data set is a part of {group!r}")
    return group_summary_of(parts)


def group_summary_of(parts: Sequence[Content]) -> dict[str, Any]:
    """Summarize a group as :func:`group_summary` does, from parts that were read before."""
    summaries = [summary_of(part) for part in parts]
    datasets = [part.dataset for part in parts]
    record = datasets[0].record
    return {
        "group": datasets[0].part_of,
        "relation": datasets[0].relation.value,
        "record": record,
        "declared": f"each {record} lies in one part only, and public facts say in which",
        "delta": max(each.total.delta for each in datasets),
        **{name: max(each[name] for each in summaries) for name in ("total", "spent", "reserved")},
        "conditional": any(each["conditional"] for each in summaries),
        **(_node(parts) if datasets[0].relation is Relation.EDGE else {}),
        "parts": summaries,
    }


def group_facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Facts of a group by name, as texts.

    Args:
        summary: Summary of a group.
    """
    mark = f" {MARK}" if summary["conditional"] else ""
    facts = [
        ("disjoint", f"{summary['declared']} ({DECLARED})"),
        (
            "total",
            f"epsilon {digits_up(summary['total'], 6)}, delta {digits_up(summary['delta'], 6)}: the largest of its parts",
        ),
        ("spent", f"epsilon {digits_up(summary['spent'], 6)}{mark} for one {summary['record']}"),
    ]
    if "node" in summary:
        node = summary["node"]
        facts.append(
            (
                "node",
                f"epsilon {digits_up(node, 6)}{mark}: all edges of a node in all parts, {summary['max_degree']} at most "
                f"in each, {PLANNED}"
                if isinstance(node, float)
                else "no statement: edges of a node lie in many parts, whose epsilons add up",
            )
        )
    return facts


def _node(parts: Sequence[Content]) -> dict[str, Any]:
    """Epsilon of all edges of a node in all parts; None if a part has no bound on their number."""
    degrees = [part.dataset.max_degree for part in parts if part.dataset.max_degree is not None]
    if len(degrees) < len(parts):
        return {"node": None}
    entries = [entry for part in parts for entry in released_entries(part.dataset, part.runs)]
    delta = max(part.dataset.total.delta for part in parts)
    epsilon = totals.node_level(entries, delta, max(degrees))
    return {"max_degree": max(degrees), "node": rounded_up(epsilon) if epsilon < 1e9 else None}
