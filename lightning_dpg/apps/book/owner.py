"""Actions of owners: totals of private columns, grants, approvals, closed data sets, roles, the token."""

from pathlib import Path
from typing import Literal, get_args

from lightning_dpg.apps.book import owner_token, schema
from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.grants import Grant, check_approval, grants
from lightning_dpg.apps.book.identity import Fingerprint, protected_unit
from lightning_dpg.apps.book.log import lines_of
from lightning_dpg.apps.book.postgresql import PostgreSQL
from lightning_dpg.apps.book.refusals import check_has_total, check_open, check_row_total
from lightning_dpg.apps.book.rows import DataSet, data_set, data_sets, names_of_rows, same_edges
from lightning_dpg.apps.book.sketch import NOBODY, Marks, overlap, unseal
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation

_SAME_PEOPLE = 0.5
"""Share of the smaller of two node sets above which both are taken for the same people."""


class OwnerSide:
    """Actions of owners, except the registration of data.

    Args:
        database: The book.
        token: File with the owner's token, which a book that was made with one asks for.
    """

    def __init__(self, database: Database, token: Path | None) -> None:
        self.database = database
        self._token = token

    def add_row_total(self, name: str, total: Budget, content: str = "") -> None:
        """Set the total of the private columns of the nodes of a data set, which nothing raises later.

        Args:
            name: Data set.
            total: Total of all reads of private columns.
            content: Fingerprint of the columns; if it is left out, the first run shows it.

        Raises:
            BookError: If there is such a total, if these columns have one in another data set, if the
                data set is closed, or if this user may not set it.
        """
        with self.database.write():
            check_open(data_set(self.database, name))
            self._record_row_total(name, total, content)

    def _record_row_total(self, name: str, total: Budget, content: str) -> None:
        """Append the total of private columns; call it inside of a write."""
        check_row_total(data_set(self.database, name), names_of_rows(self.database, content))
        self._record_as_owner(
            "total",
            dataset=name,
            relation=Relation.ATTRIBUTES.value,
            record=protected_unit(Relation.ATTRIBUTES, ""),
            epsilon=total.epsilon,
            delta=total.delta,
            content=content,
        )

    def grant(
        self, name: str, grantee: str, budget: Budget, relation: Relation | None = None
    ) -> Grant:
        """Let a user spend part of a total; it replaces an earlier grant to the user.

        Args:
            name: Data set.
            grantee: User of the system, or of the server on PostgreSQL.
            budget: Largest sum over all runs of the user.
            relation: Relation of the total; by default the one of the registration.

        Raises:
            BookError: If the data set is closed, has no such total, or if this user may not grant.
        """
        with self.database.write():
            dataset = data_set(self.database, name)
            check_open(dataset)
            of = dataset.relation if relation is None else relation
            check_has_total(dataset, of)
            self._record_as_owner(
                "grant",
                number=1 + max((each.number for each in self.grants()), default=0),
                dataset=name,
                grantee=grantee,
                epsilon=budget.epsilon,
                delta=budget.delta,
                relation=of.value,
            )
            return self.grants(name)[-1]

    def approve(self, number: int) -> Grant:
        """Approve the grant of another person.

        Args:
            number: Number of the grant.

        Raises:
            BookError: If this user made it, if there is nothing to approve, or if the data set is closed.
        """
        with self.database.write():
            check_open(check_approval(self.database, number, self.database.user()))
            self._record_as_owner("approve", number=number)
            return next(each for each in self.grants() if each.number == number)

    def close_data_set(self, name: str) -> None:
        """Let no further run spend on a data set, for good; open runs end normally.

        Raises:
            BookError: If it is closed already, or if this user may not close it.
        """
        with self.database.write():
            check_open(data_set(self.database, name))
            self._record_as_owner("close_data_set", name=name)

    def give_role(self, role: str, user: str) -> None:
        """Let a user of PostgreSQL spend on this book, or own it.

        Args:
            role: ``spender`` or ``owner``.
            user: User of the server.

        Raises:
            BookError: If the server refuses it, or if the book is a file.
        """
        give_role(self.database, role, user)

    def grants(self, dataset: str | None = None) -> list[Grant]:
        """Grants on a data set, or on all."""
        return grants(self.database, dataset)

    def owner_faults(self) -> list[str]:
        """Say which lines of owners were written without the token.

        Raises:
            BookError: If no token was given, or that of another book.
        """
        return owner_token.owner_faults(self.database, self._token)

    def same_people(self, data: Fingerprint, people: Marks, *relations: str) -> list[DataSet]:
        """Data sets on the same people; the one with most common nodes comes first.

        They have a total of one of the relations, other edges, and more than half of the nodes of the
        smaller node set. Private columns are of people, whatever links them: for the relation
        ``attributes``, edges may be the same.
        Sketches stand in the log only, in the line that registers a data set. Lines of earlier
        versions have no sketch: for them, only equal node sets are found.

        Args:
            data: Fingerprint of data.
            people: Sketch of the names of their nodes.
            relations: Neighboring relations of a run or of totals.
        """
        sketches, shared = self._sketches(), []
        for dataset in data_sets(self.database):
            is_known = dataset.edges == data.edges and Relation.ATTRIBUTES not in relations
            if is_known or not {*relations} & {*dataset.relations}:
                continue
            is_equal = dataset.nodes == data.nodes
            sketch = sketches.get(dataset.name, people[:0])
            if (share := 1.0 if is_equal else overlap(sketch, people)) > _SAME_PEOPLE:
                shared.append((not is_equal, -share, dataset))
        return [dataset for *_, dataset in sorted(shared, key=lambda each: each[:2])]

    def same_people_as(self, name: str) -> list[DataSet]:
        """Other data sets with a total of private columns, on the people of a data set.

        Args:
            name: Data set.
        """
        dataset = data_set(self.database, name)
        people = self._sketches().get(name, NOBODY)
        known = Fingerprint(dataset.edges, dataset.nodes)
        found = self.same_people(known, people, Relation.ATTRIBUTES)
        return [each for each in found if each.name != name]

    def same_nodes(self, name: str) -> list[DataSet]:
        """Other data sets on the people of a data set, with other edges and another relation of edges.

        Args:
            name: Data set.
        """
        dataset = data_set(self.database, name)
        others = {*Relation} - {dataset.relation, Relation.ATTRIBUTES}
        if others.isdisjoint(each.relation for each in data_sets(self.database)):
            return []
        people = self._sketches().get(name, NOBODY)
        known = [each.name for each in same_edges(self.database, name)]
        found = self.same_people(Fingerprint(dataset.edges, dataset.nodes), people, *others)
        return [each for each in found if each.name not in known]

    def _sketches(self) -> dict[str, Marks]:
        """Sketches of the names of nodes, by data set."""
        key = schema.secret(self.database)
        return {
            line.facts["name"]: unseal(key, line.facts["sketch"])
            for line in lines_of(self.database, "register")
            if "sketch" in line.facts
        }

    def _record_as_owner(self, kind: str, **facts: object) -> None:
        """Append a line that an owner writes; call it inside of a write."""
        facts["user"] = self.database.user()
        owner_token.record_sealed(self.database, self._token, kind, facts)


