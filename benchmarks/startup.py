"""CPU seconds of whole commands beside those of the imports of the libraries on which they stand."""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile

from benchmarks.numbers import Number

LIBRARIES = "import os, networkx, torch, torch_geometric, pytorch_lightning.cli"
VARIANTS = {
    "libraries": ["-c", f"{LIBRARIES}; os._exit(0)"],
    "libraries, all objects destroyed at the end": ["-c", LIBRARIES],
    "fit of 77 nodes": ["-m", "lightning_dpg", "fit", "les_miserables", "--config", "bter"],
    "fit, a wrong option": ["-m", "lightning_dpg", "fit", "--config", "bter", "--seeds", "1"],
    "evaluate, a missing file": ["-m", "lightning_dpg", "evaluate", "gone.csv", "karate"],
    "--version": ["-m", "lightning_dpg", "--version"],
}
ROWS = ("libraries", "libraries, destroyed", "fit bter", "wrong option", "missing file", "version")


def main(args: list[str]) -> list[Number]:
    """Print ratios within one run, of medians over processes that run in turn; return them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks startup")
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args(args).rounds
    times: dict[str, list[float]] = {name: [] for name in VARIANTS}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds + 1):
            for name, words in VARIANTS.items():
                seconds = _cpu_seconds(words, folder)
                if turn:  # the first turn compiles modules, and fills the caches of the disk
                    times[name].append(seconds)
    seconds_of = {name: statistics.median(values) for name, values in times.items()}
    base = seconds_of["libraries"]
    print("| process | CPU seconds | to the libraries |\n|---|---|---|")
    for name, value in seconds_of.items():
        print(f"| {name} | {value:.2f} | {value / base:.2f} |")
    return [
        Number("speed", "startup", row, column, f"{seconds_of[name] / unit:.2f}")
        for row, name in zip(ROWS, VARIANTS, strict=True)
        for column, unit in (("seconds", 1.0), ("ratio", base))
    ]


def _cpu_seconds(words: list[str], folder: str) -> float:
    """Run Python in a folder, and return the time of its process in user and in system mode."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True)  # noqa: PLW1510  wrong commands fail
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
