"""The command line works end to end: every configuration, and runs without the data."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from opacus.accountants import PRVAccountant

from lightning_dpg.datamodules import tu
from lightning_dpg.main import main
from lightning_dpg.methods.base import ledger_of
from lightning_dpg.privacy.ledger import LedgerEntry
from lightning_dpg.release.verify import verify
from lightning_dpg.run.configurations import shipped_configs
from lightning_dpg.run_folder import release_in
from tests.small_methods import RECOMMENDED
from tests.training import gan_config

CONFIGS = shipped_configs()
HERE = [name for name in CONFIGS if "/" not in name]  # the others need real data
QUICK = [
    *("--trainer.max_epochs", "1"),
    *("--trainer.accelerator", "cpu"),
    *("--trainer.enable_progress_bar", "false"),
    *("--trainer.enable_model_summary", "false"),
]
SMALL = gan_config(max_epochs=2, num_samples=500)


def complete(name):
    """A configuration; an overlay lies over the main one."""
    is_complete = "model" in yaml.safe_load(CONFIGS[name].read_text())
    names = [name] if is_complete else ["dp_netgan", name]
    return [part for each in names for part in ("--config", each)]


def steps_of(run):
    """Column ``privacy/steps`` of a run's curves."""
    with (run / "metrics.csv").open() as file:
        return [float(row["privacy/steps"]) for row in csv.DictReader(file) if row["privacy/steps"]]


