"""``generate`` runs no code of a foreign release, and names its faults."""

import json
import sys

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from lightning_dpg.callbacks import PrivacyAccountant, ReleaseWriter
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.io import read_graph
from lightning_dpg.main import main
from lightning_dpg.methods import BTER, ChungLu
from lightning_dpg.release.reader import open_release
from lightning_dpg.release.recipe import RECIPE
from tests.training import quiet_trainer

EVIL = """
open("ran", "w").close()
from lightning_dpg.methods import ChungLu
class Own(ChungLu):
    pass
"""


class Own(ChungLu):
    """A method of a user, whose module is imported."""


def fitted(folder, method_class=ChungLu, num_graphs=1):
    trainer = quiet_trainer(
        PrivacyAccountant(1.0, 0.0),
        ReleaseWriter(num_graphs, formats=["npz"]),
        default_root_dir=folder,
    )
    trainer.fit(method_class(34), EdgeListDataModule("karate"))
    return folder / "release"


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    return fitted(tmp_path_factory.mktemp("run"), BTER) / "generator.safetensors"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    release = fitted(tmp_path_factory.mktemp("run"))
    return release / "generator.safetensors"


def read(path):
    with safe_open(path, framework="pt") as file:
        recipe = json.loads(file.metadata()[RECIPE])
        return recipe, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@pytest.fixture
def tampered(original, tmp_path):
    """A function that writes a release of a changed recipe and changed tensors."""
    recipe, tensors = read(original)

    def write(changes=(), **replaced):
        made = {name: replaced.get(name, tensor) for name, tensor in tensors.items()}
        made = {name: tensor for name, tensor in made.items() if tensor is not None}
        text = json.dumps(recipe | dict(changes))
        save_file(made, tmp_path / "generator.safetensors", metadata={RECIPE: text})

    return write


@pytest.fixture
def evil_folder(tmp_path, monkeypatch):
    (tmp_path / "evilmod.py").write_text(EVIL)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("evilmod", None)


@pytest.mark.parametrize("command", [["generate", "."], ["attack", "karate", "."]])
def test_nothing_that_a_release_names_is_imported(fails, tampered, evil_folder, command):
    tampered({"method": "evilmod.Own"})
    message = fails(*command)
    assert "--method evilmod.Own" in message
    assert not (evil_folder / "ran").exists()
    with pytest.raises(CommandError, match=r"evilmod\.Own is not one of the shipped methods"):
        open_release(evil_folder)
    assert "evilmod" not in sys.modules


def test_a_method_that_is_named_on_the_command_line_is_imported(tampered, evil_folder, monkeypatch):
    tampered({"method": "evilmod.Own"})
    monkeypatch.chdir(evil_folder)
    args = ["generate", ".", "--out", "drawn"]
    assert main([*args, "--method", "evilmod.Own"]) == 0
    assert (evil_folder / "drawn" / "synthetic-0.npz").is_file()
    assert main([*args, "--method", "lightning_dpg.methods.BTER"]) == 2


def test_a_method_that_is_imported_already_is_used(tmp_path):
    release = fitted(tmp_path, Own)
    assert type(open_release(release).method) is Own


@pytest.mark.parametrize(
    "name", ["subprocess.Popen", "torch.nn.Linear", "elsewhere.ChungLu", "nowhere", "", 5, None]
)
def test_no_other_class_is_taken_for_a_method(fails, tampered, name):
    tampered({"method": name})
    assert "generator.safetensors" in fails("generate", ".")


def test_the_configuration_beside_a_release_names_shipped_classes_only(
    fails, tampered, evil_folder
):
    tampered()
    release = evil_folder / "release"
    release.mkdir()
    (evil_folder / "generator.safetensors").rename(release / "generator.safetensors")
    model = {"class_path": "evilmod.Own", "init_args": {"num_nodes": 34}}
    (evil_folder / "config.yaml").write_text(json.dumps({"model": model, "data": "karate"}))
    message = fails("attack", "karate", ".")
    assert "config.yaml" in message
    assert "evilmod.Own" in message
    assert "--baseline-config" in message
    assert not (evil_folder / "ran").exists()


FLOATS = torch.tensor([1.0])


