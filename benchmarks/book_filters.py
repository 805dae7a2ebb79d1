"""How many runs the budget book lets in one after another, and what its rules alone would.

It prints the numbers of the table in docs/book.md. Each run alone spends a twelfth of the total's epsilon.
"""

from collections.abc import Callable, Sequence

from lightning_dpg.apps.book.filter import Spending, _renyi_passes, passes, together
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_gaussian
from lightning_dpg.privacy.composition import entry_of, fits
from lightning_dpg.privacy.events import Event, Gaussian, Pure

TOTAL = Budget(1.0, 1e-6)
SHARE = TOTAL.epsilon / 12
Runs = Sequence[Spending]


def one_ledger(runs: Runs) -> bool:
    """Whether one ledger would hold all runs to the total, had all been planned in advance."""
    return fits([entry for run in runs for entry in run.entries], TOTAL)


RULES: dict[str, Callable[[Runs], bool]] = {
    "sums": lambda runs: passes(TOTAL, "sum", together(runs)),
    "Renyi": lambda runs: _renyi_passes(TOTAL, together(runs)),
    "the book": lambda runs: passes(TOTAL, "split", together(runs)),
    "planned in advance": one_ledger,
}


def of_pure(epsilon: float) -> Spending:
    """A run of one release of pure epsilon."""
    return Spending(Budget(epsilon, 0.0), [entry_of(Pure(epsilon), 1)])


def of_noise(delta: float, sample_rate: float = 1.0, steps: int = 1) -> Spending:
    """A run of Gaussian noise that spends a twelfth of the total's epsilon, at a delta."""
    budget = Budget(SHARE, delta)
    low, high = 1.0, calibrate_gaussian(budget) * steps**0.5
    while high - low > 1e-4 * low:
        middle = (low + high) / 2
        keeps = fits([entry_of(Gaussian(middle, sample_rate), steps)], budget)
        low, high = (low, middle) if keeps else (middle, high)
    event: Event = Gaussian(high, sample_rate)
    return Spending(budget, [entry_of(event, steps)])


def count(is_let_in: Callable[[Runs], bool], kinds: Runs) -> int:
    """How many runs, of several kinds in turn, are let in."""
    low, high = 0, 1024
    while high - low > 1:
        middle = (low + high) // 2
        runs = [kinds[number % len(kinds)] for number in range(middle)]
        low, high = (middle, high) if is_let_in(runs) else (low, middle)
    return low


def main(args: list[str]) -> None:
    """Print the table."""
    if args:
        raise SystemExit("book_filters has no options")
    delta = TOTAL.delta
    training = of_noise(delta, sample_rate=0.05, steps=500)
    sequences = {
        f"training, 500 steps at rate 0.05, delta {delta:g}": [training],
        "the same at a twelfth of delta": [of_noise(delta / 12, 0.05, 500)],
        f"one release with Gaussian noise, delta {delta:g}": [of_noise(delta)],
        "pure": [of_pure(SHARE)],
        "pure, a hundredth of epsilon": [of_pure(TOTAL.epsilon / 100)],
        "training and pure in turn": [training, of_pure(SHARE)],
    }
    print("| runs | " + " | ".join(RULES) + " |")
    print("|---" * (len(RULES) + 1) + "|")
    for name, kinds in sequences.items():
        found = [str(count(rule, kinds)) for rule in RULES.values()]
        print(f"| {name} | " + " | ".join(found) + " |")
