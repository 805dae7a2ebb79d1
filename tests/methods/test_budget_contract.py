"""Every private method keeps every budget, or refuses it with the smallest sufficient one."""

import itertools
import math
import re
from collections import Counter

import pytest
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.methods import PrivateModule
from lightning_dpg.privacy.ledger import Budget, LedgerEntry
from tests.characteristic import exact_delta
from tests.small_methods import METHODS, SIZES, made, marks_of

EPSILONS = (0.05, 0.1, 0.3, 0.5, 0.7, 1.0, 3.0)
DELTAS = (1e-4, 1e-6)
STEPS = (1, 10, 100, 2000)
BUDGETS = list(itertools.product(EPSILONS, DELTAS, STEPS))

# What the constructors ask for, and settings that spend in other ways.
SETTINGS = {
    "DPNetGAN": [{}, {"count_epsilon": 0.2, "degree_share": 0.5}, {"noise_multiplier": 1.5}],
    "NodeAttributeMoments": [{"max_degree": 5}],
    "KatzPrivCom": [{"max_degree": 5, "hops": 1}],
    "PrivateGraphKernel": [{"features": ["edges", "w"], "max_degree": 5}],
    "GaussianGraphKernel": [{"features": ["edges", "w"], "max_degree": 5}],
    "PrivateGraphKernelAsPublished": [{"features": ["edges", "w"], "max_degree": 5}],
    "RandomizedResponse": [{}, {"denoise": "spectral", "degree_share": 0.2}],
}
# Of trained methods, whose noise is solved for: few steps beside the default, and then the ends.
COARSE = list(itertools.product(EPSILONS, DELTAS, (10,)))
ENDS = list(itertools.product(EPSILONS, DELTAS, (1, 2000)))
# Methods whose plan is written where their class is split.
AWAITED: set[str] = set()
# Small networks, where there are any: what a plan costs does not depend on their sizes.
SMALL = SIZES | {"num_nodes": 20}


def is_private(name):
    if not METHODS[name].capabilities.adds_noise:
        return False
    method = made(name, SMALL, **SETTINGS.get(name, [{}])[0])
    return method.capabilities.adds_noise and method.hparams.get("noise_multiplier") != 0


PRIVATE = [name for name in METHODS if is_private(name)]
PLANNED = [name for name in PRIVATE if METHODS[name].plan is not PrivateModule.plan]
CASES = [(name, settings) for name in PLANNED for settings in SETTINGS.get(name, [{}])]
GRIDS = [
    pytest.param(
        name,
        settings,
        grid,
        id="-".join([name, *map(str, settings.values()), str(len(grid))]),
        # The noise of each budget is solved for, which takes a tenth of a second.
        marks=[pytest.mark.slow] if grid is ENDS else marks_of(name),
    )
    for name, settings in CASES
    for grid in ([COARSE, ENDS] if METHODS[name].capabilities.is_trained else [BUDGETS])
]


def is_kept(entries: list[LedgerEntry], budget: Budget) -> bool:
    """Whether entries keep a budget, by characteristic functions and without the accountant."""
    pure = math.fsum(e.steps * e.event.pure_epsilon for e in entries)
    if all(e.event.mechanism in ("pure", "approximate") for e in entries):
        failure = math.fsum(e.steps * e.event.total_delta for e in entries)
        return pure <= budget.epsilon and failure <= budget.delta
    return exact_delta(entries, budget.epsilon) <= budget.delta * (1 + 1e-6)


def outcome(method: PrivateModule, budget: Budget, steps: int) -> float | None:
    """None where the budget is accepted, or the smallest epsilon that is named."""
    try:
        method.accept_budget(budget, steps)
    except MisconfigurationException as error:
        assert len(str(error).splitlines()) <= 5
        return float(re.search(r"set it to (\S+) or more", str(error)).group(1))
    method.ledger.budget = None  # for the next budget
    return None


def test_every_private_method_plans_its_run():
    assert set(PRIVATE) - set(PLANNED) <= AWAITED


@pytest.mark.parametrize(("name", "settings", "grid"), GRIDS)
def test_a_budget_is_kept_or_refused_with_the_smallest_that_is(
    name, settings, grid, record_property
):
    method, tally = made(name, SMALL, **settings), Counter()
    for number, (epsilon, delta, steps) in enumerate(grid):
        budget = Budget(epsilon, delta)
        least = outcome(method, budget, steps)
        if least is None:
            tally["run"] += 1
            entries = method.plan(budget, steps)
            assert entries
            is_sampled = any(e.event.sample_rate < 1 for e in entries)
            if not is_sampled or number % 28 == 9:  # moments of sampled steps take a second
                assert is_kept(entries, budget), (budget, steps)
        else:
            tally["refused"] += 1
            assert least > epsilon
            assert outcome(method, Budget(least, delta), steps) is None
            assert outcome(method, Budget(0.97 * least, delta), steps) is not None
        tally["booked"] += len(method.ledger.entries)
    for outcome_name in ("run", "refused", "booked"):
        record_property(outcome_name, tally[outcome_name])
    assert tally["run"] + tally["refused"] == len(grid)
    assert tally["booked"] == 0
    assert method.ledger.budget is None


def test_a_plan_is_a_pure_function():
    for name, settings in CASES:
        method = made(name, SMALL, **settings)
        before = {key: value.clone() for key, value in method.state_dict().items()}
        first, again = (method.plan(Budget(3.0, 1e-5), 10) for _ in range(2))
        assert first == again
        assert all(entry.key and entry.proof for entry in first)
        for key, value in method.state_dict().items():
            assert value.equal(before[key]) or value.isnan().equal(before[key].isnan())
