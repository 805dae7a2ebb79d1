"""The filter holds for the worst adaptive choice of what comes next, computed exactly."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from lightning_dpg.apps.book import filter as book_filter
from lightning_dpg.apps.book.filter import Spending, together
from lightning_dpg.privacy.accounting import gdp_delta
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_gaussian
from lightning_dpg.privacy.composition import fits
from lightning_dpg.privacy.events import Approximate, Pure
from tests.entries import entry


def passes(total, rule, runs):
    return book_filter.passes(total, rule, together(runs))


def pure_epsilon_left(total, rule, runs):
    return book_filter.pure_epsilon_left(total, rule, together(runs))


def pure(epsilon, steps=1):
    return Spending(Budget(epsilon * steps, 0.0), [entry("pure", epsilon=epsilon, steps=steps)])


def gaussian(epsilon, delta, steps=1, q=1.0, sigma=None):
    sigma = sigma or calibrate_gaussian(Budget(epsilon, delta))
    step = entry("gaussian", noise_multiplier=sigma, sample_rate=q, steps=steps)
    return Spending(Budget(epsilon, delta), [step])


def worst_delta(total, rule, choices):
    """Delta at the total's epsilon of the worst analyst, whose next choice follows from all results.

    Each choice is a run of one randomized response. Of one that shows the true answer with
    probability p, the privacy loss is its epsilon or minus it. All that a filter and the future depend
    on is how often each was chosen, and the loss so far.
    """
    smallest = min(choices)
    places = {epsilon: round(epsilon / smallest) for epsilon in choices}

    @cache
    def is_let_in(counts):
        runs = [pure(e) for e, count in zip(choices, counts, strict=True) for _ in range(count)]
        return passes(total, rule, runs)

    @cache
    def worst(counts, loss):
        best = max(0.0, -math.expm1(total.epsilon - smallest * loss))
        for number, epsilon in enumerate(choices):
            after = tuple(c + (i == number) for i, c in enumerate(counts))
            if not is_let_in(after):
                continue
            p, step = 1 / (1 + math.exp(-epsilon)), places[epsilon]
            mean = p * worst(after, loss + step) + (1 - p) * worst(after, loss - step)
            best = max(best, mean)
        return best

    return worst((0,) * len(choices), 0)


@pytest.mark.parametrize("rule", ["split", "sum"])
@pytest.mark.parametrize("choices", [(0.05, 0.2), (0.1, 0.3, 0.6)])
def test_no_adaptive_choice_exceeds_the_total(rule, choices):
    total = Budget(1.0, 0.02)
    delta = worst_delta(total, rule, choices)
    assert delta <= total.delta
    # It is no empty rule: many small runs go beyond the sum of their epsilons.
    if rule == "split":
        assert delta > 0
        assert passes(total, rule, [pure(0.05)] * 30)


def test_a_run_that_is_stopped_for_its_first_release_gives_back_no_delta():
    """The analyst stops it where its randomized response says no, and spends delta again there."""
    total, first = Budget(1.0, 0.02), 0.5
    yes = 1 / (1 + math.exp(-first))
    plan = [entry("pure", epsilon=first), gaussian(0.6, 0.02).entries[0]]
    exceeded = gdp_delta(1 / plan[1].event.noise_multiplier, total.epsilon - first)
    # Exact: the run's own delta at epsilon 1, of both answers.
    budget = Budget(
        1.0,
        yes * exceeded
        + (1 - yes) * gdp_delta(1 / plan[1].event.noise_multiplier, total.epsilon + first),
    )
    assert 0.001 < budget.delta < total.delta

    def failure(*runs):
        """Largest delta of one more release of epsilon 0 that is let in."""
        low, high = 0.0, 0.5
        for _ in range(50):
            middle = (low + high) / 2
            one = Spending(Budget(0.0, middle), [entry("approximate", epsilon=0.0, delta=middle)])
            low, high = (middle, high) if passes(total, "sum", [*runs, one]) else (low, middle)
        return low

    after_all = failure(Spending(budget, plan, plan))
    after_no = failure(Spending(budget, plan[:1], plan))
    delta = yes * (after_all + (1 - after_all) * exceeded) + (1 - yes) * after_no
    assert 0.9 * total.delta < delta <= total.delta


def now(epsilon, delta):
    """Plan whose last release rests on a bound, which fails with probability delta."""
    return [
        entry("pure", key="degrees", epsilon=0.005 * epsilon),
        entry("approximate", key="largest_degrees", epsilon=0.005 * epsilon, delta=delta),
        entry("pure", key="joint_degrees", epsilon=0.99 * epsilon),
    ]


def late(epsilon, delta):
    """The same as earlier versions booked it: delta at the last release."""
    *first, bound, joint = now(epsilon, delta)
    bound = replace(bound, event=Pure(bound.event.epsilon))
    return [*first, bound, replace(joint, event=Approximate(joint.event.epsilon, delta))]


@pytest.mark.parametrize("plan", [now, late])
@pytest.mark.parametrize(("rule", "delta"), [("sum", 1e-3), ("split", 1e-3), ("split", 1e-5)])
def test_nobody_waits_for_a_bound_that_fails(plan, rule, delta):
    """The analyst stops each run behind T, unless T is below a guess of what it has to reach.

    Each T is so with a probability of delta at most, and the noise of the next release is then too
    small. The probability that this ever happens is what the runs that are let in make of it.
    """
    total, entries = Budget(2.0, 0.01), plan(1.0, delta)
    whole = Spending(Budget(1.0, delta), entries, entries)
    stopped = whole._replace(entries=entries[:-1])
    before = [stopped] * next(
        count for count in range(200) if not passes(total, rule, [*[stopped] * count, whole])
    )
    assert passes(total, rule, before)
    failed = -math.expm1(len(before) * math.log1p(-delta))
    assert 0.3 * min(total.delta, 0.99 * len(before) * delta) < failed <= total.delta
    assert together(before).failed >= len(before) * delta
    assert together([stopped]).deltas == [delta]


def test_what_a_run_owes_is_counted_once_and_with_its_first_release():
    bound = entry("approximate", epsilon=0.1, delta=1e-6)
    twice = entry("approximate", epsilon=0.2, delta=1e-7, steps=5)
    plan = [entry("pure", epsilon=0.3), bound, twice]

    def counted(*made):
        one = Spending(Budget(1.4, 2e-6), made, plan)
        return one.cost.epsilon, one.cost.delta, together([one]).failed

    everything = pytest.approx(1.5e-6, rel=1e-12)
    assert counted() == (0.0, 0.0, 0.0)
    assert counted(plan[0]) == (0.3, everything, everything)
    assert counted(plan[0], bound) == (pytest.approx(0.4), everything, everything)
    some = replace(twice, steps=2)
    assert counted(plan[0], bound, some) == (pytest.approx(0.8), everything, everything)
    assert counted(*plan) == (pytest.approx(1.4), everything, everything)
    # Without a plan of its own, a run counts what it made.
    assert Spending(Budget(1.0, 1e-6), [bound]).cost == Budget(0.1, 1e-6)


def test_the_sum_of_runs_is_a_rule_and_one_run_may_take_all():
    total = Budget(2.0, 1e-6)
    assert passes(total, "sum", [gaussian(2.0, 1e-6)])
    assert not passes(total, "split", [gaussian(2.0, 1e-6)])
    assert passes(total, "split", [gaussian(1.0, 5e-7), pure(1.0)])
    assert not passes(total, "sum", [gaussian(1.0, 5e-7), gaussian(1.0, 6e-7)])


def test_gaussian_runs_are_added_up_by_their_renyi_curves():
    total = Budget(2.0, 1e-6)
    runs = [gaussian(0.4, 1e-6)] * 30
    let_in = [passes(total, "split", runs[:count]) for count in range(1, 31)]
    exact = [
        fits([e for run in runs[:count] for e in run.entries], total) for count in range(1, 31)
    ]
    assert let_in == sorted(let_in, reverse=True)
    assert 2 / 0.4 < 0.6 * sum(exact) < sum(let_in) < sum(exact) < 30


def test_what_is_left_is_let_in_and_a_little_more_is_not():
    for total, rule, runs in [
        (Budget(2.0, 1e-6), "split", [pure(0.5), pure(0.25)]),
        (Budget(1.0, 1e-5), "split", [pure(0.05)] * 19),
        (Budget(1.0, 1e-5), "split", [gaussian(0.6, 1e-5)]),
        (Budget(1.0, 0.0), "sum", [pure(0.3)]),
    ]:
        left = pure_epsilon_left(total, rule, runs)
        assert left > 0
        assert passes(total, rule, [*runs, pure(left)])
        assert not passes(total, rule, [*runs, pure(left * 1.001)])
    assert pure_epsilon_left(Budget(1.0, 0.0), "sum", [pure(1.0)]) == 0


def test_whatever_is_let_in_keeps_the_total_by_the_accountant_of_others():
    pytest.importorskip("dp_accounting", reason="dp_accounting is not installed")
    from dp_accounting import dp_event, pld

    random = np.random.default_rng(0)
    total = Budget(1.5, 1e-5)
    for _ in range(5):
        runs, accountant = [], pld.PLDAccountant()
        for _ in range(40):
            one = pure(random.uniform(0.01, 0.15))
            event = dp_event.LaplaceDpEvent(1 / one.budget.epsilon)
            if random.random() < 0.5:
                q, steps, sigma = 0.02, int(random.integers(5, 50)), random.uniform(1.5, 5.0)
                # Its own ledger holds it to what it says here: more than it spends.
                one = gaussian(5.0, 1e-6, steps, q, sigma)
                step = dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(sigma))
                event = dp_event.SelfComposedDpEvent(step, steps)
            if passes(total, "split", [*runs, one]):
                runs.append(one)
                accountant.compose(event)
        assert 3 < len(runs) < 40
        assert accountant.get_epsilon(total.delta) <= total.epsilon
