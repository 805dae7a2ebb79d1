"""The budget of a run: a value that is split into parts, and the smallest one that a plan keeps."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from lightning_dpg.errors import Refusal

# Shares are rounded numbers, so those of a whole may exceed it in the last digits.
_ROUNDING = Fraction(1, 10**9)
_SUMMING = 1e-11  # relative error of a sum of epsilons, and of a search for one
_MOST_NUMBER = 900 * 9  # the number of 10^9 among those of three digits


class BudgetTooSmall(Refusal):
    """No amount of noise lets the releases of a plan fit its budget. Nothing was booked."""


class Budget(NamedTuple):
    """The largest (epsilon, delta) that a ledger may reach; an infinite epsilon refuses nothing.

    Attributes:
        epsilon: Positive; infinite for a run without a guarantee.
        delta: From 0 to 1; 0 suffices for releases of pure epsilon.
    """

    epsilon: float
    delta: float

    def split(self, **shares: float) -> "dict[str, Budget]":
        """Divide the budget among releases, which compose by adding up.

        Parts are the nearest floating-point numbers, and their exact sum is at most the whole: where
        rounding has made it larger, the largest part gives way.

        Args:
            **shares: Part of the budget by name, positive, with a sum of at most 1. What they leave
                is not spent.

        Raises:
            Refusal: If they are out of range.
        """
        total = sum(map(Fraction, shares.values()))
        if not shares or not min(shares.values()) > 0 or total > 1 + _ROUNDING:
            pairs = ", ".join(f"{name} {share:g}" for name, share in shares.items())
            raise Refusal(f"shares must be positive and add up to 1 at most, got {pairs}")
        epsilons = _parts(self.epsilon, list(shares.values()))
        deltas = _parts(self.delta, list(shares.values()))
        return {
            name: Budget(*part)
            for name, part in zip(shares, zip(epsilons, deltas, strict=True), strict=True)
        }


def _parts(whole: float, shares: list[float]) -> list[float]:
    """Parts of a number, whose exact sum is at most the whole."""
    parts = [share * whole for share in shares]
    if math.isinf(whole):
        return parts
    largest = parts.index(max(parts))
    while (excess := sum(map(Fraction, parts)) - Fraction(whole)) > 0:
        less = float(Fraction(parts[largest]) - excess)
        parts[largest] = min(less, math.nextafter(parts[largest], 0))
    return parts


def smallest_epsilon(fits: Callable[[float], bool], above: float = 1e-6) -> float | None:
    """Smallest epsilon of three significant digits from which on a plan fits.

    Steps that double are tried upwards from ``above``. Nothing is tried far beyond the first one that
    fits: next to no epsilon, delta alone can pay for shares of it, and the accountants give up on the
    little noise of plans for astronomic budgets.

    Args:
        fits: Whether a plan keeps a budget of this epsilon.
        above: An epsilon that does not fit.

    Returns:
        An epsilon for which ``fits`` was asked and held while it failed for the number of three
        digits below; None if there is none up to 10^9.
    """
    low, step = _number(above), 1
    high = low + step
    while not fits(_three_digits(high)):
        if high == _MOST_NUMBER:
            return None
        low, step = high, 2 * step
        high = min(low + step, _MOST_NUMBER)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(_three_digits(middle)):
            high = middle
        else:
            low = middle
    return _three_digits(high)


def rounded_up(epsilon: float, budget: float = math.inf) -> float:
    """An epsilon to state: rounded up to four decimals, up to the rounding error of sums.

    Args:
        epsilon: What is proved.
        budget: An epsilon that is stated instead where it is enough and four decimals exceed it.
    """
    if math.isinf(epsilon):
        return epsilon
    least = epsilon * (1 - _SUMMING)
    rounded = math.ceil(least * 1e4) / 1e4
    return budget if least <= budget < rounded else rounded


def digits_up(value: float, digits: int) -> str:
    """A number that is not negative in so many significant digits, rounded up."""
    if not 0 < value < math.inf:
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    return f"{math.ceil(value * (1 - _SUMMING) / unit) * unit:.{digits}g}"


def digits_down(value: float, digits: int) -> str:
    """A positive number in so many significant digits, rounded down."""
    if not 0 < value < math.inf:
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - digits)
    return f"{math.floor(value * (1 + _SUMMING) / unit) * unit:.{digits}g}"


def advised_delta(num_pairs: int | None) -> str:
    """Advise a power of ten below one over the number of pairs of nodes, which is public.

    Args:
        num_pairs: Number of pairs of nodes; None if it is not known.
    """
    if num_pairs is None:
        return "set it below one over the number of pairs of nodes, which is public"
    least = 10.0 ** -len(str(num_pairs))
    return f"set it to {least:.0e} or less, below one over the number of pairs of nodes (public)"


def _number(epsilon: float) -> int:
    """Index, among the numbers of three digits, of the largest one up to ``epsilon``."""
    power = math.floor(math.log10(epsilon))
    return 900 * power + int(epsilon / 10.0**power * 100) - 100


def _three_digits(number: int) -> float:
    """The numbers of three digits in ascending order, 900 per power of ten."""
    power, digits = divmod(number, 900)
    return float(f"{digits + 100}e{power - 2}")
