"""opacus' bounds are those of its own accountants, and enclose what closed forms say."""

import math

import pytest
from opacus.accountants import PRVAccountant, RDPAccountant

from lightning_dpg.privacy.accounting import ORDERS
from lightning_dpg.privacy.composition import entry_of, headline
from lightning_dpg.privacy.events import Approximate, Gaussian, Pure
from lightning_dpg.privacy.second_opinion import second_opinion
from lightning_dpg.run.plan import plan
from tests.closed_forms import gaussian_sigma


def entries(*steps):
    return [entry_of(Gaussian(sigma, rate), count) for sigma, rate, count in steps]


@pytest.mark.parametrize(
    ("steps", "delta"),
    [
        ([(1.0, 0.02, 138)], 1e-5),
        ([(1.1, 0.01, 1000)], 1e-6),
        ([(3.0, 1.0, 1), (1.5, 0.01, 500)], 1e-6),
    ],
)
def test_numbers_are_those_of_the_accountants_of_opacus(steps, delta):
    accountants = RDPAccountant(), PRVAccountant()
    for accountant in accountants:
        accountant.history = list(steps)
    rdp, prv = (accountant.get_epsilon(delta=delta) for accountant in accountants)
    found = second_opinion(entries(*steps), delta)
    assert found.rdp == pytest.approx(rdp, abs=1e-3)  # opacus' own orders end at 63
    assert found.prv[2] == pytest.approx(prv, abs=1e-9)
    ours, _ = headline(entries(*steps), delta)
    assert found.prv[0] <= ours <= found.rdp + 1e-9
    assert not found.is_part


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("counts", [(1,), (2, 6)])
def test_bounds_enclose_the_closed_form_of_gaussian_noise(epsilon, counts):
    # Noise of k reads is sqrt(k) times as large: together they are one read of Balle and Wang's.
    sigma = gaussian_sigma(epsilon, 1e-5) * math.sqrt(len(counts))
    reads = [(sigma * math.sqrt(count), 1.0, count) for count in counts]
    found = second_opinion(entries(*reads), 1e-5)
    lower, estimate, upper = found.prv
    assert lower < epsilon < upper < lower + 0.03
    assert estimate == pytest.approx(epsilon, abs=1e-3)
    assert epsilon < found.rdp < 1.2 * epsilon


def test_pure_reads_add_the_curve_of_randomized_response():
    sigma, delta, p = 4.0, 1e-5, 1 / (1 + math.exp(-0.7))
    reads = [*entries((sigma, 1.0, 1)), entry_of(Pure(0.7), 1)]
    found = second_opinion(reads, delta)
    bounds = [
        a / (2 * sigma**2)
        + math.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
        + math.log1p(-1 / a)
        - math.log(delta * a) / (a - 1)
        for a in ORDERS[ORDERS < 100]
    ]
    assert found.rdp == pytest.approx(min(bounds), abs=1e-9)
    assert found.is_part
    assert found.prv == second_opinion(reads[:1], delta).prv  # below all reads together
    assert "Gaussian reads alone" in str(found)
    failing = [reads[0], entry_of(Approximate(0.7, 4e-6), 1)]
    assert second_opinion(failing, 1.4e-5).rdp == pytest.approx(found.rdp, abs=1e-9)


@pytest.mark.parametrize(
    ("reads", "delta"),
    [
        ([], 1e-5),
        ([entry_of(Pure(1.0), 1)], 1e-5),
        (entries((1.0, 1.0, 1)), 0.0),
        (entries((0.0, 1.0, 1)), 1e-5),
        ([*entries((1.0, 1.0, 1)), entry_of(Pure(math.inf), 1)], 1e-5),
        ([*entries((1.0, 1.0, 1)), entry_of(Approximate(1.0, 1e-5), 1)], 1e-5),
    ],
)
def test_there_is_none_where_opacus_has_no_accountant(reads, delta):
    assert second_opinion(reads, delta) is None


@pytest.mark.parametrize(("steps", "delta"), [((0.5, 0.5, 10_000), 1e-6), ((1.0, 1.0, 1), 1e-15)])
def test_rdp_alone_where_distributions_are_too_large_or_too_coarse(steps, delta):
    found = second_opinion(entries(steps), delta)
    assert found.prv is None
    assert found.lower_bound() == 0
    assert str(found).endswith("(RDP)")


def test_a_plan_says_both_numbers():
    made = plan(epsilon=2.0, delta=1e-6, sample_rate=0.05, steps=100)
    assert made.second_opinion.prv[0] < made.epsilon < made.second_opinion.rdp
    assert not made.second_opinion.remark(made.epsilon)
    assert "more than opacus proves by RDP" in made.second_opinion.remark(3.0)
