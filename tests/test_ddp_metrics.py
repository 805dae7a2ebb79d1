"""Figures of two processes are those of one, also of unequal and empty parts."""

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning import Callback
from sklearn.metrics import average_precision_score, roc_auc_score
from torch.utils.data import DataLoader

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.methods import CELL, DPNetGAN
from lightning_dpg.papers.zheng2021.dp_netgan import WalkGAN
from tests.processes import ends, start, variables_of_two

RESULT = "result.json"


class Parts(EdgeListDataModule):
    """The first process has a part of the links and an empty batch, the second the others."""

    def parts(self, links):
        if self.trainer.world_size == 1:
            return DataLoader([links], batch_size=None)
        cuts = [0, len(links[0]) // 3, len(links[0]) // 3, len(links[0])]
        parts = [[each[a:b] for each in links] for a, b in pairwise(cuts)]
        mine = parts[:2] if self.trainer.global_rank == 0 else parts[2:]
        return DataLoader(mine, batch_size=None)

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


def fit(devices, method, data, epsilon, delta):
    """Trainer of a method after its fit, and the curves."""
    curves = Curves()
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=devices,
        strategy="ddp_find_unused_parameters_true" if devices > 1 else "auto",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        callbacks=[PrivacyAccountant(epsilon, delta), curves],
        max_epochs=1,
    )
    trainer.fit(method, data)
    return trainer, curves.found


def figures(devices):
    """Write what is logged; each process runs it."""
    out = {}
    for name, edges in {"odd": [(i, (i + 1) % 9) for i in range(9)], "single": [(0, 1)]}.items():
        pl.seed_everything(1)
        data = EdgeListDataModule(
            torch.tensor(edges).numpy(), steps_per_epoch=1, nodes=Nodes(names="ids")
        )
        _, out[name] = fit(devices, CELL(data.num_nodes), data, math.inf, 0.0)

    pl.seed_everything(1)
    mine, log_curve = [], WalkGAN.log_curve

    def log(self, name, value, *args, **kwargs):
        mine.append((name, float(value)))
        log_curve(self, name, value, *args, **kwargs)

    WalkGAN.log_curve = log
    data = EdgeListDataModule("karate", steps_per_epoch=3)
    sizes = {"embedding_dim": 8, "critic_dim": 8, "generator_dim": 8, "num_samples": 100}
    gan = DPNetGAN(data.num_nodes, sample_rate=0.01, **sizes)
    trainer, out["gan"] = fit(devices, gan, data, 8.0, 1e-4)
    values = trainer.strategy.all_gather(torch.tensor([value for _, value in mine]))
    out["parts"] = values.view(-1, len(mine)).tolist()
    out["names"] = [name for name, _ in mine]

    pl.seed_everything(1)
    data = Parts("les_miserables", val_fraction=0.2, test_fraction=0.3)
    method = CELL(77)
    trainer, _ = fit(devices, method, data, math.inf, 0.0)
    out["val"] = {k: float(v) for k, v in trainer.callback_metrics.items() if "val" in k}
    (out["test"],) = trainer.test(method, data, verbose=False)
    for kind, (edges, others, matched) in {"val": data.val_links, "test": data.test_links}.items():
        for prefix, pairs in {"": others, "matched_": matched}.items():
            scores = torch.cat([method.score(edges), method.score(pairs)])
            truth = [1] * len(edges) + [0] * len(pairs)
            out[f"{kind}_{prefix}auc"] = roc_auc_score(truth, scores)
            out[f"{kind}_{prefix}ap"] = average_precision_score(truth, scores)
    if trainer.is_global_zero:
        Path(RESULT).write_text(json.dumps(out))


def run(place, devices):
    """What the first process has written."""
    rooms = variables_of_two("LOCAL_RANK")[:devices] if devices > 1 else [{}]
    codes, outs = ends([start(place, figures, devices, **each) for each in rooms])
    assert codes == [0] * devices, outs
    return json.loads((place / RESULT).read_text())


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