Role = Literal["spender", "owner"]

_SPENDER = (
    "GRANT INSERT ON book_log, book_runs, book_budgets, book_entries",
    "GRANT UPDATE (closed, outcome, release) ON book_runs",
    "GRANT UPDATE (booked) ON book_entries",
    "GRANT UPDATE (rule) ON book_datasets, book_totals",
)
_OWNER = (
    *_SPENDER,
    "GRANT INSERT ON book_datasets, book_totals, book_grants",
    "GRANT UPDATE (closed, closed_by) ON book_datasets",
    "GRANT UPDATE (approved, approved_by) ON book_grants",
)
_POLICIES = (
    "ALTER TABLE book_log ENABLE ROW LEVEL SECURITY",
    "DROP POLICY IF EXISTS book_read ON book_log",
    "CREATE POLICY book_read ON book_log FOR SELECT USING (true)",
    "DROP POLICY IF EXISTS book_append ON book_log",
    # Lines that book and close belong to a run, whose line of reservation names the user.
    """CREATE POLICY book_append ON book_log FOR INSERT WITH CHECK (
        kind IN ('book', 'close') OR body::json->>'user' = session_user
        AND (kind IN ('reserve', 'measure') OR has_table_privilege('book_grants', 'INSERT')))""",
)


def give_role(database: Database, role: str, user: str) -> None:
    """Let a user of the server spend on a book, or own it.

    Args:
        database: The book, opened by the user who made it.
        role: ``spender`` or ``owner``.
        user: User of the server.

    Raises:
        BookError: If the server refuses it, or if the book is a file.
    """
    if role not in get_args(Role):
        raise BookError(f"a role is one of {', '.join(get_args(Role))}, got {role!r}")
    if not isinstance(database, PostgreSQL):
        raise BookError(
            f"{database.url}: roles are permissions of PostgreSQL, and a file has none\n"
            "make the book with a token of its owner: budget init --token FILE"
        )
    name = user.replace('"', '""')
    of_book = ", ".join(sorted(table for table in database.tables() if table.startswith("book_")))
    permissions = (f"GRANT SELECT ON {of_book}", *(_OWNER if role == "owner" else _SPENDER))
    with database.write():
        for statement in (*_POLICIES, *(f'{each} TO "{name}"' for each in permissions)):
            database.rows(statement)
