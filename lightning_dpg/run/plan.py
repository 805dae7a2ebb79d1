"""The plan of a run: noise, steps, epsilon and delta, without any data."""

import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import NamedTuple

from lightning_dpg.advice import OF_SETS, Facts, Goal, Kind, hints_of, recommend
from lightning_dpg.errors import CommandError
from lightning_dpg.privacy.budget import Budget, digits_up, rounded_up
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier, max_steps
from lightning_dpg.privacy.composition import entry_of, headline
from lightning_dpg.privacy.events import Gaussian
from lightning_dpg.privacy.second_opinion import SecondOpinion, second_opinion
from lightning_dpg.run.messages import readable_errors
from lightning_dpg.run.shipped import configuration_of

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Plan:
    """Noise and cost of the private steps of a run; ``str(plan)`` is a text with a table.

    Attributes:
        budget: Epsilon and delta of the run.
        sample_rate: Probability that a step draws a record.
        steps: Number of private steps.
        sigma: Noise multiplier.
        is_calibrated: Whether ``sigma`` is the smallest one that fits the budget.
        epsilon: Epsilon that the steps spend, rounded up.
        accountant: Accountant of that epsilon.
        max_steps: Largest number of steps within the budget with this noise.
    """

    budget: Budget
    sample_rate: float
    steps: int
    sigma: float
    is_calibrated: bool
    epsilon: float
    accountant: str
    max_steps: int

    @cached_property
    def second_opinion(self) -> SecondOpinion | None:
        """Epsilon by opacus, which imports PyTorch; None where it has no number."""
        step = Gaussian(self.sigma, self.sample_rate)
        return second_opinion([entry_of(step, self.steps)], self.budget.delta)

    def __str__(self) -> str:
        """Write the plan as text, with the epsilons of nearby settings."""
        lines = [
            f"budget: epsilon {self.budget.epsilon:g} at delta {self.budget.delta:g}",
            f"plan: {self.steps} private steps at sample rate {self.sample_rate:g}",
            f"noise multiplier: {digits_up(self.sigma, 6)}"
            + (" (smallest that fits)" if self.is_calibrated else ""),
            f"epsilon spent: {self.epsilon:.4f} ({self.accountant} accountant, that of the budget)",
            f"steps that fit with this noise: {self.max_steps}"
            + (" (OVER BUDGET)" if self.max_steps < self.steps else ""),
            "",
            *_table(self.sigma, self.sample_rate, self.steps, self.budget.delta),
        ]
        return "\n".join(lines)


class Choice(NamedTuple):
    """A method for a goal; ``str(choice)`` gives the reason.

    Attributes:
        configuration: Its name for :func:`lightning_dpg.fit`.
        method: Name of its class in ``lightning_dpg.methods``.
        hints: What the command line says.
    """

    configuration: str
    method: str
    hints: list[str]

    def __str__(self) -> str:
        """Return the hints as text."""
        return "\n".join(self.hints)


