"""The offline file of Weights & Biases holds the curves, and online tracking never hangs."""

import contextlib
import csv
import json
import socket
import sys
import threading
from pathlib import Path

import pytest
import yaml

import lightning_dpg as dpg
from benchmarks.wandb_file import history, records
from lightning_dpg.errors import CommandError
from lightning_dpg.main import main
from lightning_dpg.run import loggers as tracking
from tests.training import gan_config

CONFIG = gan_config()
CONFIG["trainer"]["logger"] = {"class_path": "WandbLogger", "init_args": {"offline": True}}


def fit(folder, monkeypatch, config):
    import wandb

    monkeypatch.chdir(folder)
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    assert main(["fit", "--config", "run.yaml"]) == 0
    wandb.teardown()  # its process closes the files some time after the run
    (place,) = folder.glob("runs/*/*")
    return place


def likelihood_and_pictures(nonprivate=True, **privacy):
    """A run whose method, held-out edges and figures all read the private graph; one option tracks."""
    statistics = {"class_path": "GraphStatistics", "init_args": {"nonprivate": nonprivate}}
    return {
        "model": {"class_path": "HRG"},
        "data": {
            "class_path": "EdgeListDataModule",
            "init_args": {"name": "karate", "val_fraction": 0.1},
        },
        # With a bar: it shows the same figures, and wandb can record the terminal.
        "trainer": {
            "max_epochs": 1,
            "accelerator": "cpu",
            "callbacks": [statistics],
            "enable_progress_bar": True,
        },
        "wandb": "offline",
        "privacy": {"epsilon": 8.0, "delta": 0.0} | privacy,
    }


def columns(place):
    with (place / "metrics.csv").open() as file:
        return set(csv.DictReader(file).fieldnames)


def tracked(place):
    """All bytes that ``wandb sync`` uploads, and the names of the files that go with them."""
    (folder,) = place.glob("wandb/offline-run-*")
    files = [path for path in (folder / "files").rglob("*") if path.is_file()]
    content = b"".join([*records(next(folder.glob("*.wandb"))), *(p.read_bytes() for p in files)])
    return content, [path.relative_to(folder).as_posix() for path in files]


def settings_of(path):
    """Name and configuration of a run."""
    from wandb.proto import wandb_internal_pb2

    name, config = "", {}
    for content in records(path):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(content)
        name = record.run.display_name or name
        updates = [*record.run.config.update, *record.config.update]
        config |= {item.key: json.loads(item.value_json) for item in updates if item.key}
    return name, config


def test_tracker_gets_nothing_that_reads_the_private_graph(tmp_path, monkeypatch):
    place = fit(tmp_path, monkeypatch, likelihood_and_pictures())
    local = {name for name in columns(place) if name.startswith("nonprivate/")}
    assert {"nonprivate/log_likelihood", "nonprivate/edge_overlap", "nonprivate/val_auc"} <= local
    content, names = tracked(place)
    assert b"stat/max_degree" in content
    assert b"nonprivate/" not in content
    assert not [name for name in names if "nonprivate" in name or name.endswith(".png")]
    # The memory of the process grows with the number of edges, and nobody has paid for that.
    assert b"proc.memory" not in content


def test_nonprivate_false_keeps_it_out_of_the_csv_too(tmp_path, monkeypatch):
    config = likelihood_and_pictures(nonprivate=False, upload_nonprivate=True)
    place = fit(tmp_path, monkeypatch, config)
    assert "stat/max_degree" in columns(place)
    assert not [name for name in columns(place) if name.startswith("nonprivate/")]
    assert b"nonprivate/" not in tracked(place)[0]


@pytest.mark.usefixtures("figures_drawn")
def test_upload_nonprivate_asks_for_it(tmp_path, monkeypatch):
    place = fit(tmp_path, monkeypatch, likelihood_and_pictures(upload_nonprivate=True))
    content, names = tracked(place)
    assert b"nonprivate/log_likelihood" in content
    assert [name for name in names if name.startswith("files/media/images/nonprivate/adjacency")]


