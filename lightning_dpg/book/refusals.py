"""Why a book refuses a data set or a run: names, kinds of edges, a closed data set, too little left."""

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
    "the same people: fit with --privacy.dataset {}, whose total covers all versions: totals of one "
    "person's relations add up"
)
"""What to do with data on the people of a data set, by its name."""


def check_open(known: DataSet) -> None:
    """Refuse a run, a grant or another end of a closed data set.

    Args:
        known: The data set.

    Raises:
        BookError: If it is closed.
    """
    if known.closed is not None:
        raise BookError(
            f"{known.name}: closed at {minute(known.closed)} UTC by {known.closed_by}: no further run "
            "may spend on it"
        )


def check_record(known: DataSet, record: str) -> None:
    """Refuse a run on edges of another kind.

    One undirected edge can be two directed ones: a run that protects a directed edge may protect half
    of what a total for undirected edges promises. Kinds are never mixed, in no direction.

    Args:
        known: The data set.
        record: What is one edge in the run.

    Raises:
        BookError: If the data were registered with other edges.
    """
    unit = protected_unit(known.relation, record)
    if known.record != unit:
        raise BookError(
            f"{known.name} is registered with the record {known.record!r}, and the run protects the "
            f"record {unit!r}\n"
            "set kind and undirected of the data as they were when the data were registered"
        )


def in_common(known: DataSet, found: Fingerprint, content: Identity) -> str:
    """Say which nodes other data have in common with a data set.

    Args:
        known: The data set.
        found: Fingerprint of the other data.
        content: Their canonical content.
    """
    if known.nodes != found.nodes:
        return f"these data and {known.name!r} have more than half of the smaller one's nodes in common"
    if content.names:
        return f"these data have the nodes of {known.name!r}, with other edges or of another kind"
    return (
        f"these data have the nodes of {known.name!r} by their numbers only, which do not say whether "
        "they are the same people"
    )


def check_part(
    known: Sequence[DataSet], name: str, group: str, relation: Relation, record: str
) -> None:
    """Refuse a name for a group and a data set, and a group of several kinds of records.

    Args:
        known: All data sets.
        name: Name of a new one.
        group: Group that it becomes a part of; empty without one.
        relation: Its relation.
        record: Its record.

    Raises:
        BookError: If a name would be that of a group and of a data set, or if a part of the group has
            another relation or record.
    """
    for each in known:
        if each.name == group or each.part_of == name or name == group:
            raise BookError(
                f"{group or name!r} cannot be the name of a group and of a data set: take another one"
            )
        if group and each.part_of == group and (relation, record) != (each.relation, each.record):
            raise BookError(
                f"the parts of {group!r} protect one {each.record} (relation {each.relation}), and "
                f"{name!r} one {record} (relation {relation})"
            )


def too_small(known: DataSet, earlier: Sequence[Run], request: Request) -> BookError:
    """Say what is left of a total, and the largest budget that is let in.

    Args:
        known: The data set.
        earlier: Its runs.
        request: The run that does not fit.
    """
    epsilon, delta = request.budget
    waiting = [f"run {run.number} of {run.who}" for run in earlier if run.is_open]
    left = pure_left(known, counted(earlier))
    largest = largest_epsilon(known, earlier, request)
    is_left, is_large = (value >= _LEAST * known.total.epsilon for value in (left, largest))
    lines = [
        f"{known.name}: what is left of its total does not pay for {request.method} at epsilon "
        + f"{epsilon:g}, delta {delta:g}",
        f"total: epsilon {known.total.epsilon:g}, delta {known.total.delta:g}; "
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
