"""Grants: how much of a total of a data set each user may spend.

As soon as a data set has a grant, only users with grants may spend on it, on each of its totals by a
grant of its own. A new grant to a user replaces the earlier one on this total. So a script that runs twice grants nothing twice, and a grant of epsilon 0
takes back the unspent rest. A run counts against a grant as it counts in the sum of
:mod:`lightning_dpg.apps.book.filter`. Grants never raise the total.

If a data set asks for two persons, all runs need grants, and each grant has to be approved by a second
user before it pays for anything.
"""

import math
from collections.abc import Sequence

from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.filter import Spending
from lightning_dpg.apps.book.state import DataSet, Grant, Run, spendings
from lightning_dpg.apps.book.store import data_set, state_of
from lightning_dpg.apps.book.wording import minute
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation

_ROUNDING = 1 + 1e-12  # shares of a grant add up to it but for the last digit


def pays(dataset: DataSet, grant: Grant) -> bool:
    """Return whether a grant is in force, or was until a later one replaced it."""
    return not dataset.two_persons or grant.approved is not None


def budgets_in_force(dataset: DataSet, all_grants: Sequence[Grant]) -> dict[str, Budget]:
    """Budget of each user: the last grant in force.

    Args:
        dataset: The data set, as one total sees it.
        all_grants: Its grants.
    """
    own = [grant for grant in all_grants if grant.relation is dataset.relation]
    return {grant.grantee: grant.budget for grant in own if pays(dataset, grant)}


def states(dataset: DataSet, all_grants: Sequence[Grant]) -> list[str]:
    """Say of each grant whether it is in force, waits for approval, or was replaced.

    Args:
        dataset: The data set.
        all_grants: Its grants on one total.
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
    grants = state_of(database).grants
    if number not in grants:
        raise BookError(f"{database.url}: no grant {number}")
    grant = grants[number]
    dataset = data_set(database, grant.dataset)
    if not dataset.two_persons:
        raise BookError(f"grant {number}: {grant.dataset} asks for one person only: it is in force")
    if grant.approved is not None:
        raise BookError(
            f"grant {number}: approved by {grant.approved_by} at {minute(grant.approved)} UTC"
        )
    if grant.made_by == user:
        raise BookError(f"grant {number}: {user} made it, and another user has to approve it")
    to_same = (grant.dataset, grant.grantee, grant.relation)
    later = [other for other in grants.values() if other.number > number and other.approved]
    if any((other.dataset, other.grantee, other.relation) == to_same for other in later):
        raise BookError(f"grant {number}: a later grant to {grant.grantee} has replaced it")
    return dataset


def spent_by(earlier: Sequence[Run], user: str, relation: Relation) -> dict[int, Spending]:
    """Costs against a user's grant, by family.

    A family in which several users have runs counts in full for each of them.

    Args:
        earlier: Runs on the data set.
        user: The user.
        relation: Relation of the total.
    """
    families = {run.family for run in earlier if run.spender == user}
    costs = spendings(earlier, relation)
    return {family: each for family, each in costs.items() if family in families}


def left_of(budget: Budget, spent: Sequence[Spending]) -> Budget:
    """Budget that is left of a grant."""
    costs = [each.cost for each in spent]
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
        dataset: The data set, as one total sees it.
        all_grants: Its grants.
        earlier: Its runs.
        spending: Cost of the run against this total.
        family: Family that it joins, if any.
        user: User of the run.

    Raises:
        BookError: If there are grants, and the user has none or not enough.
    """
    if not all_grants and not dataset.two_persons:
        return
    of_rows = dataset.relation is Relation.ATTRIBUTES
    what, on_rows, prefix = "it", "", ""
    if of_rows:
        what, on_rows, prefix = "its private columns", " on private columns", "row-"
    budget = budgets_in_force(dataset, all_grants).get(user)
    if budget is None:
        own_grants = [grant for grant in all_grants if grant.relation is dataset.relation]
        waiting = [grant.number for grant in own_grants if grant.grantee == user]
        raise BookError(
            f"{dataset.name}: only users with a grant may spend on {what}, and {user} has none"
            + (f"\ngrant {waiting[-1]} waits for approval by a second person" if waiting else "")
            + f"\nan owner runs python -m lightning_dpg budget grant {dataset.name} --to {user} "
            f"--{prefix}epsilon E"
        )
    spent = spent_by(earlier, user, dataset.relation)
    others = [each for key, each in spent.items() if key != family]
    own = None if family is None else spendings(earlier, dataset.relation).get(family)
    whole = own._replace(entries=[*own.entries, *spending.entries]) if own else spending
    left, cost = left_of(budget, others), whole.cost
    if not _at_most(cost, left, budget):
        epsilon_left = down(left.epsilon)
        is_left = epsilon_left != "0"
        settings = "privacy.row_epsilon" if of_rows else "privacy.epsilon and privacy.delta"
        raise BookError(
            f"{dataset.name}: what is left of the grant of {user}{on_rows} does not pay for epsilon "
            f"{cost.epsilon:g}, delta {cost.delta:g}\n"
            f"granted: epsilon {budget.epsilon:g}, delta {budget.delta:g}; "
            + (
                f"left: epsilon {epsilon_left}, delta {left.delta:g}\n"
                if is_left
                else "nothing is left\n"
            )
            + f"set {settings} to what is left or less, or " * is_left
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
