"""Actions of owners: grants, approvals, closed data sets, roles, and the token."""

from pathlib import Path

from lightning_dpg.book import owner_token, schema
from lightning_dpg.book.database import Database
from lightning_dpg.book.grants import Grant, check_approval, grants
from lightning_dpg.book.identity import Fingerprint
from lightning_dpg.book.log import lines_of
from lightning_dpg.book.refusals import check_open
from lightning_dpg.book.roles import give_role
from lightning_dpg.book.rows import DataSet, data_set, data_sets
from lightning_dpg.book.sketch import Marks, overlap, unseal
from lightning_dpg.privacy.budget import Budget

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

    def grant(self, name: str, grantee: str, budget: Budget) -> Grant:
        """Let a user spend part of a total; it replaces an earlier grant to the user.

        Args:
            name: Data set.
            grantee: User of the system, or of the server on PostgreSQL.
            budget: Largest sum over all runs of the user.

        Raises:
            BookError: If the data set is closed, or if this user may not grant.
        """
        with self.database.write():
            check_open(data_set(self.database, name))
            self._record_as_owner(
                "grant",
                number=1 + max((each.number for each in self.grants()), default=0),
                dataset=name,
                grantee=grantee,
                epsilon=budget.epsilon,
                delta=budget.delta,
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

    def same_people(self, data: Fingerprint, people: Marks, relation: str) -> list[DataSet]:
        """Data sets on the same people; the one with most common nodes comes first.

        They have this relation, other edges, and more than half of the nodes of the smaller node set.
        Sketches stand in the log only, in the line that registers a data set. Lines of earlier
        versions have no sketch: for them, only equal node sets are found.

        Args:
            data: Fingerprint of data.
            people: Sketch of the names of their nodes.
            relation: Neighboring relation of a run or of a total.
        """
        key = schema.secret(self.database)
        sketches = {
            line.facts["name"]: unseal(key, line.facts["sketch"])
            for line in lines_of(self.database, "register")
            if "sketch" in line.facts
        }
        shared = []
        for dataset in data_sets(self.database):
            if dataset.relation != relation or dataset.edges == data.edges:
                continue
            is_equal = dataset.nodes == data.nodes
            sketch = sketches.get(dataset.name, people[:0])
            if (share := 1.0 if is_equal else overlap(sketch, people)) > _SAME_PEOPLE:
                shared.append((not is_equal, -share, dataset))
        return [dataset for *_, dataset in sorted(shared, key=lambda each: each[:2])]

    def _record_as_owner(self, kind: str, **facts: object) -> None:
        """Append a line that an owner writes; call it inside of a write."""
        facts["user"] = self.database.user()
        owner_token.record_sealed(self.database, self._token, kind, facts)
