"""Budgets: parts never exceed the whole, and the smallest one that keeps a plan."""

import math
from fractions import Fraction

import pytest

from lightning_dpg.privacy.budget import Budget, smallest_epsilon


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.3, 0.7, 1.0, 1e-3, 3.0, 1e9])
@pytest.mark.parametrize(
    "shares",
    [
        {"a": 0.05, "b": 0.25, "c": 0.7},
        {str(i): 0.1 for i in range(10)},
        {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3},
        {str(i): 1 / 7 for i in range(7)},
        {"a": 0.2 / 0.65, "b": 0.05 / 0.65, "c": 1 - 0.2 / 0.65 - 0.05 / 0.65},
    ],
)
def test_the_exact_sum_of_the_parts_is_at_most_the_whole(
    epsilon: float, shares: dict[str, float]
) -> None:
    parts = Budget(epsilon, 1e-6).split(**shares)
    for i, whole in enumerate((epsilon, 1e-6)):
        total = sum(Fraction(part[i]) for part in parts.values())
        assert Fraction(whole) * (1 - Fraction(1, 2**50)) <= total <= Fraction(whole)
    for name, share in shares.items():
        assert parts[name].epsilon == pytest.approx(share * epsilon, rel=1e-15)


def test_infinite_budgets_and_deltas_of_zero_split() -> None:
    assert Budget(math.inf, 0.0).split(a=0.3, b=0.7) == {
        "a": Budget(math.inf, 0.0),
        "b": Budget(math.inf, 0.0),
    }


@pytest.mark.parametrize("shares", [{}, {"a": 0.0}, {"a": -0.1, "b": 0.5}, {"a": 0.6, "b": 0.41}])
def test_shares_out_of_range_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="shares must be positive"):
        Budget(1.0, 1e-6).split(**shares)


@pytest.mark.parametrize(
    ("least", "named"),
    [(0.0512, 0.0512), (0.05121, 0.0513), (1.0, 1.0), (999.5, 1000), (2e-6, 2e-6)],
)
def test_the_smallest_epsilon_is_rounded_up_to_three_digits(least: float, named: float) -> None:
    assert smallest_epsilon(lambda epsilon: epsilon >= least) == named


def test_no_epsilon_is_enough() -> None:
    assert smallest_epsilon(lambda epsilon: False) is None


def test_a_smallest_epsilon_is_not_looked_for_where_delta_alone_pays() -> None:
    def fits(epsilon: float) -> bool:
        return epsilon < 1e-5 or 0.547 <= epsilon < 1e4

    assert smallest_epsilon(fits, above=0.5) == 0.547
    assert smallest_epsilon(fits, above=0.0999) == 0.547
