"""The largest budget that a refusal names is let in, and the next larger one is not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_dpg.apps.book.request import (
    Request,
    charge_of,
    largest_epsilon,
    rule_of,
    spending_of,
)
from lightning_dpg.apps.book.state import DataSet, Planned, Run
from lightning_dpg.privacy.budget import Budget, BudgetTooSmall
from lightning_dpg.privacy.calibration import calibrate_gaussian
from lightning_dpg.privacy.events import Relation
from tests.apps.book.test_book import pure
from tests.entries import entry


def gaussian(budget):
    return entry(name="sums", noise_multiplier=calibrate_gaussian(budget))


def known(total):
    return DataSet(
        name="crm",
        relation=Relation.EDGE,
        record="undirected edge",
        words="",
        total=total,
        max_degree=None,
        edges="e",
        nodes="n",
        two_persons=False,
        created="",
        part_of="",
    )


def ended(number, budget, entry):
    return Run(
        number=number,
        family=number,
        dataset="crm",
        method="BTER",
        settings="",
        folder="",
        journal=None,
        who="",
        spender="",
        edges="e",
        budget=budget,
        before=[],
        opened="",
        outcome="ended",
        planned=[Planned("", entry, entry.steps)],
    )


def let_in(data, runs, request, epsilon):
    one = request._replace(budget=Budget(epsilon, request.budget.delta))
    charge = charge_of(runs, one)
    spending = spending_of(data, one, charge.entries)
    return rule_of(data, runs, charge.family, spending) is not None


@settings(max_examples=30)
@given(
    total=st.floats(0.01, 20),
    shares=st.lists(st.floats(0.001, 0.6), max_size=5),
    wanted=st.floats(0.05, 50),
    has_noise=st.booleans(),
    smallest=st.sampled_from([0.0, 0.01, 0.5]),
)
def test_the_largest_budget_is_let_in_and_a_larger_one_is_not(
    total, shares, wanted, has_noise, smallest
):
    def plan(budget):
        if budget.epsilon < smallest:
            raise BudgetTooSmall
        return [gaussian(budget) if has_noise else pure(budget.epsilon)]

    data = known(Budget(total, 1e-6))
    runs = [
        ended(number, Budget(share * total, 0.0), pure(share * total))
        for number, share in enumerate(shares)
    ]
    request = Request("BTER", "", Budget(wanted, 1e-7 if has_noise else 0.0), plan, "e")
    found = largest_epsilon(data, runs, request)
    assert found == float(f"{found:g}")  # as it is printed
    if found:
        assert let_in(data, runs, request, found)
    step = 2e-3 * found if found else max(smallest, 2e-3 * wanted)
    if found + step < wanted:
        assert not let_in(data, runs, request, found + step)


@pytest.mark.parametrize("parts", [3, 7, 1000])
def test_equal_parts_of_a_total_are_all_let_in(parts):
    data, budget = known(Budget(0.7, 0.0)), Budget(0.7 / parts, 0.0)
    runs = [ended(number, budget, pure(0.7 / parts)) for number in range(parts - 1)]
    request = Request("BTER", "", budget, lambda one: [pure(one.epsilon)], "e")
    assert let_in(data, runs, request, budget.epsilon)
    assert not let_in(data, runs, request, 1.001 * budget.epsilon)
