"""Fits in this process open releases, leave no files, and accept changes of a caller."""

import pytest
import torch

from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.io import read_graph
from lightning_dpg.release.reader import open_release
from lightning_dpg.run.configurations import find_config
from lightning_dpg.run.fit import (
    complete_settings,
    fit_settings,
    fit_without_release,
    method_settings,
    on_data,
)


@pytest.fixture(scope="module")
def settings():
    return on_data(method_settings(find_config("erdos_renyi")), "karate")


def test_a_fit_in_a_folder_is_the_release_that_lies_there(settings, tmp_path, capsys):
    release = fit_settings(settings, tmp_path)
    (folder,) = tmp_path.glob("*/*/release")
    assert torch.equal(
        release.sample(0).edge_index, read_graph(folder / "synthetic-0.npz").edge_index
    )
    assert open_release(folder.parent).statement == release.statement
    assert release.guarantee.startswith("edge-level (1, 0)-DP")
    assert not capsys.readouterr().out


def test_a_fit_without_a_folder_leaves_nothing(settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert fit_settings(settings).method.hparams["num_nodes"] == 34
    assert not list(tmp_path.iterdir())


def test_a_refused_fit_says_why_and_leaves_nothing(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(Exception, match="unknown graph 'karat'"):
        fit_settings(on_data(settings, "karat"))
    assert not list(tmp_path.iterdir())


def test_a_caller_can_change_the_data_and_watch_the_releases(settings):
    seen = {}

    def keep_ten(data):
        data.edges = data.edges[:10]

    def watch(method):
        method.ledger.observer = lambda key, noisy: seen.update({key: noisy})

    open_ = settings | {"privacy": settings["privacy"] | {"epsilon": float("inf")}}
    method = fit_without_release(open_, on_data=keep_ten, on_start=watch)
    assert int(method.num_edges) == 10
    assert {key: int(noisy) for key, noisy in seen.items()} == {"num_edges": 10}


def test_settings_that_are_parsed_once_are_those_of_each_fit(settings):
    """The number of nodes of other data, and another budget, are not those of the fit before."""

    def fit(graph, epsilon=1.0):
        budget = {"privacy": settings["privacy"] | {"epsilon": epsilon}}
        method = fit_without_release(
            settings | budget,
            on_data=lambda data: None,
            on_start=lambda method: None,
            read=lambda: read_set_up(graph),
        )
        return method.hparams["num_nodes"], method.ledger.epsilon(0.0)

    graphs = ["karate", "les_miserables", "karate"]
    found = [*map(fit, graphs), fit("karate", 2.0), fit("karate")]
    assert [nodes for nodes, _ in found] == [34, 77, 34, 34, 34]
    assert [epsilon for _, epsilon in found] == pytest.approx([1, 1, 1, 2, 1])


def read_set_up(graph):
    data = EdgeListDataModule(graph)
    data.setup("fit")
    return data


def test_options_are_merged_into_complete_settings():
    found = complete_settings(["--config", "bter", "--privacy.epsilon", "2"])
    assert found["model"]["class_path"] == "lightning_dpg.methods.BTER"
    assert found["privacy"]["epsilon"] == 2
    assert found["trainer"]["max_epochs"] is not None
    with pytest.raises(CommandError, match="did you mean bter"):
        complete_settings(["--config", "bte"])


def test_what_lacks_a_part_of_a_method_is_refused(tmp_path):
    with pytest.raises(CommandError, match="an overlay"):
        method_settings(find_config("data/polblogs"))
    (tmp_path / "own.yaml").write_text("model: BTER\ndata: EdgeListDataModule\n")
    with pytest.raises(CommandError, match=r"own.yaml: no budget, such as privacy: \{epsilon: 1"):
        method_settings(tmp_path / "own.yaml")
