"""Known answers: opacus 1.6.0 (orders to 63), Google dp-accounting 0.6.0, quadrature."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants.analysis.rdp import compute_rdp
from scipy import integrate
from scipy.optimize import brentq

from lightning_dpg.privacy import accounting
from lightning_dpg.privacy.accounting import ORDERS
from lightning_dpg.privacy.ledger import PrivacyLedger, Relation
from tests.characteristic import exact_delta
from tests.entries import entry

CORA, CITESEER = 2048 / 6784, 2048 / 3118
KNOWN = [  # sigma, q, T, delta, epsilon by RDP (opacus), PRV (opacus), PLD (Google)
    (1.0, 1, 1, 1e-5, 4.7285, 4.3874, 4.3772),
    (2.0, 1, 10, 1e-5, 8.0794, 7.5216, 7.5113),
    (5.0, 1, 100, 1e-5, 10.7255, 10.0077, 9.9973),
    (1.0, 0.01, 1000, 1e-5, 2.1014, 1.8384, 1.8282),
    (1.1, 0.01, 10000, 1e-5, 5.6320, 5.2029, 5.1926),
    (0.8, 0.02, 5000, 1e-5, 16.6124, 15.3195, 15.3087),
    (5.0, 0.01, 54, 1e-5, None, 0.0541, 0.0441),
    (5.0, 0.01, 5429, 1e-5, 0.5802, 0.5382, 0.5282),
    (5.0, 0.01, 542868, 1e-5, 7.5225, 6.9997, 6.9911),
    (1.0, CORA, 500, 1e-4, 63.8359, 59.3640, 59.3517),
    (2.0, CORA, 1000, 1e-4, 32.6990, 30.4524, 30.4411),
    (4.0, 0.25, 2000, 1e-6, 18.0346, 17.0076, 16.9970),
    (0.6, 0.001, 20000, 1e-6, 4.5785, 3.7571, 3.7469),
    (1.0, CITESEER, 100, 1e-4, 54.2121, 50.5433, 50.5313),
]
sigmas = st.floats(0.3, 30)
rates = st.floats(1e-4, 1)


def at(curve, order):
    return curve[np.flatnonzero(ORDERS == order)[0]]


def sampled(sigma, q, steps):
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.spend(entry(name="critic", steps=steps, noise_multiplier=sigma, sample_rate=q))
    return ledger


def moment_by_quadrature(sigma, q, order):
    def integrand(z):
        ratio = 1 - q + q * math.exp((2 * z - 1) / (2 * sigma**2))
        return math.exp(-(z**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi)) * ratio**order

    low, high = -12 * sigma, order + 12 * sigma
    points = np.linspace(low, high, 20).tolist()
    value, _ = integrate.quad(integrand, low, high, points=points, limit=500, epsabs=1e-14)
    return math.log(value) / (order - 1)


@pytest.mark.parametrize(
    ("sigma", "q", "steps", "delta", "rdp"), [row[:5] for row in KNOWN if row[4] is not None]
)
def test_renyi_known_answers(sigma, q, steps, delta, rdp):
    curve = steps * accounting.rdp_gaussian(sigma, q)
    assert accounting.rdp_to_epsilon(curve, delta) == pytest.approx(rdp, rel=1e-3)
    assert accounting.rdp_to_delta(curve, rdp) == pytest.approx(delta, rel=2e-3)


@pytest.mark.parametrize(
    ("sigma", "q", "steps", "delta", "pld"), [(*row[:4], row[6]) for row in KNOWN]
)
def test_headline_known_answers(sigma, q, steps, delta, pld):
    ledger = sampled(sigma, q, steps)
    epsilon, accountant = ledger.headline(delta)
    if q == 1:  # Gaussian DP is exact, as Google's PLD is up to 1e-4
        assert accountant == "GDP"
        assert epsilon == pytest.approx(pld, abs=2e-4)
    else:
        assert accountant == "PLD"
        assert pld - 1e-4 < epsilon < pld * 1.003


def test_large_orders_sharpen_small_epsilons():
    # opacus' orders end at 63 and give .1100, Google's have 512 and 1024 above and give .0595
    curve = 54 * accounting.rdp_gaussian(5.0, 0.01)
    for kept, expected in (
        (ORDERS < 64, 0.1100),
        ((ORDERS < 64) | np.isin(ORDERS, [128, 256, 512, 1024]), 0.0595),
    ):
        bounded = np.where(kept, curve, np.inf)
        assert accounting.rdp_to_epsilon(bounded, 1e-5) == pytest.approx(expected, abs=6e-5)
    assert 0.0441 < accounting.rdp_to_epsilon(curve, 1e-5) < 0.0595  # PLD is exact: .0441


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        (accounting.rdp_pure(1.0), {2: 0.735326, 4: 0.895883, 16: 0.979116}),
        (accounting.rdp_gaussian(1.0, 0.01), {2: 1.718134e-4, 4: 3.631540e-4, 16: 3.087851}),
        (accounting.rdp_gaussian(2.0, 1.0), {2: 0.25, 4: 0.5, 16: 2.0}),
    ],
    ids=["randomized response", "sampled gaussian", "gaussian"],
)
def test_curves_at_known_orders(curve, expected):
    for order, value in expected.items():
        assert at(curve, order) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(("sigma", "q"), [(1.0, 0.01), (0.5, 0.3), (4.0, 0.9), (0.3, 0.05)])
def test_gaussian_curve_against_opacus_and_quadrature(sigma, q):
    curve = accounting.rdp_gaussian(sigma, q)
    orders = ORDERS[ORDERS <= 300][::7]
    theirs = [
        compute_rdp(q=q, noise_multiplier=sigma, steps=1, orders=[o])[0]
        for o in (int(o) if o == int(o) else float(o) for o in orders)
    ]
    np.testing.assert_allclose(curve[ORDERS <= 300][::7], theirs, rtol=2e-6)
    for order in (1.1, 1.5, 2.5, 5.3):
        expected = moment_by_quadrature(sigma, q, order)
        assert at(curve, order) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("sigma", [0.002, 0.029, 0.031, 0.1, 100.0, 1e6])
@pytest.mark.parametrize("q", [1e-6, 0.5, 0.9999, 1.0])
def test_extreme_settings_stay_between_their_bounds(sigma, q):
    curve = accounting.rdp_gaussian(sigma, q)
    assert (curve > 0).all()
    assert (curve <= ORDERS / (2 * sigma**2) * (1 + 1e-9)).all()
    assert (np.diff(curve) >= -1e-9 * curve[1:])[np.diff(ORDERS) > 0].all()


def test_chord_of_tiny_noise_is_above_the_curve():
    exact = compute_rdp(q=0.1, noise_multiplier=0.025, steps=1, orders=[1.1, 2.5, 7.7])
    curve = accounting.rdp_gaussian(0.025, 0.1)
    for order, value in zip((1.1, 2.5, 7.7), exact, strict=True):
        assert at(curve, order) >= value * (1 - 1e-9)


@settings(max_examples=40)
@given(sigmas, rates, st.floats(1.01, 2))
def test_privacy_costs_fall_with_noise_and_rise_with_rate(sigma, q, factor):
    curve = accounting.rdp_gaussian(sigma, q)
    assert (accounting.rdp_gaussian(sigma * factor, q) <= curve * (1 + 1e-9)).all()
    assert (accounting.rdp_gaussian(sigma, q / factor) <= curve * (1 + 1e-9)).all()


@settings(max_examples=40)
@given(sigmas, rates, st.integers(1, 10**5), st.floats(1e-9, 1e-2))
def test_delta_inverts_epsilon(sigma, q, steps, delta):
    curve = steps * accounting.rdp_gaussian(sigma, q)
    epsilon = accounting.rdp_to_epsilon(curve, delta)
    assert accounting.rdp_to_delta(curve, epsilon) <= delta * (1 + 1e-6)
    if epsilon > 0:
        assert accounting.rdp_to_delta(curve, epsilon * 0.999) > delta


def test_conversions_at_the_ends():
    nothing, everything = np.zeros_like(ORDERS), np.full_like(ORDERS, np.inf)
    assert accounting.rdp_to_epsilon(nothing, 1e-5) == accounting.rdp_to_delta(nothing, 0.0) == 0
    assert accounting.rdp_to_epsilon(everything, 1e-5) == math.inf
    assert accounting.rdp_to_delta(everything, 1e3) == 1
    assert np.isinf(accounting.rdp_gaussian(0.0, 0.5)).all()


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(0.5, 1.99309), (1, 4.37718), (2, 9.99726), (3, 16.67549)]
)
def test_gaussian_dp_known_answers(mu, epsilon):
    assert accounting.gdp_epsilon(mu, 1e-5) == pytest.approx(epsilon, rel=3e-6)
    assert accounting.gdp_delta(mu, accounting.gdp_epsilon(mu, 1e-5)) <= 1e-5


def truth_of(sigma, q, steps, epsilon):
    """Delta of sampled Gaussian steps, of which no loss is discretized."""
    return exact_delta([entry(noise_multiplier=sigma, sample_rate=q, steps=steps)], epsilon)


def exact_epsilon(sigma, q, steps, delta, near):
    def log_excess(epsilon):
        return math.log(truth_of(sigma, q, steps, epsilon) / delta)

    return brentq(log_excess, 0.9 * near, 1.1 * near, xtol=1e-6)


SMALL_DELTAS = [  # sigma, q, steps, delta, epsilon of a discretization in long doubles
    (1.0, 0.01, 1000, 1e-12, 3.9143),
    (1.0, 0.01, 1000, 3e-13, 4.079),
    (2.31, 0.1, 1500, 1e-12, 13.926),
]


@pytest.mark.parametrize(("sigma", "q", "steps", "delta", "known"), SMALL_DELTAS)
def test_headline_is_no_less_than_the_truth_at_tiny_deltas(sigma, q, steps, delta, known):
    assert exact_epsilon(sigma, q, steps, delta, known) == pytest.approx(known, abs=6e-4)
    epsilon, accountant = sampled(sigma, q, steps).headline(delta)
    assert known + 6e-4 < epsilon
    assert accountant == "RDP"  # rounding errors count more than such a delta


@pytest.mark.parametrize(
    ("sigma", "q", "steps"),
    [
        (1.0, 0.01, 1000),
        (2.31, 0.1, 1500),
        (0.5, 0.3, 2),
        (300.0, 0.2, 1),
        (200.0, 0.05, 100),
        (5.0, 0.01, 100_000),
        (0.6, 0.001, 20_000),
    ],
)
def test_loss_distributions_are_no_less_than_the_truth_and_near_it(sigma, q, steps):
    for delta in (1e-4, 1e-6, 1e-8):
        epsilon, accountant = sampled(sigma, q, steps).headline(delta)
        truth = truth_of(sigma, q, steps, epsilon)
        assert truth <= delta
        if delta >= 1e-6:
            assert accountant == "PLD"
            # Delta is charged with the rounding of the transform, here of 2 ** 17 points.
            charge = 2.0**-49 * steps * math.sqrt(2**17) if steps >= 100_000 else 0.0
            assert truth + charge > 0.95 * delta
