"""The README of a paper names files, classes and tests that exist."""

import re
from pathlib import Path

import pytest

from lightning_dpg import methods

ROOT = Path(__file__).parents[2]
READMES = sorted((ROOT / "lightning_dpg" / "papers").glob("*/README.md"))
TESTS = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))


def test_each_of_the_papers_has_one():
    folders = {path.parent.name for path in READMES}
    five = {"dubhashi2015", "jin2022", "yang2021", "zhang2020", "zheng2021"}
    assert folders == five | {"sajadmanesh2023"}


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_names_exist(readme):
    words = re.findall(r"`([^`\n]+)`", readme.read_text(encoding="utf-8"))
    files = {each for each in words if re.fullmatch(r"\w+\.py", each)}
    sources = {path.name for path in readme.parent.glob("*.py")} - {"__init__.py"}
    assert sources == files - {name for name in files if name.startswith("test_")}
    named = {test for each in words for test in re.findall(r"::(\w+)", each)}
    assert named
    assert not {test for test in named if not re.search(rf"def {test}\b", TESTS)}
    published = {each for each in words if each.endswith("AsPublished")}
    assert bool(published) == any(name.endswith("_as_published.py") for name in sources)
    assert published <= set(methods.__all__)
