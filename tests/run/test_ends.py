"""Every end of a run reports the spent budget, the folder, and how to continue."""

import errno
import json
import pickle
import shlex
import signal
from pathlib import Path

import pytest
import torch
import yaml
from safetensors import SafetensorError

from lightning_dpg.apps.book.book import Book
from lightning_dpg.callbacks import ReleaseWriter
from lightning_dpg.main import main
from lightning_dpg.methods import DPNetGAN
from lightning_dpg.privacy.ledger import PrivacyLedger
from tests.training import gan_config

CONFIG = gan_config(max_epochs=2, noise_multiplier=4.0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a configuration; Ctrl-C keeps its effect after a test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(CONFIG))
    return tmp_path


FIT = ["fit", "--config", "run.yaml"]


def stop_after(monkeypatch, steps, error):
    """Let an error come after some private steps."""
    original = DPNetGAN.training_step

    def step(self, batch, batch_idx):
        original(self, batch, batch_idx)
        if self.ledger.steps >= steps:
            raise error

    monkeypatch.setattr(DPNetGAN, "training_step", step)


def booked(run):
    ledger = PrivacyLedger(DPNetGAN.relation)
    ledger.load_state_dict(PrivacyLedger.replay(run / "ledger.jsonl"))
    return ledger


def test_interrupted_run_says_what_is_spent_and_goes_on(folder, monkeypatch, capfd):
    with monkeypatch.context() as patch:
        stop_after(patch, 6, KeyboardInterrupt())
        assert main(FIT) == 130
    lines = [line for line in capfd.readouterr().err.splitlines() if line]
    assert len(lines) <= 5
    run = Path("runs/dp_netgan/version_0")
    spent = booked(run).epsilon(1e-4)
    assert lines[0] == "interrupted"
    assert f"5 of 8 steps made; spent for good: epsilon {spent:.3f}"[:-1] in lines[1]
    assert lines[2] == f"run folder: {run}"
    command = shlex.split(lines[3].removeprefix("go on with: "))
    assert command[:3] == ["python", "-m", "lightning_dpg"]
    assert main(command[3:]) == 0
    # The steps after the checkpoint, which is of the first epoch, stay booked and are made again.
    (release,) = folder.glob("runs/*/version_1/release/privacy.json")
    assert json.loads(release.read_text())["steps"] == 6 + 4


def test_interrupted_run_goes_on_within_what_a_budget_book_has_reserved(folder, monkeypatch, capfd):
    """Its budget has room for the lost steps too, and the plan that was reserved has not."""
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", "sqlite:///book.db")
    total = ["--relation", "edge", "--epsilon", "8", "--delta", "1e-4"]
    assert main(["budget", "init"]) == 0
    assert main(["budget", "register", "novel", "les_miserables", *total]) == 0
    with monkeypatch.context() as patch:
        stop_after(patch, 6, KeyboardInterrupt())
        assert main(FIT) == 130
    command = shlex.split(capfd.readouterr().err.splitlines()[-1].removeprefix("go on with: "))
    assert main(command[3:]) == 0
    runs = Book("sqlite:///book.db").runs("novel")
    assert [(run.family, run.outcome) for run in runs] == [(1, "stopped"), (1, "ended")]
    steps = [entry.steps for run in runs for entry in run.booked if entry.event.sample_rate < 1]
    assert sum(steps) == 8


@pytest.mark.parametrize(
    "full",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
    ],
)
def test_full_disk_at_the_release_costs_nothing_twice(folder, monkeypatch, capfd, caplog, full):
    with monkeypatch.context() as patch:
        patch.setattr(ReleaseWriter, "on_fit_end", lambda *_: (_ for _ in ()).throw(full))
        assert main(FIT) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) <= 5
    assert "No space left on device" in lines[0]
    assert "bytes are free in" in lines[1] and "runs/dp_netgan/version_0" in lines[1]
    before = booked(Path("runs/dp_netgan/version_0")).state_dict()
    assert main(shlex.split(lines[-1].removeprefix("go on with: "))[3:]) == 0
    assert "nothing new was spent" in caplog.text
    run = Path("runs/dp_netgan/version_1")
    assert (run / "release" / "privacy.json").is_file()
    assert booked(run).state_dict() == before


def test_a_cut_off_checkpoint_is_not_the_one_to_go_on_from(folder, monkeypatch, capfd):
    def cut(*_):
        (newest,) = folder.rglob("*.ckpt")
        newest.with_name("later.ckpt").write_bytes(newest.read_bytes()[:1000])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ReleaseWriter, "on_fit_end", cut)
    assert main(FIT) == 2
    assert "later.ckpt" not in capfd.readouterr().err


