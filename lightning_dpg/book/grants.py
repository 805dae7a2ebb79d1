"""Grants: how much of the total of a data set each user may spend.

As soon as a data set has a grant, only users with grants may spend on it. A further grant to the same
user replaces the earlier one, so that a script that runs twice grants nothing twice, and so that a
grant of nothing takes back what is not spent. What a run counts is what the sum of
:mod:`lightning_dpg.book.filter` counts. The total stays the ceiling.

Where the data set asks for two persons, all runs need grants from its registration on, and a grant
pays for nothing until another user than the one who made it has approved it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from lightning_dpg.book.database import Database
from lightning_dpg.book.filter import Spending
from lightning_dpg.book.rows import DataSet, Run, data_set, spendings
from lightning_dpg.book.wording import minute
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.budget import Budget

_ROUNDING = 1 + 1e-12  # shares of a grant add up to it but for the last digit


class Grant(NamedTuple):
    """Budget of one user for a data set.

    Attributes:
        number: Its number in the book.
        dataset: Name of the data set.
        grantee: User who may spend it.
        budget: Largest sum over all runs of that user.
        made: When it was made, in UTC.
        made_by: User who made it.
        approved: When a second person approved it.
        approved_by: That person.
    """

    number: int
    dataset: str
    grantee: str
    budget: Budget
    made: str
    made_by: str
    approved: str | None
    approved_by: str | None


def grants(database: Database, dataset: str | None = None) -> list[Grant]:
    """Grants on a data set, or on all, in the order of their numbers."""
    found = database.rows("SELECT * FROM book_grants ORDER BY number")
    return [
        Grant(number, name, grantee, Budget(epsilon, delta), *rest)
        for number, name, grantee, epsilon, delta, *rest in found
        if dataset in (None, name)
    ]


def pays(known: DataSet, grant: Grant) -> bool:
    """Whether a grant is in force, or was until a later one replaced it."""
    return not known.two_persons or grant.approved is not None


def granted(known: DataSet, made: Sequence[Grant]) -> dict[str, Budget]:
    """Budget of each user: the last grant in force.

    Args:
        known: The data set.
        made: Its grants.
    """
    return {grant.grantee: grant.budget for grant in made if pays(known, grant)}


def states(known: DataSet, made: Sequence[Grant]) -> list[str]:
    """Say of each grant whether it is in force, waits for approval, or was replaced.

    Args:
        known: The data set.
        made: Its grants.
    """
    last = {grant.grantee: grant.number for grant in made if pays(known, grant)}
    found = []
    for grant in made:
        if last.get(grant.grantee, 0) > grant.number:
            found.append("replaced")
        else:
            found.append("in force" if pays(known, grant) else "waits for approval")
    return found


def check_approval(database: Database, number: int, user: str) -> DataSet:
    """Refuse to approve a grant that needs no approval by this user; return its data set.

    Args:
        database: The book.
        number: Number of the grant.
        user: User who approves.

    Raises:
        BookError: If the user made it, or if there is nothing to approve.
    """
    made = {grant.number: grant for grant in grants(database)}
    if number not in made:
        raise BookError(f"{database.url}: no grant {number}")
    grant = made[number]
    known = data_set(database, grant.dataset)
    if not known.two_persons:
        raise BookError(f"grant {number}: {grant.dataset} asks for one person only: it is in force")
    if grant.approved is not None:
        raise BookError(
            f"grant {number}: approved by {grant.approved_by} at {minute(grant.approved)} UTC"
        )
    if grant.made_by == user:
        raise BookError(f"grant {number}: {user} made it, and another user has to approve it")
    later = [other for other in grants(database, grant.dataset) if other.number > number]
    if any(other.grantee == grant.grantee and other.approved for other in later):
        raise BookError(f"grant {number}: a later grant to {grant.grantee} has replaced it")
    return known


def spent_by(earlier: Sequence[Run], user: str) -> dict[int, Spending]:
    """Costs against a user's grant, by family.

    A family in which several users have runs counts in full for each of them.

    Args:
        earlier: Runs on the data set.
        user: The user.
    """
    families = {run.family for run in earlier if run.spender == user}
    return {family: each for family, each in spendings(earlier).items() if family in families}


def left_of(budget: Budget, counted: Sequence[Spending]) -> Budget:
    """What is left of a grant."""
    costs = [each.cost for each in counted]
    epsilon = budget.epsilon - math.fsum(cost.epsilon for cost in costs)
    return Budget(max(0.0, epsilon), max(0.0, budget.delta - math.fsum(c.delta for c in costs)))


def check_grant(
    known: DataSet,
    made: Sequence[Grant],
    earlier: Sequence[Run],
    asked: Spending,
    family: int | None,
    user: str,
) -> None:
    """Refuse a run that the grants of its user do not pay for.

    Args:
        known: The data set.
        made: Its grants.
        earlier: Its runs.
        asked: What the run would count.
        family: Family that it joins, if any.
        user: User of the run.

    Raises:
        BookError: If there are grants, and the user has none or not enough.
    """
    if not made and not known.two_persons:
        return
    budget = granted(known, made).get(user)
    if budget is None:
        waiting = [grant.number for grant in made if grant.grantee == user]
        raise BookError(
            f"{known.name}: only users with a grant may spend on it, and {user} has none"
            + (f"\ngrant {waiting[-1]} waits for approval by a second person" if waiting else "")
            + f"\nan owner runs python -m lightning_dpg budget grant {known.name} --to {user} ..."
        )
    others = [each for key, each in spent_by(earlier, user).items() if key != family]
    own = None if family is None else spendings(earlier).get(family)
    whole = own._replace(entries=[*own.entries, *asked.entries]) if own else asked
    left, cost = left_of(budget, others), whole.cost
    if not _at_most(cost, left, budget):
        stated = down(left.epsilon)
        is_left = stated != "0"
        raise BookError(
            f"{known.name}: what is left of the grant of {user} does not pay for epsilon "
            f"{cost.epsilon:g}, delta {cost.delta:g}\n"
            f"granted: epsilon {budget.epsilon:g}, delta {budget.delta:g}; "
            + (
                f"left: epsilon {stated}, delta {left.delta:g}\n"
                if is_left
                else "nothing is left\n"
            )
            + "set privacy.epsilon and privacy.delta to what is left or less, or " * is_left
            + "ask an owner for another grant"
        )


def _at_most(cost: Budget, left: Budget, whole: Budget) -> bool:
    """Whether a cost fits what is left, up to the rounding of the whole."""
    room = _ROUNDING - 1
    return (
        cost.epsilon <= left.epsilon + room * whole.epsilon
        and cost.delta <= left.delta + room * whole.delta
    )


def down(value: float) -> str:
    """A number with four digits after the point, rounded down."""
    return f"{int(value * 1e4) / 1e4:g}"
