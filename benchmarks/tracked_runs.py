"""Deep methods in two processes, tracked offline by Weights & Biases, interrupted and resumed.

Each runs as ``fit --config NAME --config ddp --wandb offline`` on a small graph or set. The numbers are
those of ``results/tracking``: points of each curve of both runs, and epsilon beside that of opacus.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.numbers import Number
from benchmarks.wandb_file import history

# With a fixed noise the first epoch leaves enough of the budget for the second one.
_STEPS = ("--data.init_args.steps_per_epoch", "4", "--model.init_args.noise_multiplier", "3")
_FEW = ("--data.init_args.name", "few")
# Rounds of private federated averaging have Gaussian noise. The configuration has pure epsilon.
_ROUNDS = tuple(
    f"--model.init_args.{setting}"
    for setting in ("weights=private", "num_clients=3", "local_epochs=1", "rounds=4")
)
RUNS: dict[str, tuple[str, ...]] = {
    "dp_netgan": _STEPS,
    "dpggan": (*_STEPS, *_FEW),
    "dpgvae": (*_STEPS, *_FEW),
    "privcom": (),
    "ldp_gw": (*_ROUNDS, *_FEW, "--privacy.delta", "1e-6"),
}
"""Options by the name of the configuration."""
_PROCESSES = ("--config", "ddp", "--trainer.devices", "2", "--trainer.accelerator", "cpu")


class Tracked(NamedTuple):
    """What a run leaves."""

    points: Counter[str]
    """Number of points by name of the curve."""
    statement: dict[str, Any]
    """Content of ``privacy.json``."""


def main(args: list[str]) -> list[Number]:
    """Print the curves of both runs of each method; return the numbers of the study."""
    argparse.ArgumentParser(prog="python -m benchmarks tracked_runs").parse_args(args)
    numbers = []
    with TemporaryDirectory() as place:
        write_few_graphs(Path(place))
        for name in RUNS:
            _run(place, first_run(name))
            _run(place, resumed_run(name, Path(place)))
            numbers += _numbers(*(read_run(Path(place), name, end) for end in ("first", "second")))
    for number in numbers:
        print(f"| {number.table} | {number.row} | {number.column} | {number.value} |")
    return numbers


def _run(place: str, options: Sequence[str]) -> None:
    command = [sys.executable, "-m", "lightning_dpg", *options]
    subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)


def write_few_graphs(place: Path) -> None:
    """Write the first 40 graphs of a built-in set as the folder ``few``."""
    from lightning_dpg.datamodules.tu import TUGraphDataModule, write_tu_folder

    (place / "few").mkdir()
    write_tu_folder(TUGraphDataModule("planted_sets").read_graphs()[:40], place / "few")


def first_run(name: str) -> Sequence[str]:
    """Return the command line of a run of one epoch."""
    shared = ("fit", "--config", name, *_PROCESSES, *RUNS[name], "--wandb", "offline")
    return (*shared, "--trainer.max_epochs", "1", "--out", f"{name}-first")


def resumed_run(name: str, place: Path) -> Sequence[str]:
    """Return the command line of the second epoch, from the checkpoint of the first run."""
    (checkpoint,) = place.glob(f"{name}-first/checkpoints/*.ckpt")
    more = ("--trainer.max_epochs", "2", "--ckpt_path", str(checkpoint))
    return (*first_run(name)[:-4], *more, "--out", f"{name}-second")


def read_run(place: Path, name: str, end: str) -> Tracked:
    """Read the curves and the statement of the ``first`` or the ``second`` run."""
    folder = place / f"{name}-{end}"
    (file,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    (statement,) = folder.glob("**/privacy.json")
    points = Counter(curve for row in history(file) for curve in row if not curve.startswith("_"))
    return Tracked(points, json.loads(statement.read_text(encoding="utf-8")))


def _numbers(first: Tracked, second: Tracked) -> list[Number]:
    """Numbers of both runs of a method; a row has spaces where a curve has slashes."""
    said = second.statement
    method, opinion = said["method"], said["accounting"]["second_opinion"]
    points = first.points + second.points
    values = {
        "epsilon": said["epsilon"],
        "opacus RDP": opinion["rdp"],
        "opacus PRV": opinion["prv"][2],
        "steps of the first run": first.statement["steps"],
        "steps of both": said["steps"],
    }
    rows = [
        Number("tracking", "runs", method, key, f"{value:.4g}") for key, value in values.items()
    ]
    curves = [
        Number("tracking", "curves", curve.replace("/", " "), method, str(count))
        for curve, count in sorted(points.items())
    ]
    return rows + curves