def test_spent_budget_ends_the_run_with_a_reason(folder, caplog):
    assert main([*FIT, "--privacy.epsilon", "1", "--model.init_args.noise_multiplier", "2"]) == 0
    steps = booked(Path("runs/dp_netgan/version_0")).steps
    assert 0 < steps < 8
    assert f"stopped after {steps} of 8 steps: the budget (epsilon 1, delta 0.0001)" in caplog.text
    (checkpoint,) = folder.rglob("*.ckpt")
    caplog.clear()
    config = ["--config", "runs/dp_netgan/version_0/config.yaml", "--ckpt_path", str(checkpoint)]
    assert main(["fit", *config]) == 0
    assert "no step was made after the checkpoint: the budget (epsilon 1" in caplog.text


def test_resume_of_a_method_that_books_once_is_no_early_end(folder, caplog):
    config = CONFIG | {"model": {"class_path": "CELL"}, "privacy": {"epsilon": "inf"}}
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    assert main(FIT) == 0
    (checkpoint,) = folder.rglob("*.ckpt")
    assert main([*FIT, "--trainer.max_epochs", "4", "--ckpt_path", str(checkpoint)]) == 0
    assert "no step was made" not in caplog.text


def test_whole_run_says_nothing_of_the_kind(folder, caplog):
    assert main(FIT) == 0
    assert "stopped after" not in caplog.text.replace("`Trainer.fit` stopped", "")
    assert "no step" not in caplog.text


def test_interrupt_before_anything_is_spent_leaves_nothing(folder, monkeypatch, capfd):
    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(DPNetGAN, "on_fit_start", interrupt)
    assert main(FIT) == 130
    assert capfd.readouterr().err.split() == ["interrupted"]
    assert [path.name for path in folder.iterdir()] == ["run.yaml"]


@pytest.mark.parametrize("command", ["fit", "list", "compare"])
def test_interrupt_of_any_command_is_one_line(monkeypatch, capfd, command):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("lightning_dpg.main._dispatch", interrupt)
    assert main([command]) == 130
    assert capfd.readouterr().err.split() == ["interrupted"]


class Payload:
    def __reduce__(self):
        return Path.touch, (Path("payload_ran"),)


def cut_off(path):
    torch.save({"state_dict": {"weight": torch.zeros(1000)}}, path)
    path.write_bytes(path.read_bytes()[:1500])


BROKEN = {
    "truncated": cut_off,
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("epoch 3, loss .1\n"),
    "one letter": lambda path: path.write_text("c"),
    "pickle": lambda path: path.write_bytes(pickle.dumps({"state_dict": Payload()})),
    "torch pickle": lambda path: torch.save({"state_dict": Payload()}, path),
    "list": lambda path: torch.save([1, 2], path),
    "tensor": lambda path: torch.save(torch.zeros(3), path),
    "other keys": lambda path: torch.save({"weight": torch.zeros(3)}, path),
    "zip": lambda path: path.write_bytes(b"PK\x05\x06" + b"\0" * 18),
    "text state": lambda path: torch.save({"state_dict": "x", "privacy_ledger": 3}, path),
}


@pytest.mark.parametrize(
    ("command", "name"), [*(("fit", name) for name in BROKEN), ("predict", "torch pickle")]
)
def test_broken_checkpoint(fails, tmp_path, name, command):
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(CONFIG))
    BROKEN[name](tmp_path / "broken.ckpt")
    message = fails(command, "--config", "run.yaml", "--ckpt_path", "broken.ckpt")
    assert "broken.ckpt is not a whole checkpoint of this program" in message
    assert not (tmp_path / "payload_ran").exists()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Checkpoint of a run on the built-in graph of 77 nodes."""
    place = tmp_path_factory.mktemp("trained")
    (place / "run.yaml").write_text(yaml.safe_dump(CONFIG))
    args = ["fit", "--config", str(place / "run.yaml"), "--trainer.default_root_dir", str(place)]
    assert main(args) == 0
    (path,) = place.rglob("*.ckpt")
    return path


@pytest.mark.parametrize(
    ("command", "more", "said"),
    [
        ("fit", ["--model", "BTER"], "is of DPNetGAN, and the configuration says BTER"),
        ("fit", ["--data.init_args.name", "ring.edges"], "is of another graph: it has 77 nodes"),
        ("test", ["--data.init_args.name", "ring.edges"], "is of another graph: it has 77 nodes"),
        ("fit", ["--model.init_args.critic_dim", "16"], "the checkpoint does not fit the model"),
    ],
)
def test_checkpoint_of_something_else(fails, tmp_path, checkpoint, command, more, said):
    if more[0] == "--model":
        sections = {key: value for key, value in CONFIG.items() if key != "model"}
        (tmp_path / "run.yaml").write_text(yaml.safe_dump(sections))
    else:
        (tmp_path / "run.yaml").write_text(yaml.safe_dump(CONFIG))
    (tmp_path / "ring.edges").write_text("".join(f"{i} {(i + 1) % 40}\n" for i in range(40)))
    args = [command, "--config", "run.yaml", *more, "--ckpt_path", str(checkpoint)]
    assert said in fails(*args)
