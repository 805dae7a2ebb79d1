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


def minute(time: str) -> str:
    """A time of the book, which is in UTC, up to the minute.

    Args:
        time: The time in ISO format.
    """
    return time[:16].replace("T", " ")


def left_text(summary: dict[str, Any]) -> str:
    """Say what is left of a data set, or that it is closed.

    Args:
        summary: Summary of a data set.
    """
    if summary["closed"]:
        return f"nothing: closed at {minute(summary['closed'])} UTC by {summary['closed_by']}"
    return f"one pure release of epsilon {summary['left']:g}" if summary["left"] else "nothing"


def spent_text(summary: dict[str, Any]) -> str:
    """Say what is spent, first by the number that can be added up by hand, if there is one.

    Args:
        summary: Summary of a data set.
    """
    spent, added = digits_up(summary["spent"], 6), summary["pure_sum"]
    if added is None or added <= summary["spent"]:
        return f"epsilon {spent} ({summary['accountant']})"
    return (
        f"epsilon {digits_up(added, 6)} added up, {spent} proved together ({summary['accountant']})"
    )


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


def grant_rule(summary: dict[str, Any]) -> str:
    """Say who may spend on a data set; empty if every user may.

    Args:
        summary: Summary of a data set.
    """
    if summary["two_persons"]:
        return "needed by all runs, each made by one person and approved by another"
    return "needed by all runs" if summary["needs_grants"] else ""


def by_edges_text(summary: dict[str, Any]) -> str:
    """Say the epsilon of several numbers of edges of one node; empty where none is proved.

    Args:
        summary: Summary of a data set.
    """
    found = summary.get("epsilon_by_edges")
    if not found:
        return ""
    by_number = {int(count): epsilon for count, epsilon in found.items()}
    return f"epsilon by the edges of one node together: {in_words(by_number)}"


def together_text(summary: dict[str, Any]) -> str:
    """Say what is spent on the private columns of a node and its edges together; empty without them.

    Args:
        summary: Summary of a data set.
    """
    amounts = [
        f"with {each['edges']} of its edges: epsilon {digits_up(each['epsilon'], 6)}, delta "
        f"{digits_up(each['delta'], 3)}"
        for each in summary["together"]
        if each["epsilon"]
    ]
    return f"the private columns of a node {'; '.join(amounts)}" if amounts else ""


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
    """Say which runs make the numbers of a data set an upper bound, and whether its total is exceeded.

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
    if summary["spent"] > summary["total"]:
        notes.append(
            "the total is exceeded: lost steps were released, and are booked whatever the total"
        )
    return notes


def condition_note(summary: dict[str, Any]) -> list[str]:
    """Say that numbers hold under conditions only, and what holds in any case.

    Args:
        summary: Summary of a data set or of a group.
    """
    if not summary["conditional"]:
        return []
    epsilon = summary["in_any_case"]
    of_group = f" for one {summary['record']}" if "parts" in summary else ""
    proved = (
        "nothing is proved"
        if epsilon is None
        else f"all releases together are ({epsilon:g}, {summary['delta']:g})-DP{of_group}"
    )
    return [
        f"{MARK} under a condition: the epsilons hold only if the conditions do; in any case {proved}"
    ]


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
    first = (str(run["run"]), minute(run["opened"]), run["outcome"], method)
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
