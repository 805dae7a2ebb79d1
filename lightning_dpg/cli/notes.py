"""Notes that ``fit`` prints before it begins: on the data, and on a better method."""

from collections.abc import Iterator

from lightning_dpg.advice import Facts
from lightning_dpg.cli.quiet import at_terminal
from lightning_dpg.interfaces import (
    AttributedGraphRecords,
    GraphSetRecords,
    KindOfRecords,
    Records,
    serves_records,
)
from lightning_dpg.methods import PrivateModule
from lightning_dpg.privacy.budget import Budget


def notes(method: PrivateModule, data: object, budget: Budget) -> Iterator[str]:
    """Report the data, and name a method that is known to do better.

    Exact counts and names of the private graph go to the owner's terminal only. Where standard
    error is none, as under cron, mails and collectors of logs would take them.

    Args:
        method: Method of the run.
        data: Its data module.
        budget: Budget of the run.
    """
    summary: str | None = getattr(data, "summary", None)
    if summary is not None and at_terminal():
        yield summary
    yield from getattr(data, "notes", ())
    assert serves_records(data)  # otherwise the run was refused
    if line := better_method(method, data.records, budget):
        yield f"hint: {line}"


def public_facts(records: Records, budget: Budget) -> Facts:
    """Return the facts of data that a guarantee takes as public, without the number of edges.

    Args:
        records: Records of a data module (private).
        budget: Budget of the run.
    """
    allows_delta = budget.delta > 0
    if isinstance(records, GraphSetRecords):
        return Facts("graphs", budget.epsilon, kind="set", allows_delta=allows_delta)
    return Facts(
        "links",
        budget.epsilon,
        records.num_nodes,
        kind=records.kind if isinstance(records, KindOfRecords) else "undirected",
        allows_delta=allows_delta,
        has_attributes=isinstance(records, AttributedGraphRecords),
    )


def better_method(method: PrivateModule, records: Records, budget: Budget) -> str | None:
    """Name a method that is known to do better, in one line; None if no such method is known.

    Args:
        method: Method of a run; its ``advice``, if it has one, knows what it is for.
        records: Records of its data module (private).
        budget: Budget of the run.
    """
    advice = getattr(method, "advice", None)
    line: str | None = advice and advice(public_facts(records, budget))
    return line
