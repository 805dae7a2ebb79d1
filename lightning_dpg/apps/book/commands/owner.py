"""``budget init``, ``register``, ``rows``, ``grant``, ``retract``, ``close``: the commands of an owner."""

import contextlib
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from lightning_dpg.apps.book.commands.open_book import open_book
from lightning_dpg.apps.book.owner_token import VARIABLE
from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.outcome import Outcome
from lightning_dpg.run.commands.database import is_schema
from lightning_dpg.run.source import Reading, data_settings

if TYPE_CHECKING:
    from lightning_dpg.apps.book.book import Book
    from lightning_dpg.apps.book.state import DataSet, Grant
    from lightning_dpg.interfaces import Identity
    from lightning_dpg.privacy.budget import Budget


def init(*, token: Path | None = None, book: str | None = None) -> Outcome:
    """Make a book.

    Args:
        token: Make this file, without which no owner's command is let in.
        book: See :func:`lightning_dpg.apps.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget init --book sqlite:///book.db
    """
    with open_book(book, token, is_new=True) as place:
        url = place.url
    lines = [f"made the budget book {url}", "protect it like the data, and back it up"]
    if token:
        lines.append(f"made the token of its owner, {token}: keep it where no spender can read it")
    return Outcome(lines, {"book": url, "token": token})


def register(
    name: str,
    file: str,
    *,
    relation: Literal["edge", "transfer", "node", "edges_of_node", "local_graph"],
    epsilon: float,
    delta: float,
    reading: Reading = Reading(),
    column: Annotated[str | None, "--nodes.column"] = None,
    left: Annotated[str | None, "--nodes.left"] = None,
    right: Annotated[str | None, "--nodes.right"] = None,
    side_column: Annotated[str | None, "--nodes.side_column"] = None,
    max_degree: int | None = None,
    max_edges: int | None = None,
    row_epsilon: float | None = None,
    row_delta: float = 0.0,
    words: str = "",
    part_of: str = "",
    two_persons: bool = False,
    other_people: bool = False,
    token: Path | None = None,
    book: str | None = None,
) -> Outcome:
    """Register data, with the total of all their releases.

    Args:
        name: Name of the data in the book.
        file: The data, as of ``fit``: a file, a folder of a set, a database, its schema or a built-in name.
        relation: What the total protects.
        epsilon: Total of all releases.
        delta: Total of all releases.
        reading: See :class:`lightning_dpg.run.source.Reading`.
        column: See :class:`lightning_dpg.datamodules.nodes.Nodes`.
        left: See :class:`lightning_dpg.datamodules.nodes.Nodes`.
        right: See :class:`lightning_dpg.datamodules.nodes.Nodes`.
        side_column: See :class:`lightning_dpg.datamodules.nodes.Nodes`.
        max_degree: Edges of a node at most (public), for a node-level total.
        max_edges: Edges of one node that are hidden together (public), for the relation edges_of_node;
            runs have to hide as many.
        row_epsilon: Total of the private columns of the nodes, which is never added to the other
            one; it can be set later with ``budget rows``.
        row_delta: Total of the private columns of the nodes.
        words: Words of the owner.
        part_of: Group of which these data are a part. You declare: each record lies in one part, and
            public facts say in which.
        two_persons: Runs need grants, and grants need approval by a second person.
        other_people: Register data although more than half of their nodes are those of other
            registered data.
        token: File with the owner's token; by default ``$LIGHTNING_DPG_BOOK_TOKEN``.
        book: See :func:`lightning_dpg.apps.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget register crm crm.csv --relation edge --epsilon 2 --delta 0
    """
    _check_budget("a total", epsilon, delta, is_positive=True)
    if not name.strip():
        raise CommandError("a data set needs a name")
    if max_degree is not None and max_degree < 1:
        raise CommandError(f"--max-degree must be 1 or more, got {max_degree}")
    if row_epsilon is not None:
        _check_budget("a total of private columns", row_epsilon, row_delta, is_positive=True)
    nodes = {"column": column, "left": left, "right": right, "side_column": side_column}
    section = _section(file, reading, nodes)
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.apps.book import owner, sketch
    from lightning_dpg.apps.book.refusals import check_max_edges, in_common
    from lightning_dpg.apps.book.report import summary
    from lightning_dpg.apps.book.wording import SAME
    from lightning_dpg.privacy.budget import Budget
    from lightning_dpg.privacy.events import Relation

    protected = Relation(relation)
    check_max_edges(protected, max_edges)
    row_total = None if row_epsilon is None else Budget(row_epsilon, row_delta)
    with _opened_by_owner(book, token) as place:
        content = _identity(section)
        fingerprint, people = place.fingerprint(content), place.marks(content)
        same_people = [
            dataset
            for dataset in sketch.same_people(place.database, fingerprint, people, protected)
            if not part_of or dataset.part_of != part_of
        ]
        if same_people and not other_people:
            raise _same_people(
                same_people[0], in_common(same_people[0], fingerprint, content), name
            )
        if row_total is not None:
            same_columns = sketch.same_people(
                place.database, fingerprint, people, Relation.ATTRIBUTES
            )
            if same_columns and not other_people:
                raise _same_columns(name, same_columns[0])
            same_people += [each for each in same_columns if each not in same_people]
        owner.register(
            place,
            name,
            fingerprint,
            relation=protected,
            total=Budget(epsilon, delta),
            words=words,
            max_degree=max_degree,
            max_edges=max_edges,
            part_of=part_of,
            two_persons=two_persons,
            people=people,
            row_total=row_total,
        )
        record = place.data_set(name).record
        registered = summary(place, name)
    for dataset in same_people:
        print(
            f"warning: {in_common(dataset, fingerprint, content)}; if they are on the same people, their totals "
            "add up",
            file=sys.stderr,
        )
    budget = f"total epsilon {epsilon:g}, delta {delta:g}"
    lines = [
        f"registered {name}: relation {protected}, record {record}, {budget}",
        *([] if row_total is None else [_of_rows(row_total)]),
        *(
            f"{SAME[what]} are registered as {other['dataset']!r} for the relation "
            f"{other['relation']}: neither total has the runs of the other one"
            for what in SAME
            for other in registered[what]
        ),
    ]
    pairs = {other["relation"]: other["dataset"] for other in registered["same_edges"]}
    if {protected, *pairs} >= {Relation.EDGE, Relation.TRANSFER}:
        lines.append(
            "one total suffices: that of transfers takes runs that protect an edge, at the same price: "
            f"fit with --dataset {pairs.get(Relation.TRANSFER, name)}"
        )
    if two_persons:
        lines.append("no run is let in before a grant that two persons made: budget grant")
    values = {"dataset": name, "relation": relation, "record": record, "total": epsilon}
    return Outcome(
        lines,
        values
        | {
            "delta": delta,
            "row_total": row_epsilon,
            **{what: [other["dataset"] for other in registered[what]] for what in SAME},
            "same_people": [dataset.name for dataset in same_people],
        },
    )


