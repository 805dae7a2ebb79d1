"""Actions of owners: data and their totals, grants, approvals, retracted releases, closed data sets.

Each appends a line, with the seal of the owner's token if the book was made with one.
"""

from lightning_dpg.apps.book import owner_token
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.grants import check_approval
from lightning_dpg.apps.book.identity import Fingerprint, key_digest, protected_unit
from lightning_dpg.apps.book.refusals import (
    check_has_total,
    check_max_edges,
    check_open,
    check_part,
    check_row_total,
)
from lightning_dpg.apps.book.sketch import Marks, seal
from lightning_dpg.apps.book.state import Grant
from lightning_dpg.apps.book.store import secret
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation


def register(
    book: Book,
    name: str,
    data: Fingerprint,
    *,
    relation: Relation,
    total: Budget,
    words: str = "",
    max_degree: int | None = None,
    max_edges: int | None = None,
    part_of: str = "",
    two_persons: bool = False,
    people: Marks | None = None,
    row_total: Budget | None = None,
) -> None:
    """Register data under a name, with the total that all of their releases may spend.

    Args:
        book: The book.
        name: New name.
        data: Fingerprint of the data.
        relation: Neighboring relation of the total.
        total: Total of all releases.
        words: The owner's words.
        max_degree: Largest number of edges of a node (public).
        max_edges: Number D of edges of one node that are hidden together (public), for the
            relation ``edges_of_node`` only. Runs with another number are refused.
        part_of: Group of data sets that are disjoint, as the owner declares.
        two_persons: Whether runs need grants that a second person approved.
        people: Sketch of the names of the nodes, by which later data on the same people are found.
        row_total: Total of the private columns of nodes, see :func:`add_row_total`.

    Raises:
        BookError: If the name is taken, or if the data have another name and this relation.
    """
    check_max_edges(relation, max_edges)
    record = protected_unit(relation, data.record, max_edges)
    with book.database.write():
        check_part(book.data_sets(), name, part_of, record, relation, max_edges)
        for dataset in book.data_sets():
            if dataset.name == name:
                raise BookError(f"{book.url}: there is a data set {name!r} already")
            if dataset.relation is relation and dataset.name in book.names_of(data.edges):
                raise BookError(
                    f"{book.url}: these data are registered as {dataset.name!r} already, and one "
                    f"total covers all of their releases\nfit with --dataset {dataset.name}"
                )
        key = secret(book.database)
        sketch = {} if people is None else {"sketch": seal(key, people)}
        _append(
            book,
            "register",
            name=name,
            relation=relation.value,
            record=record,
            words=words,
            epsilon=total.epsilon,
            delta=total.delta,
            max_degree=max_degree,
            edges=data.edges,
            nodes=data.nodes,
            key=key_digest(key),
            part_of=part_of,
            two_persons=two_persons,
            **({} if max_edges is None else {"max_edges": max_edges}),
            **sketch,
            **({"links": data.links} if data.links else {}),
        )
        if row_total is not None:
            _append_row_total(book, name, row_total, data.rows)


def add_row_total(book: Book, name: str, total: Budget, content: str = "") -> None:
    """Set the total of the private columns of the nodes of a data set, which nothing raises later.

    Args:
        book: The book.
        name: Data set.
        total: Total of all reads of private columns.
        content: Fingerprint of the columns; if it is left out, the first run shows it.

    Raises:
        BookError: If there is such a total, if these columns have one in another data set, if the
            data set is closed, or if this user may not set it.
    """
    with book.database.write():
        check_open(book.data_set(name))
        _append_row_total(book, name, total, content)


def _append_row_total(book: Book, name: str, total: Budget, content: str) -> None:
    """Append the total of private columns; call it inside of a write."""
    check_row_total(book.data_set(name), book.names_of_rows(content))
    _append(
        book,
        "total",
        dataset=name,
        relation=Relation.ATTRIBUTES.value,
        record=protected_unit(Relation.ATTRIBUTES, ""),
        epsilon=total.epsilon,
        delta=total.delta,
        content=content,
    )


def grant(
    book: Book, name: str, grantee: str, budget: Budget, relation: Relation | None = None
) -> Grant:
    """Let a user spend part of a total; it replaces an earlier grant to the user.

    Args:
        book: The book.
        name: Data set.
        grantee: User of the system, or of the server on PostgreSQL.
        budget: Largest sum over all runs of the user.
        relation: Relation of the total; by default the one of the registration.

    Raises:
        BookError: If the data set is closed, has no such total, or if this user may not grant.
    """
    with book.database.write():
        dataset = book.data_set(name)
        check_open(dataset)
        of = dataset.relation if relation is None else relation
        check_has_total(dataset, of)
        _append(
            book,
            "grant",
            number=1 + max((each.number for each in book.grants()), default=0),
            dataset=name,
            grantee=grantee,
            epsilon=budget.epsilon,
            delta=budget.delta,
            relation=of.value,
        )
        return book.grants(name)[-1]


def approve(book: Book, number: int) -> Grant:
    """Approve the grant of another person.

    Args:
        book: The book.
        number: Number of the grant.

    Raises:
        BookError: If this user made it, if there is nothing to approve, or if the data set is closed.
    """
    with book.database.write():
        check_open(check_approval(book.database, number, book.database.user()))
        _append(book, "approve", number=number)
        return next(each for each in book.grants() if each.number == number)


def close_data_set(book: Book, name: str) -> None:
    """Let no further run spend on a data set, for good; open runs end normally.

    Raises:
        BookError: If it is closed already, or if this user may not close it.
    """
    with book.database.write():
        check_open(book.data_set(name))
        _append(book, "close_data_set", name=name)


def retract(book: Book, number: int, reason: str) -> None:
    """Mark the release of a run as retracted; what it has spent stays spent.

    Args:
        book: The book.
        number: Number of the run.
        reason: Why, in the owner's words.

    Raises:
        Refusal: If the book has no such run, if it is open, or if it was retracted before.
        BookError: If this user may not retract it.
    """
    with book.database.write():
        _append(book, "retract", run=number, reason=reason)


def _append(book: Book, kind: str, **facts: object) -> None:
    """Append a line that an owner writes; call it inside of a write."""
    facts["user"] = book.database.user()
    owner_token.append_sealed(book.database, book.token, kind, facts)
