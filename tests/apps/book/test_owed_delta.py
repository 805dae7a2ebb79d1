"""A run that has released anything owes the delta of its plan, however it ends."""

import math
from dataclasses import replace

import pytest

from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.report import summary
from lightning_dpg.apps.book.request import Request
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Approximate, Pure
from lightning_dpg.privacy.ledger import PrivacyLedger, Relation
from tests.apps.book.small_book import new_book
from tests.entries import entry

BUDGET = Budget(1.0, 6e-7)


def plan_now(budget):
    """Degrees, a bound that fails with the whole delta, and a release that rests on it."""
    shares = {"num_edges": 0.05, "degrees": 0.2, "largest_degrees": 0.05, "joint_degrees": 0.7}
    plan = [entry("pure", key=key, epsilon=budget.epsilon * each) for key, each in shares.items()]
    plan[2] = replace(plan[2], event=Approximate(plan[2].event.epsilon, budget.delta))
    return plan


def plan_before(budget):
    """Earlier versions booked delta with the joint degrees, and not with T."""
    *degrees, bound, joint = plan_now(budget)
    bound = replace(bound, event=Pure(bound.event.epsilon))
    return [*degrees, bound, replace(joint, event=Approximate(joint.event.epsilon, budget.delta))]


@pytest.mark.parametrize("plan", [plan_now, plan_before])
@pytest.mark.parametrize("end", ["stopped", "killed", "killed, journal beyond the book"])
def test_a_run_that_ends_behind_its_bound_keeps_its_delta(plan, end, tmp_path):
    url, journal = f"sqlite:///{tmp_path}/book.db", tmp_path / "ledger.jsonl"
    book = new_book(url, max_degree=3)
    request = Request("Bounded", "s", BUDGET, plan, "edges of crm", journal=journal)
    runs = Book(url)
    run = runs.reserve("crm", request)
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.journal = journal
    for number, read in enumerate(plan(BUDGET)[:-1]):
        if number < 2 or end != "killed, journal beyond the book":
            run.book(read)
        ledger.spend(read)
    if end == "stopped":
        run.close("stopped")
    runs.close()
    assert book.reconcile() == ([] if end == "stopped" else [1])
    found = summary(book, "crm")
    (shown,) = found["releases"]
    assert shown["outcome"] == end.split(",")[0]
    assert shown["epsilon"] == pytest.approx(0.3)
    assert shown["delta"] == pytest.approx(6e-7)
    assert found["spent"] == 0.3
    # Two of these runs would fail with more than the total's delta.
    with pytest.raises(BookError, match="does not pay for Bounded"):
        book.reserve("crm", request)
    # All edges of a node: the delta of T grows with its epsilon, and exceeds that of the total.
    assert found["node"] == "inf"


def test_a_run_that_has_released_nothing_owes_nothing(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db")
    request = Request("Bounded", "s", BUDGET, plan_now, "edges of crm")
    book.reserve("crm", request).close("stopped")
    (run,) = summary(book, "crm")["releases"]
    assert (run["epsilon"], run["delta"]) == (0, 0)
    run = book.reserve("crm", request)
    for read in plan_now(BUDGET):
        run.book(read)
    run.close("ended")
    found = summary(book, "crm")
    assert found["spent"] == 1.0 and math.isclose(found["releases"][1]["delta"], 6e-7)
