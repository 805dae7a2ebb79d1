"""Lower bounds on epsilon equal known answers, and detect planted mistakes."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from lightning_dpg.apps.audit.bounds import (
    best_threshold,
    epsilon_lower_bound,
    guess_half,
    inclusion_estimate,
    many_runs_lower_bound,
    share_lower_bound,
)
from lightning_dpg.privacy import dpsgd
from lightning_dpg.privacy.dpsgd import DPSGD, clipped_gradient_sum
from lightning_dpg.privacy.ledger import PrivacyLedger, Relation
from lightning_dpg.privacy.mechanisms import randomized_response, response_rates
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import noise_of, pay
from lightning_dpg.privacy.selection import choose_in_turns
from tests import entries
from tests.entries import entry


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "delta", "bound"),
    [
        (100, 100, 60, 0, 0.0519),
        (100, 100, 75, 0, 0.7022),
        (1000, 1000, 620, 0, 0.3806),
        (1000, 1000, 731, 0, 0.8806),
        (1000, 200, 190, 1e-5, 2.3936),
        (1000, 200, 200, 1e-5, 4.1665),
        (200, 40, 40, 1e-5, 2.5482),
    ],
)
def test_known_answers_of_one_run(canaries, guesses, correct, delta, bound):
    assert epsilon_lower_bound(canaries, guesses, correct, delta) == pytest.approx(bound, abs=1e-3)


@pytest.mark.parametrize(("runs", "bound"), [(250, 4.21), (1000, 5.60)])
def test_known_answers_of_many_runs(runs, bound):
    assert many_runs_lower_bound(runs, runs, 0, runs, 0.0) == pytest.approx(bound, abs=5e-3)
    # The other way round it is a proof, too: of guesses that are always wrong.
    assert many_runs_lower_bound(0, runs, runs, runs, 0.0) == 0.0


def test_guesses_at_chance_prove_nothing_and_bounds_grow_with_what_is_right():
    assert epsilon_lower_bound(100, 50, 25, 0.0) == epsilon_lower_bound(100, 0, 0, 0.0) == 0.0
    assert many_runs_lower_bound(50, 100, 50, 100, 0.0) == 0.0
    bounds = [epsilon_lower_bound(100, 50, correct, 1e-4) for correct in range(51)]
    assert bounds == sorted(bounds) and bounds[-1] > 2
    # All right: the smallest epsilon for which 0.95 of the runs are not all right, in closed form.
    right = 0.05 ** (1 / 50)
    assert epsilon_lower_bound(50, 50, 50, 0.0) == pytest.approx(math.log(right / (1 - right)))
    assert epsilon_lower_bound(50, 50, 50, 1e-3) < epsilon_lower_bound(50, 50, 50, 0.0)
    with pytest.raises(ValueError, match="correct <= guesses"):
        epsilon_lower_bound(10, 5, 6, 0.0)
    with pytest.raises(ValueError, match="confidence"):
        many_runs_lower_bound(1, 1, 0, 1, 0.0, 1.0)
    with pytest.raises(ValueError, match="3 of 1"):
        many_runs_lower_bound(1, 1, 3, 1, 0.0)


def test_bounds_of_randomized_response_are_rarely_above_its_epsilon():
    """Its guesses are right as often as any mechanism's can be, so that errors are about 5 %."""
    rng, epsilon, total = np.random.default_rng(0), 1.5, 150
    truth = rng.random((total, 400)) < response_rates(epsilon)[0]
    inserted = torch.from_numpy(rng.random((total, 400)) < 0.5)
    above, bounds = 0, []
    for right, coins in zip(torch.from_numpy(truth), inserted, strict=True):
        guesses = guess_half((right == coins).double(), coins)
        bounds.append(epsilon_lower_bound(400, *guesses, 0.0))
        above += bounds[-1] > epsilon
    assert above <= 0.05 * total + 4 * (0.05 * 0.95 * total) ** 0.5
    assert np.mean(bounds) > 0.9


