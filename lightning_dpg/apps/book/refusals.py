"""Refusals of data sets and runs: names, kinds of edges, a closed data set, too little budget."""

from collections.abc import Sequence

from lightning_dpg.apps.book.identity import Fingerprint, protected_unit
from lightning_dpg.apps.book.request import Request, largest_epsilon, pure_left
from lightning_dpg.apps.book.state import DataSet, Run, cost_of_runs
from lightning_dpg.apps.book.wording import minute
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
    unit = protected_unit(dataset.relation, record, dataset.max_edges)
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


def check_max_edges(relation: Relation, max_edges: int | None) -> None:
    """Refuse a total for several edges of a node without their number, and the number elsewhere.

    Args:
        relation: Relation of the total.
        max_edges: Number D of edges of one node that are hidden together (public).

    Raises:
        BookError: If one of both is missing.
    """
    is_needed = relation is Relation.EDGES_OF_NODE
    if is_needed and (max_edges is None or max_edges < 1):
        raise BookError(
            f"a total of the relation {relation} holds for a number of edges of one node, of 1 or "
            f"more, got {max_edges}\ngive it: --max-edges 20, as max_edges of the method"
        )
    if not is_needed and max_edges is not None:
        raise BookError(
            f"--max-edges {max_edges} belongs to the relation {Relation.EDGES_OF_NODE}, and the total "
            f"is of the relation {relation}"
        )


def check_row_total(dataset: DataSet, names: Sequence[str]) -> None:
    """Refuse a second total of the same private columns.

    Args:
        dataset: The data set that is to get a total of private columns.
        names: Data sets with a total of the very same columns.

    Raises:
        BookError: If it has one, or if another data set has.
    """
    if total := dataset.other_totals.get(Relation.ATTRIBUTES):
        raise BookError(
            f"{dataset.name}: the private columns of its nodes have a total of epsilon "
            f"{total.budget.epsilon:g}, delta {total.budget.delta:g}, and no total is raised"
        )
    if names:
        raise BookError(
            f"these private columns are on the total of {names[0]!r} already, which covers all of "
            f"their releases\nfit with --dataset {names[0]}"
        )


def check_has_total(dataset: DataSet, relation: Relation) -> None:
    """Refuse a grant on a total that does not exist.

    Args:
        dataset: The data set.
        relation: Relation of the total.

    Raises:
        BookError: If there is none.
    """
    if relation not in dataset.relations:
        raise BookError(
            f"{dataset.name} has no total of the relation {relation}: it has "
            f"{', '.join(dataset.relations)}"
        )


def check_part(
    datasets: Sequence[DataSet],
    name: str,
    group: str,
    record: str,
    relation: Relation,
    max_edges: int | None = None,
) -> None:
    """Refuse a name for a group and a data set, and a group of several kinds of records.

    Args:
        datasets: All data sets.
        name: Name of a new one.
        group: Group that it becomes a part of; empty without one.
        record: Its record.
        relation: Its relation.
        max_edges: Number of edges of one node that are hidden together, if the relation has one.

    Raises:
        BookError: If a name would be that of a group and of a data set, or if a part of the group has
            another relation or record.
    """
    for each in datasets:
        if each.name == group or each.part_of == name or name == group:
            raise BookError(
                f"{group or name!r} cannot be the name of a group and of a data set: take another one"
            )
        own = (each.relation, each.record, each.max_edges)
        if group and each.part_of == group and (relation, record, max_edges) != own:
            raise BookError(
                f"the parts of {group!r} protect one {each.record} (relation {each.relation}), and "
                f"{name!r} one {record} (relation {relation})"
            )


def too_small(dataset: DataSet, earlier: Sequence[Run], request: Request) -> BookError:
    """Say what is left of a total, and the largest budget that the book accepts.

    Args:
        dataset: The data set, as the total sees it that the run does not fit.
        earlier: Its runs.
        request: The run.
    """
    epsilon, delta = request.other_budgets.get(dataset.relation, request.budget)
    setting, of_rows = "privacy.epsilon", ""
    if dataset.relation is Relation.ATTRIBUTES:
        setting, of_rows = "privacy.row_epsilon", " for private columns of nodes"
    waiting = [f"run {run.number} of {run.who}" for run in earlier if run.is_open]
    left = pure_left(dataset, cost_of_runs(earlier, dataset.relation))
    largest = largest_epsilon(dataset, earlier, request)
    is_left, is_large = (value >= _LEAST * dataset.total.epsilon for value in (left, largest))
    lines = [
        f"{dataset.name}: what is left of its total{of_rows} does not pay for {request.method} at "
        + f"epsilon {epsilon:g}, delta {delta:g}",
        f"total: epsilon {dataset.total.epsilon:g}, delta {dataset.total.delta:g}; "
        + (
            f"left: one pure release of epsilon {digits_down(left, 4)}"
            if is_left
            else "nothing is left"
        ),
    ]
    if is_large:
        lines.append(f"set {setting} to {largest:g} or less")
    elif is_left:
        lines.append(f"no budget at this delta that {request.method} can keep is left")
    if waiting:
        lines.append(f"reserved now by {', '.join(waiting[:3])}")
    return BookError("\n".join(lines))
