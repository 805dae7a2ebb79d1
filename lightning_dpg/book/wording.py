"""Words for the numbers of a data set, the same in a terminal and on the page."""

from collections.abc import Sequence
from typing import Any

from lightning_dpg.privacy.budget import digits_up

GRANT_COLUMNS = ("grant", "to", "epsilon", "spent", "delta", "spent delta", "state", "by")
"""Names of the columns of :func:`grant_cells`."""
PART_COLUMNS = ("part", "total", "delta", "spent", "reserved", "left", "runs", "words")
RUN_COLUMNS = ("run", "reserved (UTC)", "state", "method", "epsilon", "delta", "who", "folder")

MARK = "†"


def minute(time: str) -> str:
    """A time of the book, which is in UTC, up to the minute.

    Args:
        time: The time in ISO format.
    """
    return time[:16].replace("T", " ")


def left_text(found: dict[str, Any]) -> str:
    """Say what is left of a data set, or that it is closed.

    Args:
        found: Summary of a data set.
    """
    if found["closed"]:
        return f"nothing: closed at {minute(found['closed'])} UTC by {found['closed_by']}"
    return f"one pure release of epsilon {found['left']:g}" if found["left"] else "nothing"


def spent_text(found: dict[str, Any]) -> str:
    """Say what is spent, first by the number that can be added up by hand, if there is one.

    Args:
        found: Summary of a data set.
    """
    spent, added = digits_up(found["spent"], 6), found["pure_sum"]
    if added is None or added <= found["spent"]:
        return f"epsilon {spent} ({found['accountant']})"
    return (
        f"epsilon {digits_up(added, 6)} added up, {spent} proved together ({found['accountant']})"
    )


def same_edges_note(found: dict[str, Any]) -> list[str]:
    """Say which runs on the same edges are not in the numbers of a data set.

    Args:
        found: Summary of a data set.
    """
    return [
        f"the same edges are registered as {each['dataset']!r} for the relation {each['relation']}: "
        "its runs are not in this number"
        for each in found["same_edges"]
    ]


def grant_rule(found: dict[str, Any]) -> str:
    """Say who may spend on a data set; empty if every user may.

    Args:
        found: Summary of a data set.
    """
    if found["two_persons"]:
        return "needed by all runs, each made by one person and approved by another"
    return "needed by all runs" if found["grants"] else ""


def upper_bounds(found: dict[str, Any]) -> list[str]:
    """Say which runs make the numbers of a data set an upper bound, and whether its total is exceeded.

    Args:
        found: Summary of a data set.
    """
    said = []
    states = [(run["run"], run["outcome"]) for run in found["releases"]]
    if going := [number for number, outcome in states if outcome == "open"]:
        said.append(f"{_runs_of(going)} open: steps are booked ahead, and spent is an upper bound")
    if killed := [number for number, outcome in states if outcome == "killed"]:
        said.append(f"{_runs_of(killed)} killed: what may have been released counts as spent")
    if found["spent"] > found["total"]:
        said.append(
            "the total is exceeded: lost steps were released, and are booked whatever the total"
        )
    return said


def condition_note(found: dict[str, Any]) -> list[str]:
    """Say that numbers hold under conditions only, and what holds in any case.

    Args:
        found: Summary of a data set or of a group.
    """
    if not found["conditional"]:
        return []
    epsilon = found["in_any_case"]
    of_group = f" for one {found['record']}" if "parts" in found else ""
    proved = (
        "nothing is proved"
        if epsilon is None
        else f"all releases together are ({epsilon:g}, {found['delta']:g})-DP{of_group}"
    )
    return [
        f"{MARK} under a condition: the epsilons hold only if the conditions do; in any case {proved}"
    ]


def part_cells(found: dict[str, Any]) -> tuple[str, ...]:
    """Cells of :data:`PART_COLUMNS`; nothing is left of closed data.

    Args:
        found: Summary of a data set.
    """
    numbers = [digits_up(found[key], 6) for key in ("total", "delta", "spent", "reserved")]
    if found["conditional"]:
        numbers[2] += f" {MARK}"
    left = "closed" if found["closed"] else f"{found['left']:g}"
    count = str(len(found["releases"]))
    return (found["dataset"], *numbers, left, count, found["words"])


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
