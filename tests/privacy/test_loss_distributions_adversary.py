"""Delta is no less than the truth: contour integrals, binomial sums and fifty digits."""

import math

import mpmath
import numpy as np
import pytest

from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.privacy import accounting
from lightning_dpg.privacy.budget import digits_up, rounded_up
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.composition import fits, headline
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.loss_distributions import composed_delta, hockey_stick
from lightning_dpg.release.statement import privacy_statement
from tests.characteristic import exact_delta
from tests.entries import entry, ledger_of

BELOW = 1 - 1e-10


def one_step(epsilon, sigma, q):
    """Larger delta of both directions, in fifty digits."""
    with mpmath.workdps(50):
        sigma, q, factor = mpmath.mpf(sigma), mpmath.mpf(q), mpmath.exp(epsilon)

        def chances(ratio):  # above the place where the mixture is so many times as likely
            x = sigma**2 * mpmath.log(1 + (ratio - 1) / q) + mpmath.mpf(1) / 2
            without, with_record = mpmath.ncdf(-x / sigma), mpmath.ncdf((1 - x) / sigma)
            return without, (1 - q) * without + q * with_record

        without, mixture = chances(factor)
        removed = mixture - factor * without
        if 1 / factor <= 1 - q:
            return removed
        without, mixture = chances(1 / factor)
        return max(removed, (1 - without) - factor * (1 - mixture))


@pytest.mark.parametrize("sigma", [0.15, 0.6, 5.0, 1e4])
@pytest.mark.parametrize("q", [1e-5, 0.1, 0.9999])
def test_one_step_at_and_between_the_points_of_its_grid(sigma, q):
    unit = min(q * math.sqrt(math.expm1(min(1 / sigma**2, 40))), 1 / sigma) / 16
    for factor in (0, 1, 16, 33.5, 80):
        truth = one_step(factor * unit, sigma, q)
        for resolution in (1e-6, 1e-12):
            delta = composed_delta(factor * unit, sampled=((sigma, q, 1),), resolution=resolution)
            assert truth * BELOW <= delta <= truth * 1.5 + resolution / 10


MIXTURES = [  # epsilon, Gaussian, pure, sampled
    (5.0, 1.0, [], []),
    (4.0, 0.0, [], [(2.0, 0.05, 2000)]),
    (1.2, 0.0, [], [(1.0, 1e-3, 1000), (5.0, 0.5, 10)]),
    (4.0, 0.5, [(0.5, 3), (0.1, 2)], [(1.0, 0.01, 1000)]),
    (4.0, 0.3, [(1.0, 1)], [(5.0, 0.9, 20), (3.0, 0.1, 100)]),
]


@pytest.mark.parametrize("mixture", MIXTURES)
def test_mixtures_against_an_integral(mixture):
    epsilon, mu, pure, sampled = mixture
    entries = [entry(noise_multiplier=1 / mu)] if mu else []
    entries += [entry("pure", epsilon=cost, steps=count) for cost, count in pure]
    entries += [
        entry(noise_multiplier=sigma, sample_rate=q, steps=count) for sigma, q, count in sampled
    ]
    truth = exact_delta(entries, epsilon)
    if not pure and not sampled:
        assert truth == pytest.approx(accounting.gdp_delta(mu, epsilon), rel=1e-10)
    delta = composed_delta(
        epsilon, mu=mu, pure=pure, sampled=tuple(sampled), resolution=float(truth)
    )
    assert truth * BELOW <= delta <= truth * 1.02 + 1e-9


@pytest.mark.parametrize("cost", [1e-6, 0.3, 5.0])
@pytest.mark.parametrize("count", [1, 30])
def test_pure_releases_against_binomial_sums(cost, count):
    with mpmath.workdps(50):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(cost)))
        for part in (0.0, 0.5, 0.99):
            truth = sum(
                mpmath.binomial(count, k)
                * p**k
                * (1 - p) ** (count - k)
                * max(0, 1 - mpmath.exp(part * cost * count - mpmath.mpf(cost) * (2 * k - count)))
                for k in range(count + 1)
            )
            delta = composed_delta(part * cost * count, pure=((cost, count),))
            assert truth * BELOW <= delta <= truth * (1 + 1e-9)


@pytest.mark.parametrize("mu", [1e-12, 1e-9, 1e-7, 1e-5, 1e-3, 1.0, 1e3])
def test_rounding_makes_no_gaussian_delta_smaller(mu):
    for deviations in (0, 1, 5, 30):
        epsilon = mu * deviations + mu**2 / 2
        with mpmath.workdps(50):
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            truth = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        assert accounting.gdp_delta(mu, epsilon) >= truth * BELOW
        assert float(hockey_stick(mu, np.array(epsilon))) >= truth * BELOW


@pytest.mark.parametrize("noise", [1e12, 1e200, math.inf])
def test_any_amount_of_noise_on_samples_is_afforded(noise):
    entries = [entry(noise_multiplier=noise, sample_rate=0.1, steps=5)]
    assert fits(entries, Budget(1.0, 1e-5))
    assert headline(entries, 1e-5)[0] < 0.01


@pytest.mark.parametrize("epsilon", [1e-5, 0.04413, 1 / 3, 1.234567, 4.0, 123.456789])
@pytest.mark.parametrize(("q", "steps"), [(1.0, 1), (0.05, 200)])
def test_what_is_stated_is_proved_and_within_the_budget(epsilon, q, steps):
    budget, count = Budget(epsilon, 1.2345678e-5), entry("pure", epsilon=epsilon / 10)
    sigma = calibrate_noise_multiplier(budget, sample_rate=q, steps=steps, other=[count])
    module = PrivateModule()
    module.ledger = ledger_of(
        *budget, count, entry(noise_multiplier=sigma, sample_rate=q, steps=steps)
    )
    statement = privacy_statement(module)
    assert statement["epsilon"] <= epsilon
    assert fits(module.ledger.entries, Budget(statement["epsilon"], budget.delta))
    said = statement["guarantee"].split("(")[1].split(")")[0].split(", ")
    assert [float(x) for x in said] == pytest.approx(
        [statement["epsilon"], budget.delta], rel=1e-14
    )


def test_stated_numbers_are_rounded_up():
    assert rounded_up(123.45641) == 123.4565
    assert rounded_up(0.33331) == 0.3334
    assert rounded_up(0.33331, budget=0.33333) == 0.33333
    assert rounded_up(0.33331, budget=0.3333) == 0.3334
    assert rounded_up(0.1 + 0.2) == 0.3
    assert [digits_up(x, 3) for x in (1.0501e-4, 1.05e-4, 999.1, 0.0)] == [
        "0.000106",
        "0.000105",
        "1e+03",
        "0",
    ]