def test_run_says_method_graph_and_budget_but_no_folder(tmp_path, monkeypatch):
    (tmp_path / "client-4711").mkdir()
    edges = tmp_path / "client-4711" / "transfers.edges"
    edges.write_text("".join(f"{i} {(i + j) % 40}\n" for i in range(40) for j in (1, 3)))
    config = CONFIG | {
        "model": {"class_path": "ChungLu"},
        "data": {"class_path": "EdgeListDataModule", "init_args": {"name": str(edges)}},
        "privacy": {"epsilon": 2.0, "delta": 1e-6},
    }
    monkeypatch.setattr(sys, "argv", ["lightning_dpg", "fit", "--data.init_args.name", str(edges)])
    place = fit(tmp_path, monkeypatch, config)
    (path,) = place.glob("wandb/offline-run-*/run-*.wandb")
    name, said = settings_of(path)
    expected = {
        "method": "ChungLu",
        "graph": "transfers",
        "epsilon": 2.0,
        "delta": 1e-6,
        "relation": "edge",
    }
    assert said | expected == said
    assert name == "ChungLu transfers epsilon=2 delta=1e-06 edge"
    assert b"client-4711" not in tracked(place)[0]


def test_checkpoints_are_not_uploaded_unasked(fails, tmp_path):
    logger = {"class_path": "WandbLogger", "init_args": {"log_model": True}}
    config = CONFIG | {"trainer": CONFIG["trainer"] | {"logger": logger}}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
    message = fails("fit", "--config", "run.yaml")
    assert "log_model" in message
    assert "privacy.upload_nonprivate" in message


def test_offline_run_holds_the_privacy_curve(tmp_path, monkeypatch):
    place = fit(tmp_path, monkeypatch, CONFIG)
    (path,) = place.glob("wandb/offline-run-*/run-*.wandb")
    curve = [row["privacy/epsilon"] for row in history(path) if "privacy/epsilon" in row]
    with (place / "metrics.csv").open() as file:
        expected = [row["privacy/epsilon"] for row in csv.DictReader(file)]
    assert curve == [float(value) for value in expected if value]
    assert len(curve) == 4
    assert curve == sorted(curve)


def test_online_without_a_key_falls_back_with_one_line(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETRC", raising=False)
    # The option replaces the mode of a logger of the configuration, and keeps its other settings.
    logger = {"class_path": "WandbLogger", "init_args": {"offline": True, "log_model": True}}
    privacy = CONFIG["privacy"] | {"upload_nonprivate": True}  # log_model asks for it
    trainer = CONFIG["trainer"] | {"logger": logger}
    config = CONFIG | {"trainer": trainer, "privacy": privacy, "wandb": "online"}
    place = fit(tmp_path, monkeypatch, config)
    assert list(place.glob("wandb/offline-run-*/run-*.wandb"))
    (line,) = [message for message in caplog.messages if message.startswith("wandb: ")]
    assert "no API key" in line


def test_from_python_one_argument_tracks_as_the_command_line(tmp_path, monkeypatch):
    import wandb

    monkeypatch.chdir(tmp_path)
    dpg.fit("les_miserables", "chung_lu", epsilon=2.0, wandb="offline", out="run")
    wandb.teardown()
    (path,) = Path("run").glob("wandb/offline-run-*/run-*.wandb")
    name, said = settings_of(path)
    assert name == "ChungLu les_miserables epsilon=2 delta=0 edge"
    assert said["relation"] == "edge"
    assert b"privacy/epsilon" in tracked(Path("run"))[0]
    assert b"nonprivate/" not in tracked(Path("run"))[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [({"wandb": "offline"}, "give out"), ({"wandb": "yes", "out": "run"}, "got 'yes'")],
)
def test_tracking_needs_a_mode_and_a_folder(given, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match=message):
        dpg.fit("les_miserables", "chung_lu", epsilon=2.0, **given)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_key_alone_is_not_enough(monkeypatch, server):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{server}")
    assert tracking.why_offline() is None
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    assert "127.0.0.1 cannot be reached" in tracking.why_offline()


def test_a_silent_name_server_does_not_hold_up_the_run(monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    monkeypatch.setattr(tracking, "TIMEOUT_S", 0.1)
    answered = threading.Event()

    def connect(*_):
        answered.wait(20)
        return contextlib.nullcontext()

    monkeypatch.setattr(socket, "create_connection", connect)
    # A run that waited for the answer would be told that the server is there.
    assert "cannot be reached" in tracking.why_offline()
    answered.set()
