"""Each shipped configuration has a short name and a path."""

import pytest

from lightning_dpg.run.configurations import conf_folder, find_config, shipped_configs


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


def test_names_are_distinct():
    assert len(set(shipped_configs())) == len(list(conf_folder().rglob("*.yaml")))
