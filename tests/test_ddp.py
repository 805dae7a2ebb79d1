"""Two processes through the command line: one ledger, equal weights, as in one process."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml

from tests.processes import (
    LIMIT,
    ends,
    free_port,
    start_command,
    start_two_commands,
    variables_of_two,
)
from tests.training import gan_config

ROOT = Path(__file__).parent.parent
CONFIG = gan_config(max_epochs=2, batch_size=16, num_samples=500, sample_rate=0.005)
# At this rate most batches leave a rank with very few edges, and some with none.
CONFIG["data"]["init_args"] = {"steps_per_epoch": 20}
CONFIG["trainer"]["callbacks"] = [{"class_path": "probe.SaveWeights"}]
# Parts of this set are drawn, and judged by a second optimizer.
SET_CONFIG = CONFIG | {
    "model": {
        "class_path": "DPGGAN",
        "init_args": {
            "hidden_dim": 8,
            "feature_dim": 4,
            "public_pairs": 256,
            "sample_rate": 0.005,
        },
    },
    "data": {
        "class_path": "TUGraphDataModule",
        "init_args": {"name": "planted_sets", "steps_per_epoch": 20},
    },
    "privacy": {"epsilon": 8.0, "delta": 1e-6},
}
# Each process holds some of the clients, whose updates are summed. In the end all pairs of graphs are
# compared, which of the whole set takes most of the time.
FEDERATED_CONFIG = CONFIG | {
    "model": {
        "class_path": "LDPGromovWasserstein",
        "init_args": {"weights": "private", "num_clients": 3, "local_epochs": 1, "rounds": 4},
    },
    "data": {"class_path": "probe.FewGraphs"},
    "trainer": CONFIG["trainer"] | {"max_epochs": 1},
    "privacy": {"epsilon": 8.0, "delta": 1e-6},
}
# The rows of the nodes are public and computed by each process; edges and noise are shared.
ENCODER_CONFIG = CONFIG | {
    "model": {
        "class_path": "AttributeEncoder",
        "init_args": {"iterations": 20, "rank": 8, "sample_rate": 0.03, "public_pairs": 64},
    },
    "data": {
        "class_path": "EdgeListDataModule",
        "init_args": {"name": "karate", "nodes": {"attributes": "people.csv"}},
    },
    "trainer": CONFIG["trainer"] | {"max_epochs": 1},
}
# Each process trains on its part of the known classes, and all have the one release.
CLASSES_CONFIG = CONFIG | {
    "model": {
        "class_path": "AggregationPerturbation",
        "init_args": {"rank": 8, "encoder_steps": 10, "classifier_steps": 10},
    },
    "data": {
        "class_path": "EdgeListDataModule",
        "init_args": {"name": "planted_classes", "nodes": {"attributes": "from_graph"}},
    },
    "trainer": CONFIG["trainer"] | {"max_epochs": 1},
}
PROBE = """
import torch
from pytorch_lightning import Callback

from lightning_dpg.datamodules import TUGraphDataModule


class FewGraphs(TUGraphDataModule):
    def read_graphs(self):
        return super().read_graphs()[:40]


class SaveWeights(Callback):
    def on_train_end(self, trainer, pl_module):
        torch.save(pl_module.state_dict(), f"rank{trainer.global_rank}-{trainer.world_size}.pt")
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "probe.py").write_text(PROBE)
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(CONFIG))
    return tmp_path


