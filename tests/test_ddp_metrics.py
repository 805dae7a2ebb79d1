"""Figures of two processes are those of one, also of unequal and empty parts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Each process runs it; the first one starts the second, and prints what is logged.
SCRIPT = """
import faulthandler, json, math, sys
import torch
import pytorch_lightning as pl
from pytorch_lightning import Callback
from sklearn.metrics import average_precision_score, roc_auc_score
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.methods import CELL, DPNetGAN
from lightning_dpg.papers.zheng2021.base import WalkGAN
from torch.utils.data import DataLoader

faulthandler.dump_traceback_later(600, exit=True)  # processes that wait for each other
DEVICES = int(sys.argv[1])
strategy = "ddp_find_unused_parameters_true" if DEVICES > 1 else "auto"


class Parts(EdgeListDataModule):
    # The first process has a part of the links and an empty batch, the second the others.
    def parts(self, links):
        edges, others, matched = links
        cuts = [0, len(edges) // 3, len(edges) // 3, len(edges)]
        all_parts = [[x[a:b] for x in links] for a, b in zip(cuts, cuts[1:])]
        if DEVICES > 1:
            mine = all_parts[:2] if self.trainer.global_rank == 0 else all_parts[2:]
            return DataLoader(mine, batch_size=None)
        return DataLoader([links], batch_size=None)

    def val_dataloader(self):
        return self.parts(self.val_links)

    def test_dataloader(self):
        return self.parts(self.test_links)


class Curves(Callback):
    def __init__(self):
        self.found = []

    def on_train_batch_end(self, trainer, pl_module, *_):
        logged = trainer.callback_metrics
        self.found.append({k: float(v) for k, v in logged.items() if "loss" in k or "penalty" in k})


def trainer(*callbacks, **options):
    return pl.Trainer(
        accelerator="cpu", devices=DEVICES, strategy=strategy, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        use_distributed_sampler=False, num_sanity_val_steps=0, callbacks=list(callbacks), **options,
    )


def fit(method, data, epsilon, delta, **options):
    curves = Curves()
    made = trainer(PrivacyAccountant(epsilon, delta), curves, **{"max_epochs": 1} | options)
    made.fit(method, data)
    return made, curves.found


out = {}
for name, edges in {"odd": [(i, (i + 1) % 9) for i in range(9)], "single": [(0, 1)]}.items():
    pl.seed_everything(1)
    data = EdgeListDataModule(torch.tensor(edges).numpy(), steps_per_epoch=1)
    _, out[name] = fit(CELL(data.num_nodes), data, math.inf, 0.0)

pl.seed_everything(1)
mine = []
log_curve = WalkGAN.log_curve
WalkGAN.log_curve = lambda self, name, value, *a, **k: (
    mine.append((name, float(value))), log_curve(self, name, value, *a, **k)
)
data = EdgeListDataModule("karate", steps_per_epoch=3)
small = dict(embedding_dim=8, critic_dim=8, generator_dim=8, num_samples=100, sample_rate=0.01)
made, out["gan"] = fit(DPNetGAN(data.num_nodes, **small), data, 8.0, 1e-4)
out["parts"] = made.strategy.all_gather(torch.tensor([v for _, v in mine])).view(-1, len(mine)).tolist()
out["names"] = [name for name, _ in mine]

pl.seed_everything(1)
data = Parts("les_miserables", val_fraction=0.2, test_fraction=0.3)
method = CELL(77)
made, _ = fit(method, data, math.inf, 0.0)
out["val"] = {k: float(v) for k, v in made.callback_metrics.items() if "val" in k}
(out["test"],) = made.test(method, data, verbose=False)
for kind, (edges, others, matched) in {"val": data.val_links, "test": data.test_links}.items():
    for prefix, pairs in {"": others, "matched_": matched}.items():
        scores = torch.cat([method.score(edges), method.score(pairs)])
        truth = [1] * len(edges) + [0] * len(pairs)
        out[f"{kind}_{prefix}auc"] = roc_auc_score(truth, scores)
        out[f"{kind}_{prefix}ap"] = average_precision_score(truth, scores)
if made.is_global_zero:
    print("RESULT" + json.dumps(out))
"""

pytestmark = pytest.mark.slow


def run(place, devices):
    (place / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py", str(devices)],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=False,
        text=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    assert done.returncode == 0 and lines, done.stdout + done.stderr
    return json.loads(lines[0].removeprefix("RESULT"))


def test_two_processes_log_the_figures_of_one(tmp_path):
    two, one = run(tmp_path, 2), run(tmp_path, 1)
    # Nine edges are five and four; of a single edge the second process has none.
    for name in ("odd", "single"):
        (found,), (expected,) = two[name], one[name]
        assert found["nonprivate/loss"] == pytest.approx(expected["nonprivate/loss"], rel=1e-6)
    # Each process draws its own fakes, and the curve is the mean of both.
    last = two["gan"][-1]
    for name in ("train/gradient_penalty", "train/generator_loss"):
        place = len(two["names"]) - 1 - two["names"][::-1].index(name)
        shares = [values[place] for values in two["parts"]]
        assert len(set(shares)) == 2
        assert last[name] == pytest.approx(sum(shares) / 2)
    for results in (two, one):
        for kind in ("val", "test"):
            prefixes = ("", "matched_") if kind == "test" else ("",)
            for figure in [f"{prefix}{each}" for prefix in prefixes for each in ("auc", "ap")]:
                logged = results[kind][f"nonprivate/{kind}_{figure}"]
                assert logged == pytest.approx(results[f"{kind}_{figure}"], abs=1e-6), figure
