"""Refusals of data sets and runs: names, kinds of edges, a closed data set, too little budget."""

from collections.abc import Sequence

from lightning_dpg.book.identity import Fingerprint, protected_unit
from lightning_dpg.book.request import Request, largest_epsilon, pure_left
from lightning_dpg.book.rows import DataSet, Run, counted
from lightning_dpg.book.wording import minute
from lightning_dpg.errors import BookError
from lightning_dpg.interfaces import Identity
from lightning_dpg.privacy.budget import digits_down
from lightning_dpg.privacy.events import Relation

_LEAST = (
    1e-5  # share of a total below which nothing is left: sums of epsilons leave rounding errors
)

SAME_PEOPLE = (
    "the same people: fit with --dataset {}, whose total covers all versions: totals of one "
    "person's relations add up"
)
"""Advice on data about the people of a data set; the placeholder is its name."""


def check_open(dataset: DataSet) -> None:
    """Refuse a run, a grant or another end of a closed data set.

    Args:
        dataset: The data set.

    Raises:
        BookError: If it is closed.
    """
    if dataset.closed is not None:
        raise BookError(
            f"{dataset.name}: closed at {minute(dataset.closed)} UTC by {dataset.closed_by}: no further run "
            "may spend on it"
        )


def check_record(dataset: DataSet, record: str) -> None:
    """Refuse a run on edges of another kind.

    One undirected edge can be two directed ones: a run that protects a directed edge may protect half
    of what a total for undirected edges promises. Kinds are never mixed, in no direction.

    Args:
        dataset: The data set.
        record: One edge of the run, in words.

    Raises:
        BookError: If the data were registered with other edges.
    """
    unit = protected_unit(dataset.relation, record)
    if dataset.record != unit:
        raise BookError(
            f"{dataset.name} is registered with the record {dataset.record!r}, and the run protects the "
            f"record {unit!r}\n"
            "set kind and undirected of the data as they were when the data were registered"
        )


def in_common(dataset: DataSet, fingerprint: Fingerprint, content: Identity) -> str:
    """Say which nodes other data have in common with a data set.

    Args:
        dataset: The data set.
        fingerprint: Fingerprint of the other data.
        content: Their canonical content.
    """
    if dataset.nodes != fingerprint.nodes:
        return f"these data and {dataset.name!r} have more than half of the smaller one's nodes in common"
    if content.names:
        return f"these data have the nodes of {dataset.name!r}, with other edges or of another kind"
    return (
        f"these data have the nodes of {dataset.name!r} by their numbers only, which do not say whether "
        "they are the same people"
    )


def check_part(
    datasets: Sequence[DataSet], name: str, group: str, relation: Relation, record: str
) -> None:
    """Refuse a name for a group and a data set, and a group of several kinds of records.

    Args:
        datasets: All data sets.
        name: Name of a new one.
        group: Group that it becomes a part of; empty without one.
        relation: Its relation.
        record: Its record.

    Raises:
        BookError: If a name would be that of a group and of a data set, or if a part of the group has
            another relation or record.
    """
    for each in datasets:
        if each.name == group or each.part_of == name or name == group:
            raise BookError(
                f"{group or name!r} cannot be the name of a group and of a data set: take another one"
            )
        if group and each.part_of == group and (relation, record) != (each.relation, each.record):
            raise BookError(
                f"the parts of {group!r} protect one {each.record} (relation {each.relation}), and "
                f"{name!r} one {record} (relation {relation})"
            )


def too_small(dataset: DataSet, earlier: Sequence[Run], request: Request) -> BookError:
    """Say what is left of a total, and the largest budget that the book accepts.

    Args:
        dataset: The data set.
        earlier: Its runs.
        request: The run that does not fit.
    """
    epsilon, delta = request.budget
    waiting = [f"run {run.number} of {run.who}" for run in earlier if run.is_open]
    left = pure_left(dataset, counted(earlier))
    largest = largest_epsilon(dataset, earlier, request)
    is_left, is_large = (value >= _LEAST * dataset.total.epsilon for value in (left, largest))
    lines = [
        f"{dataset.name}: what is left of its total does not pay for {request.method} at epsilon "
        + f"{epsilon:g}, delta {delta:g}",
        f"total: epsilon {dataset.total.epsilon:g}, delta {dataset.total.delta:g}; "
        + (
            f"left: one pure release of epsilon {digits_down(left, 4)}"
            if is_left
            else "nothing is left"
        ),
    ]
    if is_large:
        lines.append(f"set privacy.epsilon to {largest:g} or less")
    elif is_left:
        lines.append(f"no budget at this delta that {request.method} can keep is left")
    if waiting:
        lines.append(f"reserved now by {', '.join(waiting[:3])}")
    return BookError("\n".join(lines))
