"""Conditions of guarantees: the runs that have one, and the epsilon that is proved without it.

A condition stands in the log only, in the line that reserves the run. Lines of earlier versions have
no conditions, and their runs count as unconditional. The exception are runs that draw labels by a
Markov chain, which their entries show. Earlier versions took such a run for unconditional if its guard
was within the budget. But a guard proves one epsilon for all reads of a run, and nothing for the parts
that a book adds up and gives back.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lightning_dpg.apps.book import totals
from lightning_dpg.apps.book.database import Database
from lightning_dpg.apps.book.log import lines_of
from lightning_dpg.apps.book.request import Request
from lightning_dpg.apps.book.rows import Run, counted
from lightning_dpg.privacy.events import Relation

_KEY = "condition"
_SWEEPS = "sweeps of the chain"
_WITHOUT_CHAIN = "epsilon without the chain, by the guard"
"""Public facts of labels that earlier versions drew."""


class Condition(NamedTuple):
    """Condition of the guarantee of a run.

    Attributes:
        words: The condition, to follow "if".
        unconditional_epsilon: Pure epsilon of all releases of the run that holds without it, if one is proved.
    """

    words: str
    unconditional_epsilon: float | None


def facts_of(request: Request) -> dict[str, Any]:
    """Facts of a reservation: the condition of its guarantee, if it has one.

    Args:
        request: The run.
    """
    if request.condition is None:
        return {}
    return {_KEY: request.condition, "in_any_case": request.unconditional_epsilon}


def conditions(database: Database) -> dict[int, Condition]:
    """Conditions of all runs that have one, by the number of the run.

    Args:
        database: The book.
    """
    by_run = {}
    for line in lines_of(database, "reserve"):
        if f'"{_KEY}"' not in line.body and f'"{_SWEEPS}"' not in line.body:
            continue
        facts = line.facts
        if _KEY in facts:
            by_run[facts["run"]] = Condition(facts[_KEY], facts["in_any_case"])
        elif condition := _of_a_chain(facts["entries"]):
            by_run[facts["run"]] = condition
    return by_run


def _of_a_chain(entries: Sequence[Mapping[str, Any]]) -> Condition | None:
    """Condition of a run whose plan has labels that a Markov chain draws."""
    for entry in entries:
        if _SWEEPS in (public := entry["public"]):
            # At the level of nodes, nothing is proved without the bound on degrees.
            epsilon = public.get(_WITHOUT_CHAIN) if entry["relation"] == Relation.EDGE else None
            words = f"the Markov chain over labels is stationary after its {public[_SWEEPS]} sweeps"
            return Condition(words, epsilon)
    return None


def unconditional_epsilon(
    runs: Sequence[Run], by_run: Mapping[int, Condition], relation: Relation, delta: float
) -> float | None:
    """Epsilon that all releases prove together at a delta, whether the conditions hold or not.

    A run with a condition counts with the pure epsilon that holds without it. All other runs count
    with the epsilon that they prove together. Basic composition adds both.

    Args:
        runs: Runs on one data set.
        by_run: Conditions by the number of the run.
        relation: Relation of the total.
        delta: Delta of the total.

    Returns:
        The epsilon; None if nothing is proved for one of the runs.
    """
    stated = [
        by_run[run.number].unconditional_epsilon
        for run in runs
        if run.number in by_run and run.booked
    ]
    epsilons = [epsilon for epsilon in stated if epsilon is not None]
    if len(epsilons) < len(stated):
        return None
    others = [run for run in runs if run.number not in by_run]
    proved = totals.spent_epsilon(counted(others, relation, is_released=True), delta)[0]
    return proved + math.fsum(epsilons)
