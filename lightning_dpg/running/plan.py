"""The plan of a run: noise, steps, epsilon and delta, without any data."""

import math

import numpy as np

from lightning_dpg.privacy.accounting import (
    noise_multiplier_for,
    prv_epsilon,
    rdp_gaussian,
    rdp_to_epsilon,
    steps_for,
)

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


def plan(
    epsilon: float,
    delta: float,
    sample_rate: float,
    steps: int,
    noise_multiplier: float | None = None,
) -> str:
    """The plan of a run as text.

    Args:
        epsilon: Budget.
        delta: Budget.
        sample_rate: Probability with which a step draws each record.
        steps: Number of private steps.
        noise_multiplier: Noise to judge; solved from the budget by default.
    """
    if not 0 < epsilon < math.inf or not 0 < delta < 1 or not 0 < sample_rate <= 1 or steps < 1:
        raise ValueError(
            "a plan needs epsilon > 0, 0 < delta < 1, 0 < sample rate <= 1 and steps >= 1, "
            f"got {epsilon:g}, {delta:g}, {sample_rate:g} and {steps}"
        )
    if noise_multiplier is not None and not noise_multiplier > 0:
        raise ValueError(f"the noise multiplier must be positive, got {noise_multiplier:g}")
    sigma = noise_multiplier or noise_multiplier_for(epsilon, delta, sample_rate, steps)
    spent = _epsilon(sigma, sample_rate, steps, delta)
    prv = prv_epsilon(((sigma, sample_rate, steps),), delta)
    affordable = steps_for(epsilon, delta, sigma, sample_rate)
    lines = [
        f"budget: epsilon {epsilon:g} at delta {delta:g}",
        f"plan: {steps} private steps at sample rate {sample_rate:g}",
        f"noise multiplier: {sigma:g}" + ("" if noise_multiplier else " (smallest that fits)"),
        f"epsilon spent: {spent:.4f} (RDP, which the budget is held by)"
        + ("" if prv is None else f", {prv:.4f} (PRV, as reported at the end)"),
        f"steps that fit with this noise: {affordable}"
        + (" (OVER BUDGET)" if affordable < steps else ""),
        "",
        *_table(sigma, sample_rate, steps, delta),
    ]
    return "\n".join(lines)


def _epsilon(sigma: float, sample_rate: float, steps: int, delta: float) -> float:
    return rdp_to_epsilon(steps * np.asarray(rdp_gaussian(sigma, sample_rate)), delta)


def _table(sigma: float, sample_rate: float, steps: int, delta: float) -> list[str]:
    """Epsilon by noise multiplier (rows) and steps (columns)."""
    columns = sorted({max(1, round(factor * steps)) for factor in FACTORS})
    rows = [sigma * math.sqrt(factor) for factor in FACTORS]
    lines = ["epsilon (RDP) by noise multiplier and private steps:"]
    lines.append(f"{'':>10}" + "".join(f"{column:>10}" for column in columns))
    for row in rows:
        values = [_epsilon(row, sample_rate, column, delta) for column in columns]
        lines.append(f"{row:>10.4g}" + "".join(f"{value:>10.4g}" for value in values))
    return lines
