"""Releases of 0.1.0, one of each method and variant, open and draw equal graphs.

``tests/releases/0.1.0`` holds what that version has written for a small graph or set of graphs:
released tensors, statement, and the graph that it drew from seed 0 or the features that it released.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from lightning_dpg.formats.io import read_graph
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.main import main
from lightning_dpg.release.reader import open_release
from lightning_dpg.release.writer import RECIPE, SCHEMA_VERSION

RELEASES = Path(__file__).parent / "releases" / "0.1.0"
FOLDERS = {path.name: path for path in sorted(RELEASES.iterdir())}
LEARNERS = {name: path for name, path in FOLDERS.items() if (path / "features.npz").is_file()}
SYNTHESIZERS = {name: path for name, path in FOLDERS.items() if name not in LEARNERS}
METHODS = {
    "BTER",
    "CELL",
    "ChungLu",
    "DK2",
    "DPGGAN",
    "DPGVAE",
    "DPNetGAN",
    "ErdosRenyi",
    "ErdosRenyiSet",
    "GGAN",
    "GVAE",
    "GraphKernel",
    "GraphRNN",
    "GromovKernel",
    "HRG",
    "LDPGromovWasserstein",
    "NetGAN",
    "PrivCom",
    "PrivGraph",
    "PrivateGraphKernel",
    "RandomizedResponse",
}
"""All methods of that version that a configuration could name."""


def read(release):
    (path,) = release.glob("*.safetensors")
    with safe_open(path, framework="pt") as file:
        recipe = json.loads(file.metadata()[RECIPE])
        return recipe, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def test_each_method_has_a_release_as_that_version_wrote_it():
    recipes = [read(release)[0] for release in FOLDERS.values()]
    assert {recipe["method"].rpartition(".")[2] for recipe in recipes} == METHODS
    assert not [recipe for recipe in recipes if "schema_version" in recipe]


def edges_of(graph):
    return set(map(tuple, undirected_edges(graph).tolist()))


def degrees_of(graph):
    return torch.bincount(graph.edge_index[0], minlength=graph.num_nodes)


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_it_draws_the_graph_that_the_old_version_drew(name):
    method = open_release(SYNTHESIZERS[name]).method.eval()
    with torch.no_grad():
        drawn = method.sample(torch.Generator().manual_seed(0))
    expected = read_graph(SYNTHESIZERS[name] / "synthetic-0.npz")
    assert drawn.node_names == expected.node_names
    if name == "privgraph":  # since then it draws as many links between communities as are released
        assert len(edges_of(drawn)) >= len(edges_of(expected)) > 0
        assert (degrees_of(drawn) <= method.degrees).all()
        return
    assert len(edges_of(drawn)) == len(edges_of(expected)) > 0
    if name != "bter":  # since then BTER draws its blocks in another way
        assert edges_of(drawn) == edges_of(expected)


@pytest.mark.parametrize("name", LEARNERS)
def test_it_holds_the_features_that_the_old_version_released(name):
    arrays = open_release(LEARNERS[name]).method.released_arrays()
    with np.load(LEARNERS[name] / "features.npz") as file:
        today = {key: "train_mask" if key == "teaching" else key for key in file.files}
        assert arrays.keys() == set(today.values())
        for key, expected in file.items():
            np.testing.assert_array_equal(arrays[today[key]], expected, strict=True)


def test_commands_take_an_old_release(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    old = SYNTHESIZERS["chung_lu"]
    command = ["generate", "--run", str(old), "--seed", "0", "--num-graphs", "2", "--out", "drawn"]
    assert main(command) == 0
    graphs = [f"drawn/synthetic-{seed}.npz" for seed in (0, 1)]
    assert edges_of(read_graph(graphs[0])) == edges_of(read_graph(old / "synthetic-0.npz"))
    capsys.readouterr()
    assert main(["evaluate", "karate", *graphs]) == 0
    assert "degree" in capsys.readouterr().out


@pytest.mark.parametrize("name", FOLDERS)
def test_the_entries_still_prove_the_epsilon_that_was_stated(name, capsys):
    assert main(["verify", str(FOLDERS[name])]) == 3  # 0.1.0 wrote no checksums
    assert "is what the " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"method": "lightning_dpg.methods.gone.Gone"},
            "no method Gone\nopen it with the version of lightning_dpg that has written it\n",
        ),
        ({"schema_version": SCHEMA_VERSION + 1}, "install a newer lightning_dpg to open it\n"),
        ({"schema_version": "2"}, "its schema_version is '2'"),
    ],
)
def test_what_cannot_be_opened_is_refused_by_a_sentence(fails, tmp_path, changes, said):
    recipe, tensors = read(SYNTHESIZERS["erdos_renyi"])
    text = json.dumps(recipe | changes)
    save_file(tensors, tmp_path / "generator.safetensors", metadata={RECIPE: text})
    message = fails("generate", "--run", ".", "--out", "drawn")
    assert "generator.safetensors: " in message
    assert said in message
