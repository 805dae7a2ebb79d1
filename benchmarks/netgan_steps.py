"""CPU time of the steps of DPNetGAN on Cora-ML, beside the same steps without privacy.

Needs $LIGHTNING_DPG_DATA. Drawing, validation and reports of a fit are left out.
"""

import argparse
import contextlib
import statistics
import sys
import time
import warnings

import pytorch_lightning as pl
import torch

from benchmarks.numbers import Number, ratio
from lightning_dpg.budget_book import NO_BOOK
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import DPNetGAN
from lightning_dpg.run.quiet import quiet

PRIVATE, PLAIN = 4.0, float("inf")
DELTA = 1e-4
# Generated edges of a step with privacy, by the rows of the study. Without privacy a step generates
# as many as it draws, on average a tenth of the 6,783 edges.
BATCHES = {"DP-NetGAN": 128, "DP-NetGAN, equal batches": 678}


class _Steps(pl.Callback):
    """CPU seconds of the steps of a fit."""

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Begin, after the plan and the releases before the first step."""
        self.seconds = -time.process_time()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """End."""
        self.seconds += time.process_time()


def main(args: list[str]) -> list[Number]:
    """Print CPU seconds, each variant in turn, and return the ratios of their medians."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks netgan_steps")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    print(f"{options.steps} steps of DPNetGAN on Cora-ML, medians of {options.rounds}")
    print("| generated edges | with privacy, s | without, s | ratio |\n|---|---|---|---|")
    numbers = list[Number]()
    for row, batch_size in BATCHES.items():
        times: dict[float, list[float]] = {PRIVATE: [], PLAIN: []}
        for _ in range(options.rounds):
            for epsilon, found in times.items():
                found.append(_seconds(epsilon, batch_size, options.steps))
        private, plain = (statistics.median(found) for found in times.values())
        print(f"| {batch_size} | {private:.1f} | {plain:.1f} | {private / plain:.2f} |", flush=True)
        numbers.append(ratio(row, private / plain))
    return numbers


def _seconds(epsilon: float, batch_size: int, steps: int) -> float:
    """CPU seconds of the steps of one fit, with the settings of ``conf/methods/dp_netgan.yaml``."""
    data = EdgeListDataModule("CORA-ML", split="CORA-ML_netgan_split")
    private = {"count_epsilon": 0.2, "degree_share": 0.5} if epsilon < PLAIN else {}
    method = DPNetGAN(2810, batch_size=batch_size, generator_lr=2e-4, **private)
    timer = _Steps()
    budget = PrivacyAccountant(epsilon, DELTA, book=NO_BOOK)
    with quiet(), warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        pl.Trainer(
            max_epochs=-(-steps // 10),
            limit_val_batches=0,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[budget, timer],
        ).fit(method, data)
    return timer.seconds