def rows(
    name: str,
    *,
    epsilon: float,
    delta: float = 0.0,
    other_people: bool = False,
    token: Path | None = None,
    book: str | None = None,
) -> Outcome:
    """Set the total of the private columns of the nodes of registered data.

    Args:
        name: Data set.
        epsilon: Total of all reads of private columns; nothing raises it later.
        delta: Total of all reads of private columns.
        other_people: Set it although more than half of the nodes are those of other data with such a
            total.
        token: File with the owner's token; by default ``$LIGHTNING_DPG_BOOK_TOKEN``.
        book: See :func:`lightning_dpg.apps.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget rows crm --epsilon 3
    """
    _check_budget("a total of private columns", epsilon, delta, is_positive=True)
    # Start-up time: the imports bring PyTorch.
    from lightning_dpg.apps.book.owner import add_row_total
    from lightning_dpg.apps.book.sketch import same_people_as
    from lightning_dpg.privacy.budget import Budget
    from lightning_dpg.privacy.events import Relation

    total = Budget(epsilon, delta)
    with _opened_by_owner(book, token) as place:
        same_people = same_people_as(place.database, name, Relation.ATTRIBUTES)
        if same_people and not other_people:
            raise _same_columns(name, same_people[0])
        add_row_total(place, name, total)
    names = [dataset.name for dataset in same_people]
    values = {"dataset": name, "row_total": epsilon, "row_delta": delta, "same_people": names}
    return Outcome([f"{name}: {_of_rows(total)}"], values)


