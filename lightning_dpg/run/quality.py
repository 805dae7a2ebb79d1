"""Measured quality of a method near an epsilon, from the numbers of ``results/``.

The file ``quality.csv`` is written by ``python -m results``, and shipped with the package.
"""

import csv
import math
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).with_name("quality.csv")


class Measured(NamedTuple):
    """One measured number.

    Attributes:
        study: Folder of ``results/`` with the table.
        caption: First sentence of the table's caption.
        method: Name of the method's class.
        epsilon: Epsilon at which it was measured.
        query: Row or column of the table; empty where the caption says all.
        value: The number as it was recorded.
        deviation: Standard deviation over the runs; empty if unknown.
        runs: Number of runs; empty if unknown.
    """

    study: str
    caption: str
    method: str
    epsilon: float
    query: str
    value: str
    deviation: str
    runs: str

    def __str__(self) -> str:
        """Say the number, its epsilon and its study."""
        spread = f" ± {self.deviation}" if self.deviation else ""
        query = f"{self.query}: " if self.query else ""
        return f"{query}{self.value}{spread} at epsilon {self.epsilon:g} ({self.caption}; {self.study})"


def nearest(method: str, epsilon: float) -> list[Measured]:
    """Return the numbers of a method at the nearest measured epsilon, by table and query.

    Args:
        method: Name of its class.
        epsilon: Epsilon of a planned run.
    """
    by_key: dict[tuple[str, str, str], Measured] = {}
    for number in _numbers():
        if number.method != method:
            continue
        key = number.study, number.caption, number.query
        if key not in by_key or _distance(number, epsilon) < _distance(by_key[key], epsilon):
            by_key[key] = number
    return list(by_key.values())


def _distance(number: Measured, epsilon: float) -> float:
    return abs(math.log(number.epsilon / epsilon))


@cache
def _numbers() -> tuple[Measured, ...]:
    with _FILE.open(newline="", encoding="utf-8") as lines:
        return tuple(map(_number, csv.DictReader(lines)))


def _number(row: dict[str, str]) -> Measured:
    epsilon = float(row.pop("epsilon"))
    return Measured(epsilon=epsilon, **row)