def write_config(folder, **sections):
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(SMALL | sections))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on a file of edges that is removed afterwards."""
    folder = tmp_path_factory.mktemp("work")
    edges = folder / "secret.edges"
    edges.write_text("".join(f"p{i}\tp{(i + j) % 40}\n" for i in range(40) for j in (1, 3)))
    data = SMALL["data"] | {"init_args": {"name": str(edges)}}
    config = write_config(folder, data=data)
    args = ["fit", "--config", str(config), "--trainer.default_root_dir", str(folder / "runs")]
    assert main(args) == 0
    edges.unlink()
    (place,) = (folder / "runs" / "dp_netgan").iterdir()
    return place


@pytest.fixture(scope="module")
def some_planted_sets():
    """40 of the built-in graphs: discrepancies of all would take half a minute."""
    return tu.BUILT_IN_SETS["planted_sets"]()[:40]


# Methods that make as many steps as they are asked for, and refuse a trainer that would cut them.
ITERATED = {
    "aggregation_perturbation",
    "attribute_encoder",
    "ldp_gw_curated",
    "ldp_gw_exact",
    "privcom",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[] if x in RECOMMENDED else [pytest.mark.slow]) for x in HERE],
)
def test_every_config_fits_and_predicts(name, tmp_path, monkeypatch, capfd, some_planted_sets):
    monkeypatch.chdir(tmp_path)
    some = [graph.clone() for graph in some_planted_sets]
    monkeypatch.setitem(tu.BUILT_IN_SETS, "planted_sets", lambda: some)
    few = [] if name in ITERATED else ["--trainer.limit_train_batches", "2"]
    if name == "attribute_encoder":
        few = ["--model.init_args.iterations", "20"]
    args = ["fit", *complete(name), *QUICK, *few, "--trainer.default_root_dir", "out"]
    assert main(args) == 0
    last = capfd.readouterr().out.splitlines()[-1]
    assert last.startswith(
        (
            *(f"guarantee: {level}-" for level in ("edge", "node", "neighbor", "local graph")),
            "no guarantee: ",
        )
    )
    (place,) = tmp_path.glob("out/*/version_0")
    release = release_in(place)
    assert (release.name == "release") is last.startswith("guarantee: ")
    assert verify(release).ok
    (checkpoint,) = place.glob("checkpoints/*.ckpt")
    config = ["--config", str(place / "config.yaml"), "--ckpt_path", str(checkpoint)]
    code, said = main(["predict", *config]), "".join(capfd.readouterr())
    made = {path.name for path in tmp_path.glob("out/*/version_1/predictions/*")}
    if not (release / "features.npz").is_file():
        assert code == 0
        assert len([name for name in made if name.startswith("synthetic-0.")]) == 3
    elif code == 0:
        assert made == {"features.npz", "labels.txt", "privacy.json"}
    else:  # of kernels of all graphs at once, there are none of new ones
        assert "fit it on all graphs together" in said


@pytest.mark.parametrize("name", [name for name in CONFIGS if "/" in name])
def test_configs_for_real_data_are_complete(name, capsys):
    assert main(["fit", *complete(name), "--print_config"]) == 0
    config = yaml.safe_load(capsys.readouterr().out)
    assert config["privacy"]["epsilon"] is not None
    assert config["model"]["class_path"].startswith("lightning_dpg.methods.")


def test_run_folder_holds_everything(run):
    names = {path.name for path in run.iterdir()}
    assert names == {
        "checkpoints",
        "config.yaml",
        "hparams.yaml",
        "ledger.jsonl",
        "metrics.csv",
        "node_names.csv",
        "release",
    }
    assert steps_of(run) == list(range(1, 9))
    assert (
        yaml.safe_load((run / "config.yaml").read_text())["model"]["init_args"]["num_nodes"] == 40
    )


def test_predict_needs_no_data(run, tmp_path):
    (checkpoint,) = run.glob("checkpoints/*.ckpt")
    args = ["--config", str(run / "config.yaml"), "--ckpt_path", str(checkpoint)]
    root = ["--trainer.default_root_dir", str(tmp_path)]
    assert main(["predict", *args, *root, "--data.init_args.num_graphs", "2"]) == 0
    for suffix in ("edges", "graphml", "npz"):
        (drawn,) = tmp_path.rglob(f"synthetic-0.{suffix}")
        assert drawn.read_bytes() == (run / "release" / f"synthetic-0.{suffix}").read_bytes()
    assert len(list(tmp_path.rglob("synthetic-1.*"))) == 3


def test_generate_needs_the_release_only(run, tmp_path, capsys):
    release = tmp_path / "release"
    release.mkdir()
    (release / "generator.safetensors").write_bytes(
        (run / "release" / "generator.safetensors").read_bytes()
    )
    assert main(["generate", str(tmp_path), "--num-graphs", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 9
    again = ["generate", str(release), "--seed", "1", "--out", str(tmp_path / "again")]
    assert main(again) == 0
    drawn = [(tmp_path / "generated" / f"synthetic-{i}.edges").read_bytes() for i in range(3)]
    assert len(set(drawn)) == 3
    assert (tmp_path / "again" / "synthetic-1.edges").read_bytes() == drawn[1]
    assert (run / "release" / "synthetic-0.edges").read_bytes() == drawn[0]


def test_resumed_run_follows_the_configuration_and_says_so(run, tmp_path, caplog, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (checkpoint,) = run.glob("checkpoints/*.ckpt")
    changed = yaml.safe_load((run / "config.yaml").read_text())
    changed["data"]["init_args"]["name"] = str(tmp_path / "new.edges")
    Path("new.edges").write_text("".join(f"p{i} p{(i + 1) % 40}\n" for i in range(40)))
    changed["model"]["init_args"]["generator_lr"] = 0.5
    Path("changed.yaml").write_text(yaml.safe_dump(changed))
    args = ["fit", "--config", "changed.yaml", "--ckpt_path", str(checkpoint)]
    assert main([*args, "--trainer.max_epochs", "3", "--trainer.default_root_dir", "runs"]) == 0
    assert "generator_lr: checkpoint 0.002, now 0.5" in caplog.text
    assert caplog.text.count(": checkpoint ") == 1
    (place,) = tmp_path.glob("runs/dp_netgan/*")
    statement = json.loads((place / "release" / "privacy.json").read_text())
    # The first run's budget is spent to the last step: going on books nothing, and forgets nothing.
    assert statement["steps"] == 8
    assert not (place / "metrics.csv").exists()
    saved = torch.load(next(place.glob("checkpoints/*.ckpt"), checkpoint), weights_only=True)
    spent = [LedgerEntry.from_dict(entry) for entry in ledger_of(saved)["entries"]]
    assert spent == [LedgerEntry.from_dict(entry) for entry in statement["entries"]]


def test_refused_run_leaves_no_folder_and_takes_no_number(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    args = ["fit", *complete("dp_netgan"), *QUICK, "--trainer.logger", "null"]
    assert main([*args, "--trainer.profiler", "none such"]) == 2
    assert main([*args, "--trainer.devices", "-3"]) == 2
    assert not list(tmp_path.iterdir())
    Path("runs/dp_netgan/version_0").mkdir(parents=True)  # another run has just begun
    assert main(args) == 0
    assert [path.name for path in tmp_path.glob("runs/*/*/release")] == ["release"]
    assert not list(Path("runs/dp_netgan/version_0").iterdir())


def test_quick_answers_come_before_torch():
    commands = ("attack", "audit", "compare", "evaluate")
    asked = [["--version"], ["list", "--all"], ["fit", "--config", "no"], ["--help"]]
    asked += [[command, "--help"] for command in commands]
    code = (
        "import sys; from lightning_dpg.main import main\n"
        f"for args in {asked}:\n"
        "    main(args); print('loaded', *{'torch', 'numpy', 'pytorch_lightning'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = [line for line in done.stdout.splitlines() if line.startswith("loaded")]
    assert found == ["loaded"] * len(asked)


def test_plan_agrees_with_opacus(capsys):
    sigma, q, steps = plan_of(capsys, [])
    accountant = PRVAccountant()
    accountant.history = [(sigma, q, steps)]
    assert accountant.get_epsilon(1e-5) == pytest.approx(9.5, rel=2e-3)
    assert plan_of(capsys, ["--noise-multiplier", "4"])[0] == 4


def plan_of(capsys, more):
    budget = ["--epsilon", "9.5", "--delta", "1e-5"]
    assert main(["plan", *budget, "--sample-rate", "0.05", "--steps", "2000", *more]) == 0
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("noise multiplier")]
    return float(line.split()[2]), 0.05, 2000
