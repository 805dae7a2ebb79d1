"""Every run has a folder of its own."""

import os
from pathlib import Path

import networkx as nx
import pytest
from fsspec.implementations.local import get_umask

import lightning_dpg as dpg
from lightning_dpg import methods
from lightning_dpg.main import main
from lightning_dpg.run.run_folder import folder_name


@pytest.mark.parametrize(
    ("method", "folder"),
    [
        (methods.BTER, "bter"),
        (methods.PrivCom, "privcom"),
        (methods.PrivComAsPublished, "privcom_as_published"),
        (methods.KatzPrivCom, "katz_privcom"),
        (methods.RandomizedResponse, "randomized_response"),
        (methods.DPNetGANAsPublished, "dp_netgan_as_published"),
        (methods.DK2, "dk2"),
        (methods.DPGVAE, "dpgvae"),
    ],
)
def test_runs_of_a_method_have_a_folder_that_names_it(method, folder):
    assert folder_name(method.__name__) == folder


SHORT = ["fit", "karate", "--epsilon", "4", "--no-book", "--out", "run"]


def by_command():
    brief = ["--trainer.max_steps", "2", "--model.init_args.num_samples", "500"]
    assert main([*SHORT, "--method", "dp_netgan", *brief]) == 0
    assert list(Path("run/figures").glob("nonprivate-*.png"))


def by_command_without_a_guarantee():
    assert main([*SHORT, "--method", "chung_lu", "--epsilon", "inf"]) == 0


def in_python():
    dpg.fit(nx.karate_club_graph(), "chung_lu", epsilon=1, book="none", out="run")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
@pytest.mark.parametrize(
    ("fit", "umask"),
    [(by_command, 0), (by_command_without_a_guarantee, 0), (in_python, 0), (in_python, 0o077)],
)
def test_what_is_not_the_release_is_for_its_owner_only(fit, umask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = os.umask(umask)
    get_umask.cache_clear()
    get_umask(0o666)  # as after a checkpoint of an earlier training in this process
    try:
        fit()
        assert get_umask(0o666) == umask
        assert os.umask(umask) == umask  # a library leaves it as it is
    finally:
        os.umask(before)
    run = tmp_path / "run"
    paths = [run, *run.rglob("*")]
    modes = {str(path.relative_to(run)): path.stat().st_mode & 0o777 for path in paths}
    assert {"ledger.jsonl", "config.yaml"} < set(modes)
    for name, mode in modes.items():
        is_public = name.startswith("release")
        folder, file = (0o755, 0o644) if is_public else (0o700, 0o600)
        assert mode == (folder if (run / name).is_dir() else file), name
