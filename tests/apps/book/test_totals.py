"""Totals of several runs are those of one ledger: known answers, and the accountant of others."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from lightning_dpg.apps.book import totals
from lightning_dpg.apps.book.filter import Spending, together
from lightning_dpg.apps.book.totals import SUM_OF_RUNS, node_level
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.composition import quick_epsilon
from lightning_dpg.privacy.meaning import group_budget
from tests.entries import entry


def pure(**values):
    return entry("pure", **values)


def run(epsilon, delta, *entries):
    return Spending(Budget(epsilon, delta), entries)


def spent(runs, delta):
    return totals.spent_epsilon(together(runs), delta)


def test_pure_runs_add_up_and_the_budgets_of_runs_where_that_is_less():
    both = [run(0.5, 0.0, pure(epsilon=0.5)), run(0.25, 0.0, pure(epsilon=0.25))]
    assert spent(both, 1e-6) == (0.75, "sum of pure epsilons")
    assert spent([], 1e-6)[0] == 0
    # A run whose own ledger holds it to less than this accountant can prove of one entry.
    tight = [run(0.5, 1e-6, entry("gaussian", noise_multiplier=1.0))]
    assert spent(tight, 1e-6) == (0.5, SUM_OF_RUNS)


@pytest.mark.parametrize(("size", "expected"), [(2, 2.155), (5, 6.167), (10, 14.43)])
def test_gaussian_noise_of_a_group_has_the_known_epsilons(size, expected):  # PRIVACY 7.2
    one = entry("gaussian", noise_multiplier=3.7306)  # (1, 1e-5)
    assert node_level([one], 1e-5, size) == pytest.approx(expected, rel=1e-3)


def test_node_level_of_pure_and_of_sampled_releases():
    assert node_level([], 1e-6, 5) == 0
    assert node_level([pure(epsilon=0.2, steps=2)], 0.0, 5) == pytest.approx(2.0)
    sampled = [entry("gaussian", noise_multiplier=4.0, sample_rate=0.05, steps=500)]
    found = node_level(sampled, 1e-5, 3)
    by_hand = []  # the best of many deltas of one edge
    for delta in np.geomspace(1e-30, 1e-5, 500):
        together = group_budget(quick_epsilon(sampled, delta), delta, 3)
        by_hand += [together.epsilon] if together.delta <= 1e-5 else []
    assert min(by_hand) <= found <= 1.05 * min(by_hand)


def test_node_level_of_mixed_releases_is_that_of_a_group():
    """Twice the shift of the noise, and twice the pure epsilon, by distributions of others."""
    distributions = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    from dp_accounting.pld import common

    size, sigma, epsilon = 2, 12.0, 0.2
    noisy = distributions.from_gaussian_mechanism(sigma, sensitivity=size).self_compose(3)
    bits = common.DifferentialPrivacyParameters(size * epsilon, 0.0)
    exact = noisy.compose(distributions.from_privacy_parameters(bits))
    entries = [entry("gaussian", noise_multiplier=sigma, steps=3), pure(epsilon=epsilon)]
    found = node_level(entries, 1e-6, size)
    assert found == pytest.approx(exact.get_epsilon_for_delta(1e-6), rel=5e-3)


@pytest.mark.parametrize("size", [2, 4])
def test_node_level_of_sampled_noise_is_above_the_exact_mixture(size):
    """How many of a node's edges are drawn is binomial, and each that is adds to the shift."""
    distributions = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    q, sigma, steps, delta = 0.05, 8.0, 100, 1e-6
    drawn = [math.comb(size, k) * q**k * (1 - q) ** (size - k) for k in range(size + 1)]
    exact = distributions.from_mixture_gaussian_mechanism(sigma, list(range(size + 1)), drawn)
    exact = exact.self_compose(steps).get_epsilon_for_delta(delta)
    sampled = [entry("gaussian", noise_multiplier=sigma, sample_rate=q, steps=steps)]
    assert exact < node_level(sampled, delta, size) < 1.5 * exact


