"""The plan of a run: noise, steps, epsilon and delta, without any data."""

import math

from lightning_dpg.privacy.budget import Budget, digits_up, rounded_up
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier, max_steps
from lightning_dpg.privacy.composition import entry_of, headline
from lightning_dpg.privacy.events import Gaussian

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


def plan(
    epsilon: float,
    delta: float,
    sample_rate: float,
    steps: int,
    noise_multiplier: float | None = None,
) -> str:
    """Write the plan of a run as text.

    Args:
        epsilon: Budget.
        delta: Budget.
        sample_rate: Probability that a step draws a record.
        steps: Number of private steps.
        noise_multiplier: Noise to evaluate; by default solved from the budget.
    """
    if not 0 < epsilon < math.inf or not 0 < delta < 1 or not 0 < sample_rate <= 1 or steps < 1:
        raise ValueError(
            "a plan needs epsilon > 0, 0 < delta < 1, 0 < sample rate <= 1 and steps >= 1, "
            f"got {epsilon:g}, {delta:g}, {sample_rate:g} and {steps}"
        )
    if noise_multiplier is not None and not noise_multiplier > 0:
        raise ValueError(f"the noise multiplier must be positive, got {noise_multiplier:g}")
    budget = Budget(epsilon, delta)
    sigma = noise_multiplier or calibrate_noise_multiplier(
        budget, sample_rate=sample_rate, steps=steps
    )
    spent, accountant = _headline(sigma, sample_rate, steps, delta)
    affordable = max_steps(budget, sigma, sample_rate=sample_rate)
    lines = [
        f"budget: epsilon {epsilon:g} at delta {delta:g}",
        f"plan: {steps} private steps at sample rate {sample_rate:g}",
        f"noise multiplier: {sigma:g}" + ("" if noise_multiplier else " (smallest that fits)"),
        f"epsilon spent: {rounded_up(spent):.4f} ({accountant} accountant, that of the budget)",
        f"steps that fit with this noise: {affordable}"
        + (" (OVER BUDGET)" if affordable < steps else ""),
        "",
        *_table(sigma, sample_rate, steps, delta),
    ]
    return "\n".join(lines)


def _headline(sigma: float, sample_rate: float, steps: int, delta: float) -> tuple[float, str]:
    return headline([entry_of(Gaussian(sigma, sample_rate), steps)], delta)


def _table(sigma: float, sample_rate: float, steps: int, delta: float) -> list[str]:
    """Epsilon by noise multiplier (rows) and steps (columns)."""
    columns = sorted({max(1, round(factor * steps)) for factor in FACTORS})
    rows = [sigma * math.sqrt(factor) for factor in FACTORS]
    lines = ["epsilon by noise multiplier and private steps:"]
    lines.append(f"{'':>10}" + "".join(f"{column:>10}" for column in columns))
    for row in rows:
        values = [_headline(row, sample_rate, column, delta)[0] for column in columns]
        lines.append(f"{row:>10.4g}" + "".join(f"{digits_up(value, 4):>10}" for value in values))
    return lines
