import struct
from pathlib import Path

import pytest

import lightning_dpg
from lightning_dpg import methods
from lightning_dpg.classes import is_abstract
from lightning_dpg.methods import PrivateModule

FOLDER = Path(lightning_dpg.__file__).parents[1] / "docs" / "pictures"
PUBLIC = [getattr(methods, name) for name in methods.__all__]
NAMES = [one.__name__ for one in PUBLIC if not is_abstract(one) and one is not PrivateModule]


@pytest.mark.parametrize("name", NAMES)
def test_a_method_has_a_small_picture(name):
    path = FOLDER / f"{name}.png"
    assert path.is_file(), f"draw it: python docs/site_pages/pictures.py {name}"
    content = path.read_bytes()
    assert struct.unpack(">II", content[16:24]) == (860, 400)
    assert len(content) <= 40 * 1024


def test_no_picture_is_left_of_a_method_that_is_gone():
    assert sorted(path.stem for path in FOLDER.glob("*.png")) == sorted(NAMES)


def test_the_overview_loads_nothing_from_the_network():
    text = (FOLDER / "overview.svg").read_text(encoding="utf-8")
    rest = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "//" not in rest
    assert all(word not in rest for word in ("href", "<script", "@import", "<image"))