def plan(
    *,
    epsilon: float,
    delta: float | None = None,
    sample_rate: float | None = None,
    steps: int | None = None,
    noise_multiplier: float | None = None,
    goal: Goal | None = None,
    num_nodes: int | None = None,
    num_edges: float | None = None,
    num_graphs: int | None = None,
    kind: Kind | None = None,
    attributes: bool = False,
    hubs: bool = False,
) -> Plan | Choice:
    """Choose a method for a goal, or plan the noise of a run with Gaussian steps. No data are read.

    Args:
        epsilon: Budget.
        delta: Budget; 0 by default with ``goal``.
        sample_rate: Probability that a step draws a record.
        steps: Number of private steps.
        noise_multiplier: Noise to evaluate; by default solved from the budget.
        goal: What a release is for, such as ``links``, in place of ``sample_rate`` and ``steps``.
        num_nodes: Number of nodes (public), which a goal of one graph needs.
        num_edges: Number of edges, if it is public or released; of a set those of all graphs.
        num_graphs: Number of graphs of a set (public).
        kind: Kind of the graph; by default ``undirected``.
        attributes: Whether attributes of the nodes are public.
        hubs: Whether one node in a hundred, or more, has over ten times the mean degree (public).

    Returns:
        :class:`Choice` for a goal, with ``configuration``, ``method`` and ``hints``; else
        :class:`Plan`, with ``sigma``, ``epsilon``, ``max_steps`` and ``second_opinion``.

    Raises:
        CommandError: If a number is missing or out of its range.

    Example:
        >>> import lightning_dpg as dpg
        >>> choice = dpg.plan(goal="shape", epsilon=1.0, num_nodes=34)
        >>> print(choice)
        for the shape of a graph at epsilon 1 on 34 nodes take BTER: it has the smallest errors in ...
        >>> dpg.fit("karate", choice.configuration, epsilon=1.0).relation
        'edge'
        >>> run_plan = dpg.plan(epsilon=2.0, delta=1e-6, sample_rate=0.05, steps=2000)
        >>> print(f"noise multiplier {run_plan.sigma:.2f}")
        noise multiplier 5.08
        >>> run_plan.epsilon <= 2.0 and run_plan.max_steps >= 2000
        True
        >>> str(run_plan).splitlines()[0]
        'budget: epsilon 2 at delta 1e-06'
    """
    if goal is not None:
        if sample_rate is not None or steps is not None or noise_multiplier is not None:
            raise CommandError("goal chooses a method: leave sample_rate, steps and noise out")
        with readable_errors():
            kind = kind or ("set" if goal in OF_SETS else "undirected")
            size = (num_nodes or 2, num_edges, kind, bool(delta), attributes, num_graphs, hubs)
            facts = Facts(goal, epsilon, *size)
            if num_nodes is None and facts.kind != "set":
                raise CommandError(f"goal {goal}: give num_nodes, the number of nodes")
            best = recommend(facts)
            return Choice(configuration_of(best), best.method, hints_of(facts))
    if delta is None or sample_rate is None or steps is None:
        raise CommandError(
            "a plan needs delta, sample_rate and steps, or for the choice of a method goal and num_nodes"
        )
    if isinstance(steps, bool) or not isinstance(steps, Integral):
        raise CommandError(f"steps must be a whole number, got {steps!r}")
    if not 0 < epsilon < math.inf or not 0 < delta < 1 or not 0 < sample_rate <= 1 or steps < 1:
        raise CommandError(
            "a plan needs epsilon > 0, 0 < delta < 1, 0 < sample rate <= 1 and steps >= 1, "
            f"got {epsilon:g}, {delta:g}, {sample_rate:g} and {steps}"
        )
    if noise_multiplier is not None and not noise_multiplier > 0:
        raise CommandError(f"the noise multiplier must be positive, got {noise_multiplier:g}")
    budget = Budget(epsilon, delta)
    sigma = noise_multiplier or calibrate_noise_multiplier(
        budget, sample_rate=sample_rate, steps=steps
    )
    cost, accountant = _headline(sigma, sample_rate, steps, delta)
    return Plan(
        budget,
        sample_rate,
        steps,
        sigma,
        is_calibrated=noise_multiplier is None,
        epsilon=rounded_up(cost),
        accountant=accountant,
        max_steps=max_steps(budget, sigma, sample_rate=sample_rate),
    )


def _headline(sigma: float, sample_rate: float, steps: int, delta: float) -> tuple[float, str]:
    return headline([entry_of(Gaussian(sigma, sample_rate), steps)], delta)


def _table(sigma: float, sample_rate: float, steps: int, delta: float) -> list[str]:
    """Return epsilon by noise multiplier (rows) and steps (columns)."""
    columns = sorted({max(1, round(factor * steps)) for factor in FACTORS})
    rows = [float(digits_up(sigma * math.sqrt(factor), 4)) for factor in FACTORS]
    lines = ["epsilon by noise multiplier and private steps:"]
    lines.append(f"{'':>10}" + "".join(f"{column:>10}" for column in columns))
    for row in rows:
        values = [_headline(row, sample_rate, column, delta)[0] for column in columns]
        lines.append(f"{row:>10.4g}" + "".join(f"{digits_up(value, 4):>10}" for value in values))
    return lines
