"""Numbers of a benchmark by their places in the studies of ``results/``, and the file of a run."""

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Number(NamedTuple):
    """A measured number, and its place in a study."""

    study: str
    table: str
    row: str
    column: str
    value: str
    """As it is printed."""


def ratio(row: str, value: float) -> Number:
    """A ratio of times or of memory in the study of speed."""
    return Number("speed", "ratios", row, "ratio", f"{value:.{0 if value >= 10 else 2}f}")


def write_numbers(path: Path, numbers: Iterable[Number], failed: Iterable[str] = ()) -> None:
    """Write numbers with the day, the commit, the machine and its load.

    Args:
        path: File of JSON.
        numbers: Numbers of one or more benchmarks.
        failed: Names of benchmarks that failed.
    """
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    content = {
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "machine": f"{os.cpu_count()} cores, {platform.processor() or platform.machine()}",
        "load": os.getloadavg(),
        "failed": list(failed),
        "numbers": [number._asdict() for number in numbers],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_numbers(path: Path) -> list[Number]:
    """Read the numbers of a file."""
    return [Number(**each) for each in json.loads(path.read_text(encoding="utf-8"))["numbers"]]
