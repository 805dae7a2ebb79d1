"""A small generated bank: customers, and transfers with amounts and times (public)."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import networkx as nx
import numpy as np
from numpy.typing import NDArray

FACTS = {"weight_max": 500.0, "time_window": "2026-01-01,2026-06-30"}
"""Bound of the amounts and window of the times, which are as public as the whole bank."""
_FIRST, _DAYS = datetime(2026, 1, 1), 181
_OPEN = np.array([0.05] * 7 + [0.5, 0.9, 1, 1, 1, 0.9, 0.8, 0.8, 0.9, 1, 0.9, 0.7, 0.5] + [0.2] * 4)
"""Relative activity in each hour of a working day; on Saturday and Sunday it is a tenth of it."""


def small_bank() -> nx.MultiDiGraph:
    """Draw 300 customers with ``age`` and ``region``, and their transfers of half a year.

    Customers pay within their region and near their age more often, and a few pay much more often than
    most. The amounts of a pair are lognormal and grow with the numbers of partners of both. A pair
    begins at some day; half of its gaps are hours and half are weeks, a third of the transfers go back,
    and the hours are those of a working week.

    Returns:
        A graph whose nodes are ``c1`` to ``c300``, with an edge per transfer: ``amount`` with two decimals
        and ``at`` in ISO 8601.
    """
    rng, bank = np.random.default_rng(0), nx.MultiDiGraph()
    region, age = people(rng, 300)
    for node in range(300):
        bank.add_node(f"c{node + 1}", age=int(age[node]), region=str(region[node]))
    for payer, payee, amount, at in transfers(rng, region, age, rng.normal(0, 0.8, 300), 900):
        bank.add_edge(f"c{payer + 1}", f"c{payee + 1}", amount=amount, at=at)
    return bank


def people(rng: np.random.Generator, size: int) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Draw region and age of some people, both of shape ``(size,)``."""
    region = rng.choice(["north", "south", "east", "west"], size, p=[0.4, 0.3, 0.2, 0.1])
    return region, np.clip(rng.normal(46, 17, size), 18, 95).astype(int)


def transfers(
    rng: np.random.Generator,
    region: NDArray[np.str_],
    age: NDArray[np.int64],
    activity: NDArray[np.float64],
    num_pairs: int,
) -> Iterator[tuple[int, int, float, str]]:
    """Draw payer, payee, amount and time of the transfers of some pairs; see :func:`small_bank`."""
    first, second = np.triu_indices(len(age), k=1)
    weight = activity[first] + activity[second] - abs(age[first] - age[second]) / 20
    weight += np.log(6) * (region[first] == region[second])
    chosen = np.argsort(weight + rng.gumbel(size=len(first)))[-num_pairs:]
    ends = rng.permuted(np.stack([first[chosen], second[chosen]], axis=1), axis=1)
    degree = np.bincount(ends.ravel(), minlength=len(age))
    level = 2.0 + np.log(degree[ends]).mean(axis=1) + rng.normal(0, 0.7, num_pairs)
    for pair, mean in zip(ends.tolist(), level.tolist(), strict=True):
        days = _DAYS * rng.beta(1.0, 1.5)
        while days < _DAYS:
            at = _FIRST + timedelta(days=days)
            is_weekend = at.weekday() >= 5
            if rng.random() < _OPEN[at.hour] * (0.1 if is_weekend else 1.0):
                cents = round(100 * rng.lognormal(mean, 0.6))
                yield pair[0], pair[1], cents / 100, at.isoformat(timespec="seconds")
                pair = pair[::-1] if rng.random() < 1 / 3 else pair
                days += rng.exponential(0.15 if rng.random() < 0.5 else 30.0)
            else:  # it waits for a busier hour
                days += rng.exponential(1 / 8)
