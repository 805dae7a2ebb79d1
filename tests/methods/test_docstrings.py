import ast
import inspect
import re
from pathlib import Path

import pytest

import lightning_dpg
from lightning_dpg import advice, methods
from lightning_dpg.classes import is_abstract
from lightning_dpg.graph import edge_sampling
from lightning_dpg.methods.base import PrivateModule
from lightning_dpg.metrics import kernel_svm
from lightning_dpg.papers.xiao2014 import dendrogram
from lightning_dpg.privacy.ledger import Relation

PUBLIC = [getattr(methods, name) for name in methods.__all__]
BASES = [method for method in PUBLIC if is_abstract(method) or method is PrivateModule]
METHODS = [method for method in PUBLIC if method not in BASES]
HEADINGS = ["When to use", "Privacy", "Cost", "Differences from the paper", "Args"]
RELATIONS = {
    Relation.EDGE: "level of edges",
    Relation.NODE: "level of nodes",
    Relation.EDGES_OF_NODE: "edges D of one node together",
    Relation.LOCAL_GRAPH: "the graph of one client",
}


def sections(method):
    """Text of each section by its heading, in their order; a section is an indented block."""
    found, heading = {}, ""
    for line in inspect.getdoc(method).splitlines():
        titled = re.fullmatch(r"(\w[\w ]*):", line)
        if titled:
            heading = titled[1]
            found[heading] = []
        elif line.startswith("    ") and heading:
            found[heading].append(line)
        elif line:
            heading = ""
    return {name: " ".join(" ".join(lines).split()) for name, lines in found.items()}


def names_in_package():
    trees = [
        ast.parse(path.read_text(encoding="utf-8"))
        for path in Path(lightning_dpg.__file__).parent.rglob("*.py")
    ]
    kinds = ast.ClassDef | ast.FunctionDef
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, kinds)}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_a_method_says_when_to_use_it_what_it_protects_and_what_it_costs(method):
    found = sections(method)
    assert list(found) == [name for name in HEADINGS if name in found]
    assert {"When to use", "Privacy", "Cost"} <= set(found)
    assert all(found.values())


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_the_arguments_of_a_method_are_documented_in_their_order(method):
    parameters = list(inspect.signature(method).parameters)
    _, _, arguments = inspect.getdoc(method).partition("\nArgs:\n")
    assert re.findall(r"^    (\w+): ", arguments, re.MULTILINE) == parameters


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_the_stated_guarantee_is_that_of_the_class(method):
    stated = sections(method)["Privacy"]
    if not method.capabilities.adds_noise:
        assert stated.startswith("None")
        return
    assert ("ure epsilon-DP" in stated) == method.capabilities.is_pure
    assert RELATIONS[method.relation] in stated
    assert ("**if**" in stated) == (method.condition is not PrivateModule.condition)


def test_all_names_in_backticks_exist():
    known, names = names_in_package(), set()
    for method in PUBLIC:
        names |= set(re.findall(r":(?:class|func|meth):`(\w+)`", inspect.getdoc(method)))
    assert {"RandomizedResponse", "release_degrees"} <= names <= known


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("CELL", edge_sampling.MAX_NODES),
        ("RandomizedResponse", advice.MAX_REPORT_NODES),
        ("RandomizedResponse", advice.MAX_REPORTS),
        ("RandomizedResponsePrivCom", advice.MAX_REPORT_NODES),
        ("RandomizedResponsePrivCom", advice.MAX_REPORTS),
        ("HRG", dendrogram.MAX_NODES),
        ("GraphKernel", kernel_svm.MAX_GRAPHS),
    ],
)
def test_the_stated_limit_is_that_of_the_code(name, limit):
    assert f"{limit:,}" in sections(getattr(methods, name))["Cost"]


@pytest.mark.parametrize("method", BASES, ids=lambda method: method.__name__)
def test_a_base_class_says_what_it_is(method):
    first, _, rest = inspect.getdoc(method).partition("\n")
    assert first.endswith(".") and rest.strip()