def test_half_of_the_canaries_are_guessed_without_a_look_at_the_coins():
    scores = torch.tensor([0.3, 9.0, -1.0, 0.5, 0.4, 0.2, 0.1, 7.0, 0.35])
    inserted = torch.zeros(9, dtype=torch.bool)
    assert guess_half(scores, inserted) == (4, 2)  # in: 9 and 7; out: -1 and 0.1
    inserted[[1, 2]] = True
    assert guess_half(scores, inserted) == (4, 2)
    inserted[2] = False
    assert guess_half(scores, inserted) == (4, 3)
    # Equal scores: the first are guessed out, the last in.
    assert guess_half(torch.zeros(8), torch.arange(8) > 5) == (4, 4)


@pytest.mark.parametrize(("fits", "canaries"), [(400, 1), (60, 16)])
def test_bounds_of_a_share_are_rarely_above_it_and_come_near(fits, canaries):
    rng, share, total = np.random.default_rng(0), 0.6, 200
    right = torch.from_numpy(rng.binomial(canaries, share, (total, fits)) / canaries)
    bounds = np.array([share_lower_bound(each, canaries) for each in right])
    assert (bounds > share).sum() <= 0.05 * total + 4 * (0.05 * 0.95 * total) ** 0.5
    # A normal interval is shorter by a third; bets are limited where shares hardly scatter.
    error = (share * (1 - share) / fits / canaries) ** 0.5
    assert share - bounds.mean() < 4 * error


def test_bounds_of_a_share_hold_for_fits_that_reveal_all_or_nothing():
    """No fit has independent guesses: all of them are right, or all of them wrong."""
    rng = np.random.default_rng(0)
    right = torch.from_numpy((rng.random((200, 60)) < 0.6).astype(float))
    assert sum(share_lower_bound(each, 64) > 0.6 for each in right) <= 22
    # Ten gains of nine tenths of the capital at the odds of m make it 20.
    assert share_lower_bound(torch.ones(10), 4) == pytest.approx(0.9 / (20**0.1 - 0.1))
    assert share_lower_bound(torch.zeros(10), 4) == 0


@pytest.mark.parametrize("std", [0.3, 50.0])
def test_estimate_of_a_sum_is_the_linear_one_of_least_error(std):
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(6, 9, generator=generator, dtype=torch.double)
    noisy = torch.randn(9, generator=generator, dtype=torch.double)
    # Regression of the coins on the sum, by the covariances of both.
    variance = 0.2 * 0.8
    spread = variance * directions.T @ directions + std**2 * torch.eye(9)
    expected = directions @ torch.linalg.solve(spread, noisy)
    torch.testing.assert_close(inclusion_estimate(noisy, directions, std, 0.2), expected)


def test_without_noise_the_coins_are_found():
    directions = torch.randn(20, 30, generator=torch.Generator().manual_seed(1))
    coins = torch.arange(20) % 3 == 0
    rest = directions[coins].sum(0) - 0.5 * directions.sum(0)
    estimate = 0.25 * inclusion_estimate(rest, directions, 0.0, 0.5)
    torch.testing.assert_close(estimate, coins.float() - 0.5, rtol=0, atol=1e-3)


def test_an_observer_receives_what_is_released_and_nothing_else_changes():
    def utilities(chosen, stop):
        return torch.ones(stop - len(chosen), 2).long(), torch.zeros(1, 2)

    releases = {
        "gaussian": (torch.zeros(3), entries.entry(noise_multiplier=2.0), noise_of),
        "laplace": (torch.arange(3), entries.entry("pure", epsilon=1.0), noise_of),
        "exact": (torch.arange(3), entries.entry("pure", epsilon=math.inf), noise_of),
        "bits": (
            torch.arange(3),
            entries.entry("pure", epsilon=1.0),
            partial(randomized_response, num_bits=9),
        ),
        "choices": (
            torch.arange(2),
            entries.entry("pure", epsilon=1.0),
            partial(choose_in_turns, stops=[3, 5], utilities=utilities),
        ),
    }
    books = []
    for is_watched in (True, False):
        ledger, noise, seen = PrivacyLedger(Relation.EDGE), NoiseSource(unsafe_seed=0), []
        if is_watched:
            ledger.observer = lambda key, noisy, seen=seen: seen.append((key, noisy))
        results = {
            name: pay(replace(read, key=name), value, ledger, noise, law(read))
            for name, (value, read, law) in releases.items()
        }
        assert all(results[name] is noisy for name, noisy in seen)
        assert [name for name, _ in seen] == (list(releases) if is_watched else [])
        books.append((ledger.entries, {name: value.tolist() for name, value in results.items()}))
    assert books[0] == books[1]