def _same_columns(name: str, dataset: "DataSet") -> CommandError:
    """Say how to go on with private columns of people who have a total of them elsewhere.

    Args:
        name: Name of the data set that is to get a total.
        dataset: The data set that has one.
    """
    return CommandError(
        f"{dataset.name!r} has a total of the private columns of the same nodes, or of more than half "
        f"of the smaller node set: {name!r} gets none\n"
        "the same people: set no second total, as those of one person's columns add up\n"
        "other people: --other-people"
    )


def _of_rows(total: "Budget") -> str:
    epsilon, delta = total
    return f"total of the private columns of one node: epsilon {epsilon:g}, delta {delta:g}"


def grant(
    name: str | None = None,
    *,
    to: str | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    row_epsilon: float | None = None,
    row_delta: float = 0.0,
    approve: int | None = None,
    role: Literal["spender", "owner"] | None = None,
    token: Path | None = None,
    book: str | None = None,
) -> Outcome:
    """Let a user spend part of a total; approve a grant; give a role.

    Args:
        name: Data set.
        to: User of the system, or of PostgreSQL.
        epsilon: Largest sum over all runs of the user.
        delta: Largest sum over all runs of the user.
        row_epsilon: Largest sum over all reads of private columns, which needs a grant of its own.
        row_delta: Largest sum over all reads of private columns.
        approve: Number of a grant of another owner, to approve it.
        role: Role of a user of PostgreSQL: spender or owner.
        token: File with the owner's token; by default ``$LIGHTNING_DPG_BOOK_TOKEN``.
        book: See :func:`lightning_dpg.apps.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget grant crm --to ann --epsilon 0.5
    """
    if sum(each is not None for each in (role, approve, epsilon, row_epsilon)) != 1:
        raise CommandError(
            "use one of:\nNAME --to USER --epsilon E [--delta D], or --row-epsilon E "
            "[--row-delta D]\n--approve NUMBER\n--role spender --to USER"
        )
    # Start-up time: the imports bring PyTorch.
    from lightning_dpg.apps.book import owner
    from lightning_dpg.apps.book.postgresql import give_role

    with _opened_by_owner(book, token) as place:
        if approve is not None:
            approved = owner.approve(place, approve)
            return Outcome([f"approved {_in_words(approved)}"], _values(approved))
        if to is None or (name is None) != (role is not None):
            raise CommandError("give --to USER, and the NAME of the data set unless with --role")
        if role is not None:
            give_role(place.database, role, to)
            line = f"{place.url}: {to} has the role {role}"
            return Outcome([line], {"to": to, "role": role})
        assert name is not None  # the only way that is left
        if epsilon is not None:
            return _grant(place, name, to, epsilon, delta)
        assert row_epsilon is not None
        return _grant(place, name, to, row_epsilon, row_delta, of_rows=True)


def _grant(
    book: "Book", name: str, to: str, epsilon: float, delta: float, *, of_rows: bool = False
) -> Outcome:
    # Start-up time: the imports bring PyTorch.
    from lightning_dpg.apps.book import owner
    from lightning_dpg.privacy.budget import Budget
    from lightning_dpg.privacy.events import Relation

    _check_budget("a grant", epsilon, delta)
    is_first = not book.grants(name)
    relation = Relation.ATTRIBUTES if of_rows else None
    new = owner.grant(book, name, to, Budget(epsilon, delta), relation)
    lines = [f"granted {_in_words(new)}"]
    has_two_persons = book.data_set(name).two_persons
    if is_first and not has_two_persons:
        lines.append("from now on, only users with a grant may spend on it")
    if has_two_persons:
        lines.append(f"it waits for another user: budget grant --approve {new.number}")
    return Outcome(lines, _values(new) | {"waits": has_two_persons})


def retract(
    run: int, *, reason: str, token: Path | None = None, book: str | None = None
) -> Outcome:
    """Mark the release of a run as retracted, which the book then says. What it has spent stays spent.

    Args:
        run: Number of the run, as in budget show.
        reason: Why it was retracted.
        token: File with the owner's token; by default ``$LIGHTNING_DPG_BOOK_TOKEN``.
        book: See :func:`lightning_dpg.apps.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget retract 3 --reason "names of nodes were not public"
    """
    if not (words := " ".join(reason.split())):
        raise CommandError("--reason needs a text")
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.apps.book import owner

    with _opened_by_owner(book, token) as place:
        owner.retract(place, run, words)
    line = f"run {run}: its release is retracted; tell everybody who has it"
    return Outcome([line], {"run": run, "reason": words})


