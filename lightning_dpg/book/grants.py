"""Grants: how much of the total of a data set each user may spend.

As soon as a data set has a grant, only users with grants may spend on it. A new grant to a user
replaces the earlier one. So a script that runs twice grants nothing twice, and a grant of epsilon 0
takes back the unspent rest. A run counts against a grant as it counts in the sum of
:mod:`lightning_dpg.book.filter`. Grants never raise the total.

If a data set asks for two persons, all runs need grants, and each grant has to be approved by a second
user before it pays for anything.
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
    rows = database.rows("SELECT * FROM book_grants ORDER BY number")
    return [
        Grant(number, name, grantee, Budget(epsilon, delta), *rest)
        for number, name, grantee, epsilon, delta, *rest in rows
        if dataset in (None, name)
    ]


def pays(dataset: DataSet, grant: Grant) -> bool:
    """Return whether a grant is in force, or was until a later one replaced it."""
    return not dataset.two_persons or grant.approved is not None


def budgets_in_force(dataset: DataSet, all_grants: Sequence[Grant]) -> dict[str, Budget]:
    """Budget of each user: the last grant in force.

    Args:
        dataset: The data set.
        all_grants: Its grants.
    """
    return {grant.grantee: grant.budget for grant in all_grants if pays(dataset, grant)}


def states(dataset: DataSet, all_grants: Sequence[Grant]) -> list[str]:
    """Say of each grant whether it is in force, waits for approval, or was replaced.

    Args:
        dataset: The data set.
        all_grants: Its grants.
    """
    last = {grant.grantee: grant.number for grant in all_grants if pays(dataset, grant)}
    texts = []
    for grant in all_grants:
        if last.get(grant.grantee, 0) > grant.number:
            texts.append("replaced")
        else:
            texts.append("in force" if pays(dataset, grant) else "waits for approval")
    return texts


def check_approval(database: Database, number: int, user: str) -> DataSet:
    """Refuse to approve a grant that needs no approval by this user; return its data set.

    Args:
        database: The book.
        number: Number of the grant.
        user: User who approves.

    Raises:
        BookError: If the user made it, or if there is nothing to approve.
    """
    by_number = {grant.number: grant for grant in grants(database)}
    if number not in by_number:
        raise BookError(f"{database.url}: no grant {number}")
    grant = by_number[number]
    dataset = data_set(database, grant.dataset)
    if not dataset.two_persons:
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
    return dataset


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
    """Budget that is left of a grant."""
    costs = [each.cost for each in counted]
    epsilon = budget.epsilon - math.fsum(cost.epsilon for cost in costs)
    return Budget(max(0.0, epsilon), max(0.0, budget.delta - math.fsum(c.delta for c in costs)))


def check_grant(
    dataset: DataSet,
    all_grants: Sequence[Grant],
    earlier: Sequence[Run],
    spending: Spending,
    family: int | None,
    user: str,
) -> None:
    """Refuse a run if the grant of its user does not pay for it.

    Args:
        dataset: The data set.
        all_grants: Its grants.
        earlier: Its runs.
        spending: Cost of the run.
        family: Family that it joins, if any.
        user: User of the run.

    Raises:
        BookError: If there are grants, and the user has none or not enough.
    """
    if not all_grants and not dataset.two_persons:
        return
    budget = budgets_in_force(dataset, all_grants).get(user)
    if budget is None:
        waiting = [grant.number for grant in all_grants if grant.grantee == user]
        raise BookError(
            f"{dataset.name}: only users with a grant may spend on it, and {user} has none"
            + (f"\ngrant {waiting[-1]} waits for approval by a second person" if waiting else "")
            + f"\nan owner runs python -m lightning_dpg budget grant {dataset.name} --to {user} ..."
        )
    others = [each for key, each in spent_by(earlier, user).items() if key != family]
    own = None if family is None else spendings(earlier).get(family)
    whole = own._replace(entries=[*own.entries, *spending.entries]) if own else spending
    left, cost = left_of(budget, others), whole.cost
    if not _at_most(cost, left, budget):
        epsilon_left = down(left.epsilon)
        is_left = epsilon_left != "0"
        raise BookError(
            f"{dataset.name}: what is left of the grant of {user} does not pay for epsilon "
            f"{cost.epsilon:g}, delta {cost.delta:g}\n"
            f"granted: epsilon {budget.epsilon:g}, delta {budget.delta:g}; "
            + (
                f"left: epsilon {epsilon_left}, delta {left.delta:g}\n"
                if is_left
                else "nothing is left\n"
            )
            + "set privacy.epsilon and privacy.delta to what is left or less, or " * is_left
            + "ask an owner for another grant"
        )


def _at_most(cost: Budget, left: Budget, whole: Budget) -> bool:
    """Return whether a cost fits the rest, up to the rounding of the whole."""
    room = _ROUNDING - 1
    return (
        cost.epsilon <= left.epsilon + room * whole.epsilon
        and cost.delta <= left.delta + room * whole.delta
    )


def down(value: float) -> str:
    """A number with four digits after the point, rounded down."""
    return f"{int(value * 1e4) / 1e4:g}"