@pytest.mark.parametrize(
    ("changes", "tensors", "said"),
    [
        ({}, {"num_edges": None}, "num_edges"),
        ({}, {"num_edges": torch.tensor(-5)}, "num_edges"),
        ({}, {"num_edges": torch.tensor(10**6)}, "num_edges"),
        ({}, {"num_edges": torch.tensor(torch.nan)}, "num_edges"),
        ({"hparams": {"num_nodes": 34, "nonsense": 1}}, {}, "nonsense"),
        ({"hparams": {"num_nodes": "many"}}, {}, "num_nodes"),
        ({"hparams": {"num_nodes": 33}}, {}, "33"),
        ({"hparams": {"num_nodes": -1}}, {}, "num_nodes"),
        ({"hparams": [34]}, {}, "hparams"),
        ({"node_names": ["a", "b"]}, {}, "node_names"),
        ({"node_names": ["a"] * 34}, {}, "node_names"),
        ({"method": "lightning_dpg.methods.single_graph.bter.BTER"}, {}, "BTER"),
    ],
)
def test_tampered_recipes_are_refused(fails, tampered, changes, tensors, said):
    tampered(changes, **tensors)
    message = fails("generate", ".", "--out", "drawn")
    assert "generator.safetensors" in message
    assert said in message


@pytest.mark.parametrize("degree", [-3, 34, torch.nan, torch.inf, 1.5])
def test_tensors_out_of_range_are_refused(fails, tampered, degree):
    tampered(degrees=torch.tensor([1] * 33 + [degree]))
    message = fails("generate", ".")
    assert "generator.safetensors" in message
    assert "degrees" in message


def test_tensors_from_which_nothing_can_be_drawn_are_refused(fails, blocks, tmp_path):
    recipe, tensors = read(blocks)
    tensors["densities"] = tensors["densities"][:0]
    path = tmp_path / "generator.safetensors"
    save_file(tensors, path, metadata={RECIPE: json.dumps(recipe)})
    assert "generator.safetensors: its tensors draw no graph" in fails("generate", ".")


@pytest.mark.parametrize("recipe", [None, "", "{", "[]", '"text"', "{}", '{"method": "x"}'])
def test_files_without_a_recipe_are_refused(fails, tmp_path, recipe):
    metadata = None if recipe is None else {RECIPE: recipe}
    save_file({"a": FLOATS}, tmp_path / "generator.safetensors", metadata=metadata)
    assert "generator.safetensors" in fails("generate", ".")


def test_tensors_that_earlier_versions_lack_have_their_first_values(blocks, tmp_path):
    recipe, tensors = read(blocks)
    tensors["spread"].zero_()
    drawn = []
    for _ in range(2):
        save_file(tensors, tmp_path / blocks.name, metadata={RECIPE: json.dumps(recipe)})
        drawn.append(open_release(tmp_path).method.sample(torch.Generator()).edge_index)
        tensors.pop("spread", None)
    assert torch.equal(*drawn)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.99])
def test_truncated_files_are_refused(fails, tmp_path, original, share):
    content = original.read_bytes()
    (tmp_path / "generator.safetensors").write_bytes(content[: int(share * len(content))])
    assert "generator.safetensors" in fails("generate", ".")


def test_a_flipped_byte_is_refused_where_the_release_has_checksums(fails, original, tmp_path):
    content = bytearray(original.read_bytes())
    content[-3] ^= 1
    (tmp_path / "generator.safetensors").write_bytes(content)
    sums = original.with_name("SHA256SUMS").read_text()
    (tmp_path / "SHA256SUMS").write_text(sums)
    message = fails("generate", ".")
    assert "generator.safetensors" in message
    assert "verify" in message


def test_new_graphs_follow_those_of_the_release(tmp_path):
    release = fitted(tmp_path, num_graphs=2)
    assert main(["generate", str(tmp_path), "--num-graphs", "2"]) == 0
    drawn = sorted((tmp_path / "generated").glob("*.npz"))
    assert [path.name for path in drawn] == ["synthetic-2.npz", "synthetic-3.npz"]
    everything = [*release.glob("*.npz"), *drawn]
    edges = {np.asarray(read_graph(path).edge_index).tobytes() for path in everything}
    assert len(edges) == 4
    assert main(["generate", str(tmp_path), "--seed", "0"]) == 0
    again = tmp_path / "generated" / "synthetic-0.npz"
    assert again.read_bytes() == (release / "synthetic-0.npz").read_bytes()