def test_node_level_of_releases_that_may_fail_and_of_randomized_response():
    """All answers of D bits, and of a release that shows a bit with probability delta."""
    size, epsilon, delta = 3, 0.4, 1e-4
    yes = 1 / (1 + math.exp(-epsilon))
    truth, lies = yes**size, (1 - yes) ** size
    assert math.log(truth / lies) == pytest.approx(node_level([pure(epsilon=epsilon)], 0.0, size))
    of_one = entry("approximate", epsilon=epsilon, delta=delta)
    needed = delta * sum(math.exp(k * epsilon) for k in range(size))
    assert node_level([of_one], needed * (1 + 1e-9), size) == pytest.approx(size * epsilon)
    assert node_level([of_one], needed * (1 - 1e-6), size) == math.inf


def dk2(bound, joint, delta, *, is_late=False):
    """T and joint degrees, as earlier versions booked them at last and at first."""
    kinds = ("pure", "approximate") if is_late else ("approximate", "pure")
    deltas = (0.0, delta) if is_late else (delta, 0.0)
    keys = ("largest_degrees", "joint_degrees")
    return [
        entry(kind, key=key, epsilon=epsilon, delta=d)
        for kind, key, epsilon, d in zip(kinds, keys, (bound, joint), deltas, strict=True)
    ]


def test_joint_degrees_of_a_node_by_exact_laws_of_their_bound():
    """All graphs of five nodes, and what removes three edges of a node one by one."""
    bound, joint, delta, size = 2.0, 0.3, 0.05, 3
    q = math.exp(-bound / 2)  # an edge moves the sum of the two largest degrees by 2 at most
    tail = math.ceil(math.log(delta) / math.log(q))
    noise = np.arange(-200, 201)
    law = (1 - q) / (1 + q) * q ** np.abs(noise)

    def below(largest, needed):
        return law[largest + noise + tail < needed].sum()

    pairs = list(itertools.combinations(range(5), 2))
    worst = 0.0
    for bits in itertools.product([False, True], repeat=len(pairs)):
        edges = list(itertools.compress(pairs, bits))
        of_node = [pair for pair in edges if 0 in pair]
        if len(of_node) != size:
            continue
        path = [[pair for pair in edges if pair not in of_node[:k]] for k in range(size + 1)]
        sums = [sum(sorted(Counter(itertools.chain(*graph)).values())[-2:]) for graph in path]
        needed = max(map(min, itertools.pairwise(sums)))
        worst = max(worst, below(sums[0], needed), below(sums[-1], needed))
    # The joint degrees as a release of their own would have a smaller delta than this.
    assert worst > group_budget(joint, delta, size).delta
    assert worst <= math.exp((size - 1) * bound) * delta
    for is_late in (False, True):
        entries = dk2(bound, joint, delta * 1e-3, is_late=is_late)
        assert node_level(entries, worst * 1e-3, size) == math.inf
        stated = group_budget(bound + joint * is_late, delta * 1e-3, size).delta
        assert stated >= math.exp((size - 1) * bound) * delta * 1e-3
        assert node_level(entries, stated * (1 + 1e-9), size) == pytest.approx(
            size * (bound + joint)
        )
        assert node_level(entries, stated * (1 - 1e-6), size) == math.inf


def test_joint_degrees_of_earlier_versions_prove_nothing_of_a_node_without_their_bound():
    _, joint = dk2(0.1, 0.2, 1e-9, is_late=True)
    assert node_level([joint], 1e-3, 5) == math.inf
    # A run that was stopped behind T owes the delta as one that went on.
    bound, owed = dk2(0.1, 0.0, 1e-9, is_late=True)
    needed = group_budget(0.1, 1e-9, 5).delta
    assert node_level([bound, owed], needed * (1 + 1e-9), 5) == pytest.approx(0.5)
    assert node_level([bound, owed], needed * (1 - 1e-6), 5) == math.inf
