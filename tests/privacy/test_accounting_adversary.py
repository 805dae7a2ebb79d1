"""No epsilon is too small: dp-accounting's loss distributions, exact laws, and numbers at the ends."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from dp_accounting.pld import privacy_loss_distribution as pld

from lightning_dpg.privacy import accounting, mechanisms
from lightning_dpg.privacy.accounting import ORDERS
from lightning_dpg.privacy.budget import Budget, BudgetTooSmall, digits_down
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.composition import fits, headline
from lightning_dpg.privacy.ledger import PrivacyLedger, Relation
from lightning_dpg.privacy.mechanisms import integer_rate
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import pay
from lightning_dpg.privacy.reports import least_rate, piecewise_law
from lightning_dpg.run.plan import plan
from tests.entries import entry
from tests.privacy.test_loss_distributions_adversary import one_step

DELTAS = [0.1, 1e-3, 1e-5, 1e-8, 1e-12]
RATES = [1e-5, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.9999, 1.0]


def optimistic(parts, interval):
    """Loss distributions of (noise, rate, steps) and (epsilon, steps), with deltas from below."""
    total = None
    for *amounts, steps in parts:
        terms = {"value_discretization_interval": interval, "pessimistic_estimate": False}
        if len(amounts) == 2:
            sigma, q = amounts
            one = pld.from_gaussian_mechanism(
                sigma, sampling_prob=q, use_connect_dots=False, **terms
            )
        else:
            one = pld.from_randomized_response(2 / (1 + math.exp(amounts[0])), 2, **terms)
        one = one.self_compose(steps) if steps > 1 else one
        total = one if total is None else total.compose(one)
    return total


def check(parts, deltas, known=(0.01, 300.0)):
    """Compare where an epsilon is neither tiny nor huge, whose distributions take long.

    The other library does not count its rounding errors, which grow with the steps: at 20,000 steps
    and a delta of 1e-12 its bound from below is twice an epsilon that is proved.
    """
    total = sum(part[-1] for part in parts)
    deltas = [delta for delta in deltas if delta >= 1e-12 * total]
    entries = [
        entry(noise_multiplier=part[0], sample_rate=part[1], steps=part[2])
        if len(part) == 3
        else entry("pure", epsilon=part[0], steps=part[1])
        for part in parts
    ]
    stated = {delta: headline(entries, delta)[0] for delta in deltas}
    stated = {delta: value for delta, value in stated.items() if known[0] < value < known[1]}
    if not stated:
        return 0
    interval = min(1e-2, min(stated.values()) / (500 + 40 * math.sqrt(total)))
    truth = optimistic(parts, max(interval, 1e-5))
    for delta, epsilon in stated.items():
        assert truth.get_epsilon_for_delta(delta) <= epsilon * (1 + 1e-9), (parts, delta)
    return len(stated)


@pytest.mark.parametrize(
    "parts",
    [
        [(0.6, 1e-3, 300)],
        [(0.3, 1e-5, 20_000)],
        [(20.0, 0.9999, 100)],
        [(0.8, 0.1, 10), (5.0, 0.9, 20), (0.3, 3)],
        [(1.0, 0.01, 50), (3.0, 1.0, 2), (0.05, 5)],
    ],
)
def test_no_epsilon_is_below_that_of_another_library_from_below(parts):
    assert check(parts, DELTAS) >= 2


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("steps", [1, 100, 2000, 20_000])
def test_no_epsilon_is_below_that_of_another_library_on_a_grid(rate, steps):
    noises = (0.1, 0.3, 0.7, 1.0, 2.5, 10.0, 50.0)
    assert sum(check([(noise, rate, steps)], DELTAS) for noise in noises)


@pytest.mark.parametrize(("epsilon", "steps"), [(1e-7, 10**14), (1e-9, 10**18), (1e-12, 10**24)])
def test_many_tiny_pure_releases_are_not_free(epsilon, steps):
    """In the limit of many steps they are 1-Gaussian DP, as their costs' squares add up to 1."""
    assert headline([entry("pure", epsilon=epsilon, steps=steps)], 1e-6)[0] >= 4.886
    curve = accounting.rdp_pure(epsilon)
    with mpmath.workdps(60):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        for place in (0, 20, 105, len(ORDERS) - 1):
            a = mpmath.mpf(ORDERS[place])
            moment = p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)
            assert curve[place] == pytest.approx(float(mpmath.log(moment) / (a - 1)), rel=1e-12)


