"""Steps of DPNetGAN and DPGVAE on one, two and four processes, which add their gradients over gloo.

A step has the same Poisson batch and as many generated edges on any number of processes, each of which
computes its share. Processes of one thread each. CPU seconds are those of the process that takes most:
with a core for each process, and a sum that takes no time, a step would take no less. Needs
$LIGHTNING_DPG_DATA.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import time
import warnings

import pytorch_lightning as pl
import torch
from torch import distributed

from benchmarks.numbers import Number
from lightning_dpg.budget_book import NO_BOOK
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, TUGraphDataModule
from lightning_dpg.methods import DPGVAE, DPNetGAN
from lightning_dpg.run.quiet import quiet

METHODS = ("DPNetGAN", "DPGVAE")
PROCESSES = (1, 2, 4)
_STEPS = 10  # of an epoch


class _Clocks(pl.Callback):
    """Seconds of the steps of a fit: by the clock, and of the CPU in the process that takes most."""

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Begin, after the plan and the releases before the first step."""
        self.clock, self.cpu = -time.perf_counter(), -time.process_time()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """End."""
        self.clock += time.perf_counter()
        self.cpu += time.process_time()
        if distributed.is_initialized():
            most = torch.tensor(self.cpu)
            distributed.all_reduce(most, op=distributed.ReduceOp.MAX)
            self.cpu = float(most)


def main(args: list[str]) -> list[Number]:
    """Print steps a second, each number of processes in turn, and return the medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks processes")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=METHODS, help="run this method in these processes")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args(args)
    if options.only:
        _fit(options.only, options.processes, options.steps)
        return []
    numbers = list[Number]()
    print("| method | processes | steps a second by the clock | of the CPU |\n|---|---|---|---|")
    for method in METHODS:
        found: dict[int, list[list[float]]] = {size: [] for size in PROCESSES}
        for _ in range(options.rounds):
            for size, rates in found.items():
                rates.append(_rates(method, size, options.steps))
        for size, rates in found.items():
            shown = [f"{statistics.median(each):.1f}" for each in zip(*rates, strict=True)]
            print(f"| {method} | {size} | {' | '.join(shown)} |", flush=True)
            for column, value in zip(("by the clock", "of the CPU"), shown, strict=True):
                numbers.append(Number("speed", "processes", f"{method}, {size}", column, value))
    return numbers


def _rates(method: str, size: int, steps: int) -> list[float]:
    """Steps a second by both clocks, of processes that start anew."""
    words = ["processes", "--only", method, "--processes", str(size), "--steps", str(steps)]
    command = [sys.executable, "-m", "benchmarks", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [steps / seconds for seconds in json.loads(done.stdout.splitlines()[-1])]


def _fit(method: str, size: int, steps: int) -> None:
    """Fit within a budget; process 0 prints both times."""
    torch.set_num_threads(1)
    module: pl.LightningModule
    data: pl.LightningDataModule
    if method == "DPNetGAN":
        data = EdgeListDataModule("CORA-ML", steps_per_epoch=_STEPS)
        module = DPNetGAN(
            2810, batch_size=678, generator_lr=2e-4, count_epsilon=0.2, degree_share=0.5
        )
    else:
        data, module = TUGraphDataModule("IMDB-MULTI", steps_per_epoch=_STEPS), DPGVAE()
    clocks, budget = _Clocks(), PrivacyAccountant(8.0, 1e-6, book=NO_BOOK)
    with quiet(), warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        trainer = pl.Trainer(
            max_epochs=steps // _STEPS,
            limit_val_batches=0,
            accelerator="cpu",
            devices=size,
            strategy="ddp" if size > 1 else "auto",
            use_distributed_sampler=False,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[budget, clocks],
        )
        trainer.fit(module, data)
    if trainer.is_global_zero:
        print(json.dumps([clocks.clock, clocks.cpu]))
