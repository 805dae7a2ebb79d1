"""A release of very many nodes holds their names outside of the header, which has a limit."""

import struct

import numpy as np
import pytest

import lightning_dpg as dpg
from lightning_dpg.release import draws, recipe


def released(folder):
    dpg.fit("karate", "chung_lu", epsilon=1.0).save(folder)
    return folder / "generator.safetensors"


def header(path):
    with path.open("rb") as file:
        return file.read(struct.unpack("<Q", file.read(8))[0]).decode()


def test_names_of_many_nodes_are_a_tensor_and_come_back(tmp_path, monkeypatch):
    few = released(tmp_path / "few")
    monkeypatch.setattr(draws, "MANY_NODES", 34)
    many = released(tmp_path / "many")
    assert '\\"33\\"' in header(few) and '\\"33\\"' not in header(many)
    drawn = [dpg.open_release(path.parent).sample(seed=0) for path in (few, many)]
    assert drawn[0].node_names == drawn[1].node_names
    assert len(drawn[1].node_names) == 34


@pytest.mark.parametrize("tensor", [np.ones(3), np.array([91, 49], dtype=np.uint8)])
def test_damaged_names_are_refused(tensor):
    with pytest.raises(ValueError):
        recipe.with_names({"node_names": None}, {"node_names": tensor})