# What follows are trainings with a mistake each. Every canary has a parameter of its own, so that
# they are as many independent runs.
COUNT, STEPS, DELTA = 5000, 4, 0.05


def train(inserted, noise, *, sigma=1.0, rate=0.5, booked_rate=None, copies=1, scale=1.0):
    """Sum of the noisy gradients of each canary's parameter, and the ledger."""
    weight, ledger = nn.Parameter(torch.zeros(COUNT)), PrivacyLedger(Relation.EDGE)
    seen = torch.zeros(COUNT)
    ledger.observer = lambda _, noisy: seen.add_(noisy)
    read = entry(
        name="gradient",
        proof="edge_gradient_sensitivity",
        noise_multiplier=sigma,
        sample_rate=booked_rate or rate,
    )
    records, coins = inserted.nonzero().flatten().repeat(copies), NoiseSource()

    def loss(parameters, record):
        return scale * parameters["weight"].gather(0, record[None]).sum()

    for _ in range(STEPS):
        drawn = records[coins.bernoulli(len(records), rate)]
        DPSGD(sigma, 1.0).backward(
            partial(clipped_gradient_sum, loss, {"weight": weight}, (drawn,)),
            {"weight": weight},
            ledger=ledger,
            entry=read,
            noise=noise,
            expected_size=1.0,
        )
    return seen, ledger


def bound(scores, inserted):
    inside, outside = scores[inserted], scores[~inserted]
    i, o = len(inside) // 2, len(outside) // 2
    threshold = best_threshold(inside[:i], outside[:o], DELTA)
    hits, errors = ((part >= threshold).sum() for part in (inside[i:], outside[o:]))
    return many_runs_lower_bound(
        int(hits), len(inside) - i, int(errors), len(outside) - o, DELTA, 0.99
    )


@pytest.fixture
def inserted():
    return torch.rand(COUNT, generator=torch.Generator().manual_seed(0)) < 0.5


def test_honest_training_passes(inserted):
    seen, ledger = train(inserted, NoiseSource())
    assert 0 < bound(seen, inserted) <= ledger.epsilon(DELTA)


@pytest.mark.parametrize(
    "mistake",
    [{"booked_rate": 0.1, "rate": 1.0}, {"copies": 2, "rate": 1.0, "sigma": 2.0}],
    ids=["accountant fed a tenth of the rate", "both orientations are records"],
)
def test_wrong_books_are_caught(inserted, mistake):
    seen, ledger = train(inserted, NoiseSource(), **mistake)
    assert bound(seen, inserted) > ledger.epsilon(DELTA)


def test_a_huge_gradient_that_is_not_clipped_is_caught(inserted, monkeypatch):
    seen, ledger = train(inserted, NoiseSource(), scale=100.0)
    assert bound(seen, inserted) <= ledger.epsilon(DELTA)
    monkeypatch.setattr(dpsgd, "clip_factor", lambda squared, _: torch.ones_like(squared))
    seen, ledger = train(inserted, NoiseSource(), scale=100.0)
    assert bound(seen, inserted) > ledger.epsilon(DELTA)


@pytest.mark.parametrize("reused", [True, False])
def test_noise_that_a_resumed_run_repeats_is_caught(inserted, reused):
    keys = (1, 1) if reused else (1, 2)
    parts = [train(inserted, NoiseSource(unsafe_seed=key), sigma=4.0) for key in keys]
    ledger = PrivacyLedger(Relation.EDGE)
    for _, booked in parts:
        for read in booked.entries:
            ledger.spend(read)
    difference = (parts[0][0] - parts[1][0]).abs().round(decimals=3)
    assert (bound(difference, inserted) > ledger.epsilon(DELTA)) == reused
