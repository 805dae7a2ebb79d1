"""Words for the numbers of a data set, the same in a terminal and on the page."""

from collections.abc import Sequence
from typing import Any

from lightning_dpg.privacy.budget import digits_up
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.meaning import in_words

GRANT_COLUMNS = ("grant", "to", "epsilon", "spent", "delta", "spent delta", "state", "by")
"""Names of the columns of :func:`grant_cells`."""
PART_COLUMNS = ("part", "total", "delta", "spent", "reserved", "left", "runs", "words")
RUN_COLUMNS = ("run", "reserved (UTC)", "state", "method", "epsilon", "delta", "who", "folder")

SAME = {"same_edges": "the same edges", "same_nodes": "the same nodes, or most of them,"}
"""What two data sets with totals of different relations have in common."""

MARK = "†"
PLANNED = "if all runs were planned in advance"
"""Condition of the node-level epsilon: no filter holds it."""

AMOUNTS = 4
"""Number of facts of a total that its bar shows."""


def minute(time: str) -> str:
    """A time of the book, which is in UTC, up to the minute.

    Args:
        time: The time in ISO format.
    """
    return time[:16].replace("T", " ")


def facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Facts of one total by name; the first :data:`AMOUNTS` are what its bar shows.

    Args:
        summary: Summary of a data set.
    """
    delta = digits_up(summary["delta"], 6)
    part_of, count = summary["part_of"], len(summary["measurements"])
    times = "once" if count == 1 else f"{count} times"
    found = [
        ("total", f"epsilon {digits_up(summary['total'], 6)}, delta {delta}"),
        ("spent", _spent(summary)),
        ("reserved", f"epsilon {digits_up(summary['reserved'], 6)}"),
        ("left", _left(summary)),
        ("part of", part_of and f"{part_of}, whose parts the owner declares to be disjoint"),
        ("node", summary.get("node_text", "")),
        ("edges", _by_edges(summary)),
        ("together", _together(summary)),
        ("measured", f"{times}, on no total: budget history {summary['dataset']}" * bool(count)),
        ("grants", _grant_rule(summary)),
    ]
    return [(name, text) for name, text in found if text]


def _left(summary: dict[str, Any]) -> str:
    if summary["closed"]:
        return f"nothing: closed at {minute(summary['closed'])} UTC by {summary['closed_by']}"
    return f"one pure release of epsilon {summary['left']:g}" if summary["left"] else "nothing"


def _spent(summary: dict[str, Any]) -> str:
    """What is spent, first by the number that can be added up by hand, if there is one."""
    spent, added = digits_up(summary["spent"], 6), summary["pure_sum"]
    if added is None or added <= summary["spent"]:
        return f"epsilon {spent} ({summary['accountant']})"
    return (
        f"epsilon {digits_up(added, 6)} added up, {spent} proved together ({summary['accountant']})"
    )


def _grant_rule(summary: dict[str, Any]) -> str:
    """Who may spend on a data set; empty if every user may."""
    if summary["two_persons"]:
        return "needed by all runs, each made by one person and approved by another"
    return "needed by all runs" if summary["needs_grants"] else ""


def _by_edges(summary: dict[str, Any]) -> str:
    """Epsilon of several numbers of edges of one node; empty where none is proved."""
    found = summary.get("epsilon_by_edges")
    if not found:
        return ""
    by_number = {int(count): epsilon for count, epsilon in found.items()}
    return f"epsilon by the edges of one node together: {in_words(by_number)}"


def _together(summary: dict[str, Any]) -> str:
    """What is spent on the private columns of a node and its edges together; empty without them."""
    amounts = [
        f"with {each['edges']} of its edges: epsilon {digits_up(each['epsilon'], 6)}, delta "
        f"{digits_up(each['delta'], 3)}"
        for each in summary["together"]
        if each["epsilon"]
    ]
    return f"the private columns of a node {'; '.join(amounts)}" if amounts else ""


def same_edges_note(summary: dict[str, Any]) -> list[str]:
    """Say which runs on the same edges or nodes are not in the numbers of a data set.

    Args:
        summary: Summary of a data set.
    """
    return [
        f"{SAME[what]} are registered as {each['dataset']!r} for the relation {each['relation']}: "
        "its runs are not in this number"
        for what in SAME
        for each in summary[what]
    ]


def node_text(node: float | str, size: int, delta: float) -> str:
    """Say what the releases prove for all edges of a node, and when.

    Args:
        node: Derived epsilon; a text if there is none.
        size: Largest number of edges of a node.
        delta: Delta of the statement.
    """
    if isinstance(node, str):
        return f"no statement at delta {delta:g} on the {size} edges of a node at most"
    budget = f"epsilon {digits_up(node, 5)}, delta {delta:g}"
    return f"{budget}: all edges of a node, {size} at most, as a group, {PLANNED}"


def name_of_total(summary: dict[str, Any]) -> str:
    """Name of a data set, with the total that a summary is about if it is not the registered one.

    Args:
        summary: Summary of a data set.
    """
    of_rows = summary["relation"] == Relation.ATTRIBUTES
    return f"{summary['dataset']}, private columns" if of_rows else str(summary["dataset"])


def upper_bounds(summary: dict[str, Any]) -> list[str]:
    """Say which runs make numbers an upper bound, which were retracted, and if the total is exceeded.

    Args:
        summary: Summary of a data set.
    """
    notes = []
    states = [(run["run"], run["outcome"]) for run in summary["releases"]]
    if open_runs := [number for number, outcome in states if outcome == "open"]:
        notes.append(
            f"{_runs_of(open_runs)} open: steps are booked ahead, and spent is an upper bound"
        )
    if killed := [number for number, outcome in states if outcome == "killed"]:
        notes.append(f"{_runs_of(killed)} killed: what may have been released counts as spent")
    notes += [
        f"the release of run {run['run']} was retracted ({run['retracted']}), and stays spent"
        for run in summary["releases"]
        if run["retracted"] is not None
    ]
    if summary["spent"] > summary["total"]:
        notes.append(
            "the total is exceeded: lost steps were released, and are booked whatever the total"
        )
    return notes


def condition_note(summary: dict[str, Any]) -> list[str]:
    """Say that numbers hold under conditions only.

    Args:
        summary: Summary of a data set or of a group.
    """
    note = (
        f"{MARK} under a condition: the epsilons hold only if the conditions do; without them nothing "
        "is proved"
    )
    return [note] if summary["conditional"] else []


def part_cells(summary: dict[str, Any]) -> tuple[str, ...]:
    """Cells of :data:`PART_COLUMNS`; nothing is left of closed data.

    Args:
        summary: Summary of a data set.
    """
    numbers = [digits_up(summary[key], 6) for key in ("total", "delta", "spent", "reserved")]
    if summary["conditional"]:
        numbers[2] += f" {MARK}"
    left = "closed" if summary["closed"] else f"{summary['left']:g}"
    count = str(len(summary["releases"]))
    return (summary["dataset"], *numbers, left, count, summary["words"])


def run_cells(run: dict[str, Any]) -> tuple[str, ...]:
    """Cells of :data:`RUN_COLUMNS`, with a mark where a guarantee holds under a condition.

    Args:
        run: A run of a summary.
    """
    epsilon, delta = (digits_up(run[key], 6) for key in ("epsilon", "delta"))
    method = run["method"] if run["condition"] is None else f"{run['method']} {MARK}"
    state = run["outcome"] if run["retracted"] is None else "retracted"
    first = (str(run["run"]), minute(run["opened"]), state, method)
    return (*first, epsilon, delta, run["who"].partition(",")[0], run["folder"] or "-")


def grant_cells(grant: dict[str, Any]) -> tuple[str, ...]:
    """Number, user, granted and spent epsilon and delta, state, maker and approver of a grant.

    Args:
        grant: A grant of a summary.
    """
    keys = ("epsilon", "spent_epsilon", "delta", "spent_delta")
    numbers = [digits_up(grant[key], 6) for key in keys]
    if grant["state"] == "replaced":  # what its user has spent counts against the later one
        numbers[1] = numbers[3] = "-"
    by = f"{grant['made_by']}, {grant['approved_by']}" if grant["approved_by"] else grant["made_by"]
    return (str(grant["number"]), grant["to"], *numbers, grant["state"], by)


def _runs_of(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"run {numbers[0]} is"
    return f"{len(numbers)} runs are"