def launched(place, *module):
    """Start a command as a user does, which takes seconds of imports in each of its processes."""
    return subprocess.Popen(
        [sys.executable, "-m", *module],
        cwd=place,
        env=os.environ | {"PYTHONPATH": f"{place}:{ROOT}", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


FIT = ("fit", "--config", "run.yaml")
BOTH = (*FIT, "--config", "ddp", "--trainer.devices", "2")


def fit(place):
    """Output of a run of one process."""
    codes, (out,) = ends([start_command(place, *FIT)])
    assert codes == [0], out
    return out


def fit_in_two(place, *args):
    """Output of both processes of a run."""
    codes, outs = ends(start_two_commands(place, *BOTH, *args))
    assert codes == [0, 0], outs
    return "".join(outs)


NODES = (*FIT, "--config", "ddp", "--trainer.devices", "1", "--trainer.num_nodes", "2")


def statement(out, place):
    (folder,) = re.findall(r"^(?:release|not private): (.*)$", out, re.MULTILINE)
    return json.loads((place / folder / "privacy.json").read_text())


@pytest.mark.parametrize("config", [CONFIG, SET_CONFIG], ids=["DPNetGAN", "DPGGAN"])
def test_two_processes_end_with_equal_weights_and_the_ledger_of_one(place, config):
    (place / "run.yaml").write_text(yaml.safe_dump(config))
    two = fit_in_two(place, "--out", "two")
    states = [torch.load(place / f"rank{rank}-2.pt", weights_only=True) for rank in (0, 1)]
    assert set(states[0]) == set(states[1])
    for name, tensor in states[0].items():
        torch.testing.assert_close(tensor, states[1][name], rtol=0, atol=0, equal_nan=True)
    assert two.count("guarantee: ") == 1
    one = fit(place)
    shared = ("epsilon", "delta", "steps", "accountant", "guarantee", "entries", "assumptions")
    results = [statement(out, place) for out in (two, one)]
    assert [results[0][key] for key in shared] == [results[1][key] for key in shared]
    assert results[0]["steps"] == 40


def test_two_nodes_with_different_files_are_refused_before_anything_is_spent(place):
    """Half of the edges were in the batches of both, and moved the sum by twice the clip."""
    for k in (0, 1):
        lines = [f"{i},{(i + 1) % 34}" for i in range(k, 34)]
        (place / f"edges{k}.csv").write_text("\n".join(["source,target", *lines]))
    nodes = [
        start_command(place, *NODES, "--data.init_args.name", f"edges{k}.csv", **variables)
        for k, variables in enumerate(variables_of_two("NODE_RANK"))
    ]
    codes, outs = ends(nodes)
    assert codes == [2, 2], outs
    assert all("have read different data" in out for out in outs), outs
    assert not list(place.rglob("ledger.jsonl"))


@pytest.mark.parametrize("launcher", ["environment", "torchrun"])
def test_two_nodes_book_once_and_end_with_equal_weights(place, launcher):
    if launcher == "environment":
        codes, outs = ends(start_two_commands(place, *NODES, key="NODE_RANK"))
    else:
        shared = ["torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
        shared += ["--master-addr=127.0.0.1", f"--master-port={free_port()}"]
        commands = [[*shared, f"--node-rank={k}", "-m", "lightning_dpg", *NODES] for k in (0, 1)]
        nodes = [launched(place, *command) for command in commands]
        outs = [node.communicate(timeout=LIMIT)[0] for node in nodes]
        codes = [node.returncode for node in nodes]
    assert codes == [0, 0], outs
    states = [torch.load(place / f"rank{rank}-2.pt", weights_only=True) for rank in (0, 1)]
    for name, tensor in states[0].items():
        torch.testing.assert_close(tensor, states[1][name], rtol=0, atol=0, equal_nan=True)
    assert statement(outs[0], place)["steps"] == 40
    assert not [line for line in outs[1].splitlines() if line.startswith(("release", "guarantee"))]
    (run,) = (place / "runs" / "dp_netgan").iterdir()  # rank 0 alone has a folder
    booked = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    assert sum(line["steps"] for line in booked if line["sample_rate"] < 1) == 40


def in_two_and_in_one(place, shared):
    """Statement and weights of two processes, which are equal, after those of one were compared."""
    outs = [fit_in_two(place), fit(place)]
    states = [torch.load(place / f"rank{rank}-2.pt", weights_only=True) for rank in (0, 1)]
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name
    two, one = (statement(out, place) for out in outs)
    assert [two[key] for key in shared] == [one[key] for key in shared]
    return two, states[0]


@pytest.mark.parametrize("epsilon", [8.0, float("inf")])
def test_processes_that_encode_attributes_end_with_equal_weights(place, epsilon):
    budget = {"epsilon": epsilon, "delta": 1e-4}
    (place / "run.yaml").write_text(yaml.safe_dump(ENCODER_CONFIG | {"privacy": budget}))
    people = [f"{i},{20 + 7 * i % 50},{'north' if i % 3 else 'south'}" for i in range(34)]
    (place / "people.csv").write_text("\n".join(["id,age,branch", *people]))
    shared = ("epsilon", "delta", "steps", "accountant", "guarantee", "entries", "assumptions")
    two, weights = in_two_and_in_one(place, shared)
    if epsilon < float("inf"):
        assert two["steps"] == 20
        return
    # Without noise both runs move the weights about equally far; the batches differ.
    alone = torch.load(place / "rank0-1.pt", weights_only=True)
    moved = [state["model.weight"] - torch.eye(8) for state in (weights, alone)]
    assert float(moved[0].norm()) == pytest.approx(float(moved[1].norm()), rel=0.5)


def test_processes_that_share_clients_end_with_equal_weights_and_the_ledger_of_one(place):
    (place / "run.yaml").write_text(yaml.safe_dump(FEDERATED_CONFIG))
    assert in_two_and_in_one(place, ("entries", "epsilon"))[0]["steps"] == 4


def test_processes_that_share_known_classes_have_one_release_and_equal_weights(place):
    (place / "run.yaml").write_text(yaml.safe_dump(CLASSES_CONFIG))
    shared = ("epsilon", "delta", "guarantee", "entries", "assumptions", "claimed_epsilon")
    _, weights = in_two_and_in_one(place, shared)
    assert len(weights["sums"]) == len(weights["posteriors"]) == 200
    alone = torch.load(place / "rank0-1.pt", weights_only=True)
    assert torch.equal(alone["features.basis"], weights["features.basis"])


def test_average_of_two_processes_is_that_of_one(place):
    """Without noise the weights themselves are the same."""
    settings = FEDERATED_CONFIG["model"]["init_args"] | {"weights": "trained"}
    changed = {"class_path": "GromovWassersteinFeatures", "init_args": settings}
    budget = {"epsilon": float("inf"), "delta": 1e-6}
    config = FEDERATED_CONFIG | {"model": changed, "privacy": budget}
    (place / "run.yaml").write_text(yaml.safe_dump(config))
    fit_in_two(place)
    fit(place)
    two, one = (
        torch.load(place / name, weights_only=True) for name in ("rank0-2.pt", "rank0-1.pt")
    )
    weights = [name for name in one if name.startswith("network.")]
    assert weights
    for name in weights:
        torch.testing.assert_close(two[name], one[name], rtol=1e-4, atol=1e-6)


def test_killed_processes_are_resumed_with_all_their_steps(place):
    process = launched(place, "lightning_dpg", *BOTH)
    run = place / "runs" / "dp_netgan" / "version_0"
    deadline = time.monotonic() + LIMIT
    while not list(run.glob("checkpoints/*.ckpt")):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=LIMIT)
    booked = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    made = sum(line["steps"] for line in booked if line["sample_rate"] < 1)
    assert made >= 20
    (checkpoint,) = run.glob("checkpoints/*.ckpt")
    more = ("--ckpt_path", str(checkpoint), "--trainer.max_epochs", "3")
    out = fit_in_two(place, *more)
    assert f"resuming: {made} private steps booked" in out
    assert made <= statement(out, place)["steps"] <= made + 40
    assert statement(out, place)["epsilon"] <= 8.0