def test_no_noise_keeps_a_delta_of_zero():
    for costly in (
        entry(noise_multiplier=50.0),
        entry(noise_multiplier=1e200),
        entry(noise_multiplier=1.0, sample_rate=1e-300),
        entry("pure", epsilon=1e-3, steps=10**6),
    ):
        assert not fits([costly], Budget(50.0, 0.0))
    with pytest.raises(BudgetTooSmall):
        calibrate_noise_multiplier(Budget(1.0, 0.0))
    assert not fits([entry(noise_multiplier=1e-160)], Budget(1e9, 0.5))


class Coins(NoiseSource):
    """Source that keeps the probabilities that it is asked for."""

    def bernoulli(self, n, p):
        self.__dict__.setdefault("asked", []).append((n, p))
        return torch.empty(0, dtype=torch.long)


@pytest.mark.parametrize("epsilon", [0.1, 5.0, 30.0, 36.0, 38.0, 100.0])
def test_reports_of_large_epsilons_keep_them(epsilon):
    noise, ledger = Coins(unsafe_seed=1), PrivacyLedger(Relation.EDGE)
    present = torch.arange(3)
    read = entry("pure", epsilon=epsilon)
    kept = pay(read, present, ledger, noise, mechanisms.randomized_response(read, 10))
    (n, of_present), (m, of_absent) = noise.asked
    assert (n, m) == (3, 7)
    assert len(kept) == 3  # no coin fell, and coins of present bits are those of their loss
    with mpmath.workdps(50):
        missing, false = mpmath.mpf(of_present), mpmath.mpf(of_absent)
        losses = mpmath.log((1 - missing) / false), mpmath.log((1 - false) / missing)
        assert max(losses) <= mpmath.mpf(epsilon) + mpmath.mpf("1e-14")


def test_missing_noise_is_not_paid_by_a_sample():
    ledger = PrivacyLedger(Relation.EDGE)
    read = entry("pure", epsilon=math.inf)
    law = mechanisms.integer_noise(read, epsilon=1.0)
    assert int(pay(read, torch.tensor(1), ledger, NoiseSource(), law)) == 1
    assert ledger.epsilon(1e-5) == math.inf
    with pytest.raises(ValueError, match="positive and finite"):
        mechanisms.integer_noise(entry("pure", epsilon=1.0), epsilon=math.inf)


@pytest.mark.parametrize("sensitivity", [1, 3, 2**31, 2**53 + 1])
@pytest.mark.parametrize("epsilon", [1e-11, 1e-9, 0.1, 1 / 3, 1e3, 1e17, 1e300])
def test_rates_are_rounded_to_more_noise(epsilon, sensitivity):
    rate = integer_rate(epsilon, sensitivity)
    assert 0 <= rate <= 2**62
    assert Fraction(rate, 2**40) * sensitivity <= Fraction(epsilon)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.3, 2.0, 30.0, 1e3])
def test_local_laws_are_within_epsilon_in_fractions(epsilon):
    with mpmath.workdps(50):
        bound = mpmath.exp(mpmath.mpf(epsilon))
        if epsilon >= 1e-3:
            law = piecewise_law(epsilon)
            ratio = Fraction(law.rate, 2**40 - law.rate) * Fraction(
                law.cells - law.width, law.width
            )
            assert 1 <= mpmath.mpf(ratio.numerator) / ratio.denominator <= bound
        least = int(least_rate(torch.tensor([epsilon], dtype=torch.double)))
        assert 1 <= mpmath.mpf(2**40 - least) / least <= bound * (1 + mpmath.mpf("1e-15"))


class Paths:
    """Draws along one path of a tree of all draws; ``shares`` are those of the next ones."""

    def __init__(self, path):
        self.left, self.shares = list(path), []

    def draw(self, shares):
        if not self.left:
            self.shares = shares
            raise StopIteration
        return self.left.pop(0)

    def integers(self, high, size):
        assert size == 1
        return np.array([self.draw([Fraction(1, high)] * high)])


