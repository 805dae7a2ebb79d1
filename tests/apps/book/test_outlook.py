"""Budgets that a plan names are let in by the book, and slightly larger ones are not."""

from dataclasses import replace

import pytest

from lightning_dpg.apps.book import further_releases
from lightning_dpg.apps.book.request import Request
from lightning_dpg.apps.book.state import cost_of_runs
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import Gaussian, Relation
from tests.apps.book.small_book import entry, new_book, register, run

PURE, SINGLE, SAMPLED = None, (1.0, 1), (0.1, 50)  # sample rate and number of Gaussian steps


def plan_of(steps):
    """Plan of a pure release, or of Gaussian steps."""

    def plan(budget):
        if steps is PURE:
            return [entry(budget.epsilon)]
        rate, count = steps
        sigma = calibrate_noise_multiplier(budget, sample_rate=rate, steps=count)
        return [replace(entry(sigma=sigma, steps=count), event=Gaussian(sigma, rate))]

    return plan


def share(book, releases, steps, place=0):
    known, earlier = book.data_set("crm"), cost_of_runs(book.runs("crm"), Relation.EDGE)
    delta = 0.0 if steps is PURE else further_releases.usual_deltas(known, earlier, releases)[place]
    return further_releases.share(known, earlier, releases, plan_of(steps), delta)


def let_in(book, budget, releases, steps):
    """How many runs of a budget the book lets in, one after another."""
    plan = plan_of(steps)
    request = Request("DPNetGAN", "settings", budget, plan, edges="edges of crm")
    for done in range(releases):
        try:
            made = book.reserve("crm", request)
        except BookError:
            return done
        made.book(plan(budget)[0])
        made.close("ended")
    return releases


@pytest.mark.parametrize("before", [None, 0.5])
@pytest.mark.parametrize(
    ("steps", "releases"),
    [(PURE, 1), (PURE, 2), (PURE, 12), (SINGLE, 1), (SINGLE, 4), (SAMPLED, 2)],
)
def test_what_is_named_is_let_in_and_little_more_is_not(tmp_path, before, steps, releases):
    books = []
    for name in ("named", "more"):
        book = new_book(f"sqlite:///{tmp_path}/{name}.db")
        if before:
            run(book, entry(before))
        books.append(book)
    found = share(books[0], releases, steps)
    assert found.budget.epsilon > 0
    assert let_in(books[0], found.budget, releases, steps) == releases
    more = Budget(found.budget.epsilon * 1.011, found.budget.delta)
    assert let_in(books[1], more, releases, steps) < releases


def test_pure_shares_of_a_small_total_are_equal_parts(tmp_path):
    """Renyi composition gains nothing for few releases: the parts are those of a sum."""
    book = new_book(f"sqlite:///{tmp_path}/book.db", epsilon=2.0)
    run(book, entry(0.5))
    parts = [share(book, releases, PURE).budget.epsilon for releases in (1, 2, 4)]
    assert parts == [1.5, 0.75, 0.375]


def test_a_part_of_delta_pays_where_the_renyi_filter_is_full(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db", delta=1e-6)
    run(book, entry(1.75))
    assert share(book, 1, SINGLE).budget.epsilon == 0
    found = share(book, 1, SINGLE, place=1)
    assert found.budget == Budget(0.25, 5e-7)
    assert let_in(book, found.budget, 1, SINGLE) == 1


def test_nothing_is_left(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db")
    run(book, entry(2.0))
    assert share(book, 1, PURE).budget.epsilon == 0
    assert share(book, 1, SINGLE) == further_releases.Share(1, Budget(0.0, 1e-6), None)


def test_the_rest_of_delta_is_shared_after_a_run_that_took_the_sum(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db", delta=1e-6)
    assert let_in(book, Budget(1.9, 8e-7), 1, SINGLE) == 1  # more than the Renyi filter lets in
    assert book.data_set("crm").rule == "sum"
    found = share(book, 2, SINGLE)
    assert found.budget.delta == pytest.approx(1e-7)
    assert found.budget.epsilon == pytest.approx(0.05, rel=0.011)
    assert let_in(book, found.budget, 2, SINGLE) == 2


def test_a_plan_is_for_the_methods_that_were_used(tmp_path, monkeypatch):
    """Rows end with the first one that is refused; unasked methods without any row stay out."""

    def planned(name):
        rows = further_releases.budget_plan(book, name)
        return [(row.method, row.share.releases, row.share.budget.epsilon) for row in rows]

    monkeypatch.setattr(further_releases, "COUNTS", (1, 2))  # of DP-SGD, each takes a second
    book = new_book(f"sqlite:///{tmp_path}/book.db", epsilon=2.0)
    run(book, entry(1.0), method="ChungLu")
    run(book, entry(0.5), method="MyOwnMethod")
    assert planned("crm") == [("ChungLu", 1, 0.5), ("ChungLu", 2, 0.25)]
    run(book, entry(0.5), method="MyOwnMethod")
    assert planned("crm") == [("ChungLu", 1, 0.0)]
    register(book, "web", epsilon=0.1)
    assert planned("web") == [("pure release", 1, 0.1), ("pure release", 2, 0.05)]