def close(name: str, *, token: Path | None = None, book: str | None = None) -> Outcome:
    """Let no further run spend on a data set, for good.

    Args:
        name: Data set.
        token: File with the owner's token; by default ``$LIGHTNING_DPG_BOOK_TOKEN``.
        book: See :func:`lightning_dpg.apps.book.commands.open_book.open_book`.

    Example:
        python -m lightning_dpg budget close crm
    """
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.apps.book.owner import close_data_set

    with _opened_by_owner(book, token) as place:
        close_data_set(place, name)
        open_runs = [run.number for run in place.runs(name) if run.is_open]
    lines = [f"closed {name} for good: no further run may spend on it"]
    if open_runs:
        lines.append(f"these runs end normally: {', '.join(map(str, open_runs))}")
    return Outcome(lines, {"dataset": name, "open_runs": open_runs})


def _opened_by_owner(
    book: str | None, token: Path | None
) -> contextlib.AbstractContextManager["Book"]:
    """Open a book with the owner's token."""
    named = os.environ.get(VARIABLE)
    return open_book(book, token or (Path(named) if named else None))


def _same_people(dataset: "DataSet", common: str, name: str) -> CommandError:
    """Say how to go on with data on the people of another data set, before anything is registered.

    Args:
        dataset: The other data set.
        common: Which nodes they have in common.
        name: Name of the new data set.
    """
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.apps.book.refusals import SAME_PEOPLE

    lines = [
        f"{common}: {name!r} is not registered",
        SAME_PEOPLE.format(dataset.name),
        "other people: register with --other-people",
    ]
    if dataset.part_of:
        lines.insert(2, f"no edge in both: register with --part-of {dataset.part_of}")
    return CommandError("\n".join(lines))


def _values(grant: "Grant") -> dict[str, Any]:
    epsilon, delta = grant.budget
    budget = {"epsilon": epsilon, "delta": delta}
    of = {"dataset": grant.dataset, "relation": grant.relation.value, "to": grant.grantee}
    return {"grant": grant.number, **of, **budget}


def _in_words(grant: "Grant") -> str:
    epsilon, delta = grant.budget
    # "attributes" is the word of ledgers and of the log.
    what = ", private columns" * (grant.relation.value == "attributes")
    return (
        f"{grant.number}: {grant.grantee} on {grant.dataset}{what}, epsilon {epsilon:g}, "
        f"delta {delta:g}"
    )


def _check_budget(name: str, epsilon: float, delta: float, *, is_positive: bool = False) -> None:
    at_least = "above 0" if is_positive else "of 0 or more"
    if not 0 <= epsilon < math.inf or (is_positive and not epsilon) or not 0 <= delta < 1:
        raise CommandError(
            f"{name} needs a finite epsilon {at_least} and a delta in [0, 1), got "
            f"{epsilon:g} and {delta:g}"
        )


def _section(data: str, reading: Reading, nodes: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the section ``data`` of the data to register.

    Args:
        data: File, folder of a set, database or name.
        reading: How it is read.
        nodes: Further settings of the nodes of one graph.

    Raises:
        CommandError: If a setting is none of such data.
    """
    if is_schema(data) and not reading.given():
        return {"class_path": "DatabaseDataModule", "init_args": {"schema": data}}
    section = data_settings(data, reading.given())
    given = {f"nodes.{name}": value for name, value in nodes.items() if value is not None}
    if given and section["class_path"] != "EdgeListDataModule":
        raise CommandError(f"--{next(iter(given))} belongs to a graph in a file, {data} is none")
    section["init_args"] |= given
    return section


def _identity(section: Mapping[str, Any]) -> "Identity":
    """Read the data of a section, and return their content."""
    # Start-up time: the import brings PyTorch.
    from lightning_dpg.run.data import set_up

    try:
        content: Identity = set_up(section).identity()
    except Refusal as error:
        text = str(error).replace("--data.nodes.", "--nodes.")  # options of this command
        raise CommandError(text) from error
    return content