def exact_law(draw, least):
    """Probabilities of results over all paths that are likelier than ``least``, and of the rest."""
    found, rest, waiting = {}, Fraction(0), [((), Fraction(1))]
    while waiting:
        path, mass = waiting.pop()
        paths = Paths(path)
        try:
            result = draw(paths)
        except StopIteration:
            if mass < least:
                rest += mass
            else:
                waiting += [((*path, k), mass * share) for k, share in enumerate(paths.shares)]
        else:
            found[result] = found.get(result, 0) + mass
    return found, rest


@pytest.mark.parametrize("numerator", [0, 1, 2, 4])
def test_coins_have_their_law_along_all_paths(numerator, monkeypatch):
    monkeypatch.setattr(mechanisms, "RATE_DENOMINATOR", 4)
    found, rest = exact_law(
        lambda noise: bool(mechanisms.coins_exp(noise, np.array([numerator]))[0]),
        Fraction(1, 30_000),
    )
    heads, truth = found.get(True, 0), math.exp(-numerator / 4)
    assert heads <= truth <= heads + rest
    assert rest < 0.02


@pytest.mark.parametrize("rate", [1, 3, 8])
def test_integer_noise_has_its_law_along_all_paths(rate, monkeypatch):
    """In fractions, with 3/4 in place of exp(-1 / 4): the sampler uses its powers only."""
    unit = Fraction(3, 4)

    def coins(noise, numerators):
        heads = unit ** int(numerators[0])
        return np.array([noise.draw([1 - heads, heads]) == 1])

    def first_round(noise):
        def integers(high, size):
            rounds.append(high)
            if rounds.count(4) == 2:  # the first draw of another round
                raise LookupError
            return Paths.integers(noise, high, size)

        rounds, noise.integers = [], integers
        try:
            return int(mechanisms._draw_discrete_laplace(noise, np.array([rate]))[0])
        except LookupError:
            return None

    monkeypatch.setattr(mechanisms, "RATE_DENOMINATOR", 4)
    monkeypatch.setattr(mechanisms, "coins_exp", coins)
    found, rest = exact_law(first_round, Fraction(1, 20_000))
    taken, ratio = 1 - found.pop(None) - rest, unit**rate
    for value in range(-4, 5):
        truth = (1 - ratio) / (1 + ratio) * ratio ** abs(value) * taken
        assert found.get(value, 0) - rest <= truth <= found.get(value, 0) + rest
    assert rest < taken / 1000


@pytest.mark.parametrize("value", [3.7306, 1 / 3, 50.76499, 1e-7, 99999.9])
def test_noise_is_stated_no_larger_than_it_is(value):
    stated = float(digits_down(value, 4))
    assert value * (1 - 1e-3) < stated <= value * (1 + 1e-11)


def test_a_plan_that_is_copied_keeps_its_budget():
    found = plan(epsilon=1.0, delta=1e-6, sample_rate=1.0, steps=3)
    lines = str(found).splitlines()
    noise = float(lines[2].removeprefix("noise multiplier: ").split()[0])
    assert fits([entry(noise_multiplier=noise, steps=3)], Budget(1.0, 1e-6))
    start = 1 + next(i for i, line in enumerate(lines) if line.startswith("epsilon by noise"))
    columns = [int(word) for word in lines[start].split()]
    for line in lines[start + 1 :]:
        sigma, *epsilons = map(float, line.split())
        for steps, epsilon in zip(columns, epsilons, strict=True):
            assert headline([entry(noise_multiplier=sigma, steps=steps)], 1e-6)[0] <= epsilon


def test_one_ledger_is_no_filter_for_plans_that_follow_from_releases():
    """Why costs are fixed in advance: each plan fits, and the choice between them does not."""
    budget, cost = Budget(1.0, 1e-5), 0.5
    first, rare = entry("pure", epsilon=cost), entry(noise_multiplier=0.2, sample_rate=1.8625e-5)
    noise = calibrate_noise_multiplier(budget, other=[first])
    assert fits([first, entry(noise_multiplier=noise)], budget)
    assert fits([first, rare], budget)
    likely = 1 / (1 + math.exp(-cost))
    delta = likely * accounting.gdp_delta(1 / noise, 1 - cost)
    delta += (1 - likely) * one_step(1 + cost, 0.2, 1.8625e-5)
    assert float(delta) == pytest.approx(1.318e-5, rel=1e-3)
