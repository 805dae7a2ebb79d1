"""Conditions of guarantees: which runs have one, and what all releases prove without it.

They stand in the log only, in the line that reserves a run. Lines of earlier versions have none: their
runs count as unconditional, but for those that draw labels by a Markov chain. Their entries say so. Where
a guard was within the budget, they passed for unconditional, although it proves one epsilon for all
reads of a run, and nothing for the parts that a book adds up and gives back.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lightning_dpg.book import totals
from lightning_dpg.book.database import Database
from lightning_dpg.book.log import lines_of
from lightning_dpg.book.request import Request
from lightning_dpg.book.rows import Run, counted
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.label_sampling import SWEEPS, WITHOUT_CHAIN

_KEY = "condition"


class Condition(NamedTuple):
    """Condition of the guarantee of a run.

    Attributes:
        words: The condition, to follow "if".
        in_any_case: Pure epsilon of all releases of the run that holds without it, if one is proved.
    """

    words: str
    in_any_case: float | None


def facts_of(request: Request) -> dict[str, Any]:
    """Facts of a reservation: the condition of its guarantee, if it has one.

    Args:
        request: The run.
    """
    if request.condition is None:
        return {}
    return {_KEY: request.condition, "in_any_case": request.in_any_case}


def conditions(database: Database) -> dict[int, Condition]:
    """Conditions of all runs that have one, by the number of the run.

    Args:
        database: The book.
    """
    found = {}
    for line in lines_of(database, "reserve"):
        if f'"{_KEY}"' not in line.body and f'"{SWEEPS}"' not in line.body:
            continue
        facts = line.facts
        if _KEY in facts:
            found[facts["run"]] = Condition(facts[_KEY], facts["in_any_case"])
        elif condition := _of_a_chain(facts["entries"]):
            found[facts["run"]] = condition
    return found


def _of_a_chain(entries: Sequence[Mapping[str, Any]]) -> Condition | None:
    """Condition of a run whose plan has labels that a Markov chain draws."""
    for entry in entries:
        if SWEEPS in (public := entry["public"]):
            # At the level of nodes, nothing is proved without the bound on degrees.
            proved = public.get(WITHOUT_CHAIN) if entry["relation"] == Relation.EDGE else None
            words = f"the Markov chain over labels is stationary after its {public[SWEEPS]} sweeps"
            return Condition(words, proved)
    return None


def in_any_case(runs: Sequence[Run], found: Mapping[int, Condition], delta: float) -> float | None:
    """Epsilon that all releases prove together at a delta, whether the conditions hold or not.

    A run with a condition counts by the pure epsilon that holds without it, and all others by what
    they prove together: basic composition adds both.

    Args:
        runs: Runs on one data set.
        found: Conditions by the number of the run.
        delta: That of the data set's total.

    Returns:
        The epsilon; None if nothing is proved of some run.
    """
    bare = [found[run.number].in_any_case for run in runs if run.number in found and run.booked]
    proved = [epsilon for epsilon in bare if epsilon is not None]
    if len(proved) < len(bare):
        return None
    others = [run for run in runs if run.number not in found]
    return totals.spent(counted(others, is_released=True), delta)[0] + math.fsum(proved)
