"""Each shipped configuration has a short name, a path, and its name of version 0.1."""

import pytest

from lightning_dpg.errors import CommandError
from lightning_dpg.running.settings import conf_folder, find_config, shipped_configs


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("bter", "methods/bter.yaml"),
        ("bter.yaml", "methods/bter.yaml"),
        ("conf/bter.yaml", "methods/bter.yaml"),
        ("methods/bter", "methods/bter.yaml"),
        ("conf/baselines/erdos_renyi.yaml", "baselines/erdos_renyi.yaml"),
        ("ddp", "overlays/ddp.yaml"),
        ("data/cora_ml.yaml", "data/cora_ml.yaml"),
        ("facebook", "data/facebook.yaml"),
        ("citeseer_eps16", "papers/zheng2021/citeseer_eps16.yaml"),
    ],
)
def test_a_name_finds_its_file(name, file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert find_config(name) == conf_folder() / file
    assert not capsys.readouterr().err


@pytest.mark.parametrize("short", ["dpgvae", "ggan", "graphrnn", "polblogs"])
def test_a_configuration_of_a_paper_never_takes_a_short_name(short, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert any(name.endswith(f"/{short}") for name in shipped_configs() if "papers/" in name)
    assert "papers" not in find_config(short).parts


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("paper/000_cora_ml_eps2.9", "papers/zheng2021/cora_ml_eps2.9"),
        ("conf/paper/001_dpgvae.yaml", "papers/yang2021/dpgvae"),
        ("002_dd", "papers/dubhashi2015/dd"),
        ("paper/003_polblogs_printed.yaml", "papers/zhang2020/polblogs_printed"),
        ("004_imdb_b.yaml", "papers/jin2022/imdb_b"),
    ],
)
def test_a_name_of_version_0_1_still_works_and_says_the_new_one(
    old, new, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert find_config(old) == conf_folder() / f"{new}.yaml"
    assert capsys.readouterr().err.endswith(f" is now --config {new}\n")


def test_names_are_distinct():
    assert len(set(shipped_configs())) == len(list(conf_folder().rglob("*.yaml")))


def test_an_unknown_study_is_no_name_of_version_0_1(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match="no such file"):
        find_config("paper/005_graph")
