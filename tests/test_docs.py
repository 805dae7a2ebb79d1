"""The documentation site holds all methods, proofs and commands, and asks nothing of the network."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import markdown
import pytest
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config
from site_pages import api, bound_tests, commands, examples, hook, methods, proofs, results, roles
from site_pages.source import ROOT

from lightning_dpg.main import LIGHTNING_COMMANDS, command_names
from lightning_dpg.privacy.budget import Budget
from results.tables import read_study
from tests.methods.test_budget_contract import CASES, SMALL
from tests.small_methods import METHODS, made

DOCS = ROOT / "docs"
NO_PROOF = ("it is public", "none: ")


def html(text, anchors=()):
    return markdown.markdown(text, extensions=[roles.RoleExtension(dict(anchors))])


def written_pages():
    """Pages in the project, and those that are generated."""
    found = {path.relative_to(DOCS).as_posix(): path.read_text() for path in DOCS.rglob("*.md")}
    return found | hook.generated()


def configured():
    """``mkdocs.yml`` as data."""
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def paths(nav):
    """Paths of all pages of a navigation."""
    for entry in nav:
        children = entry.values() if isinstance(entry, dict) else [entry]
        for child in children:
            yield from [child] if isinstance(child, str) else paths(child)


def test_roles_become_formulas_links_and_code():
    text = html(
        "Of :class:`BTER`, :func:`~a.b_c_d` and :math:`x_1 *y*\n z`.", {"BTER": "methods.BTER"}
    )
    assert '<autoref identifier="methods.BTER"><code>BTER</code></autoref>' in text
    assert "<code>b_c_d</code>" in text
    assert "<msub><mi>x</mi><mn>1</mn></msub>" in text
    assert not re.search(r"<em>|`|:\w+:", text)


def test_every_formula_of_the_package_is_understood():
    sources = [path.read_text() for path in (ROOT / "lightning_dpg").rglob("*.py")]
    formulas = re.findall(r":math:`[^`]+`", "\n".join(sources))
    assert len(formulas) > 200
    assert not [formula for formula in formulas if "\\" in html(formula)]


def test_every_method_has_a_page_in_the_navigation():
    found = {path.removeprefix("methods/").removesuffix(".md") for path in methods.pages()}
    assert found - {"index"} == set(METHODS)
    assert set(paths(methods.navigation())) == set(methods.pages()) - {"methods/index.md"}


def test_a_page_of_a_method_has_its_configuration_and_its_arguments():
    text = methods.pages()["methods/HRG.md"]
    assert "**Guarantee:** epsilon, under a condition" in text
    assert (ROOT / "conf/methods/hrg.yaml").read_text().splitlines()[3] in text
    assert "fit --config hrg \\\n        --data.init_args.name my-graph.csv" in text
    assert "::: lightning_dpg.methods.HRG" in text


def test_the_configuration_of_a_method_comes_before_those_of_baselines():
    (kernel,) = [one for one in methods.methods() if one.name == "PrivateGraphKernel"]
    assert kernel.configurations[0] == "private_kernel"
    assert {"node_kernel", "papers/dubhashi2015/dd"} <= set(kernel.configurations[1:])


def test_a_method_without_privacy_claims_none():
    (netgan,) = [one for one in methods.methods() if one.name == "NetGAN"]
    assert (netgan.guarantee, netgan.protects, netgan.kind) == ("none", "nothing", "not private")
    assert 'epsilon=float("inf")' in methods.page(netgan)


@pytest.fixture(scope="module")
def bounds():
    """Names of all bounds, which are read from the sources."""
    return [bound.name for bound in proofs.every_bound()]


def test_every_proof_is_tried_by_a_test(bounds):
    assert bounds
    assert not [name for name in bounds if not bound_tests.tests_of(name)]


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_what_a_ledger_names_as_proof_is_on_the_page(name, settings, bounds):
    entries = made(name, SMALL, **settings).plan(Budget(50.0, 1e-5), 1)
    assert entries
    for entry in entries:
        named = [] if entry.proof.startswith(NO_PROOF) else re.split("[,;] ", entry.proof)
        assert set(named) <= set(bounds)


def test_statement_and_proof_are_apart():
    (bound,) = [one for one in proofs.every_bound() if one.name == "wedge_sensitivity"]
    text = proofs.entry(bound)
    assert re.search(r"\*\*Statement.\*\* L1 sensitivity of wedges [^\n]*: 6 \+ t.\n", text)
    assert "**Proof.** Each slot of a node" in text
    assert "tests/graph/test_wedges.py::test_sensitivity_over_all_graphs_of_five_nodes" in text


def test_tests_are_found_directly_and_through_helpers(tmp_path):
    file = tmp_path / "test_x.py"
    file.write_text(
        "CASES = [bound_a]\n"
        "def helper(): return bound_b()\n"
        "@mark(CASES)\n"
        "def test_one(): assert bound_c()\n"
        "def test_two(helper): pass\n"
    )
    one, two = bound_tests.functions(file)
    assert one.code.startswith("@mark(CASES)\ndef test_one")
    assert {"bound_c"} == one.names & {"bound_a", "bound_b", "bound_c"}
    assert {"bound_a", "bound_c"} == one.reached & {"bound_a", "bound_b", "bound_c"}
    assert {"bound_b"} == two.reached & {"bound_a", "bound_b", "bound_c"}


def study(folder, rows, columns):
    """A study with one table, whose numbers are all .5."""
    names = ("table", "row", "column", "value", "deviation", "runs", "source")
    names += ("date", "commit", "machine", "seeds", "note")
    lines = [f"t,{row},{column},.5,,,measured,,,,," for row in rows for column in columns]
    (folder / "results.csv").write_text("\n".join([",".join(names), *lines]))
    texts = {"title": "A study", "question": "?", "tables": {"t": {"header": "method"}}}
    (folder / "study.yaml").write_text(yaml.safe_dump(texts))
    return read_study(folder)


def test_a_method_is_shown_beside_the_baselines_only(tmp_path):
    names = ["PrivCom", "KatzPrivCom", "ChungLu (baseline)"]
    rows = results.part_of(study(tmp_path, names, ["degrees"]), "t", "PrivCom")
    assert re.findall(r"^\| ([A-Z].*?) \|", rows, re.MULTILINE) == names[::2]
    columns = results.part_of(study(tmp_path, ["degrees"], names), "t", "PrivCom")
    assert "| method | PrivCom | ChungLu (baseline) |" in columns.splitlines()
    assert results.part_of(study(tmp_path, names, ["degrees"]), "t", "BTER") == ""


def test_a_number_that_does_not_exist_names_the_page():
    with pytest.raises(ValueError, match=r"docs/x\.md: results: no study nowhere"):
        results.replaced("{{ results: nowhere/t/row/column }}", "x.md")


def test_the_navigation_names_every_page_once():
    nav = [*paths(configured()["nav"])]
    for pages in (methods, results, examples):
        nav += paths(pages.navigation())
    assert sorted(nav) == sorted(written_pages())


def test_a_notebook_becomes_a_page_with_its_outputs(tmp_path):
    table = '<style scoped>\n\np {}</style>\n<table border="1" class="dataframe"><tr><td>1</td></tr></table>'
    cells = [
        {
            "cell_type": "markdown",
            "source": ["# A title\n", "\n", "One thing. More [there](2_b.ipynb)."],
        },
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["1\n", "2\n"]},
                {"output_type": "display_data", "data": {"text/plain": "x", "text/html": table}},
                {"output_type": "execute_result", "data": {"text/plain": ["'y'"]}},
            ],
        },
        {"cell_type": "code", "source": "!ls", "outputs": []},
    ]
    path = tmp_path / "1_a.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert (examples.title(path), examples.lead(path)) == ("A title", "One thing.")
    assert examples.page(path).split("\n\n") == [
        *("# A title", "One thing. More [there](2_b.md).", "[The notebook itself](1_a.ipynb)"),
        *("```python\nprint(1)\n```", "```text\n1\n2\n```"),
        '<div class="output">\n<table><tr><td>1</td></tr></table>\n</div>',
        *("```text\n'y'\n```", "```console\n$ ls\n```\n"),
    ]


def test_every_command_has_its_help():
    text = commands.helps()
    assert all(
        name in text
        if name in LIGHTNING_COMMANDS
        else f"### {name}\n\n```text\nusage: lightning_dpg {name}" in text
        for name in command_names()
    )


def test_the_interface_is_that_of_the_package():
    assert "lightning_dpg.datamodules.EdgeListDataModule" in api.anchors().values()
    assert "::: lightning_dpg.callbacks.ReleaseWriter" in api.pages()["api/callbacks.md"]


class Assets(HTMLParser):
    """Addresses that a browser loads by itself."""

    def __init__(self):
        super().__init__()
        self.loaded = []
        self.classes = set()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.classes |= set((given.get("class") or "").split())
        if tag in ("script", "img", "iframe", "source", "video", "object", "embed"):
            self.loaded.append(given.get("src") or given.get("data") or "")
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(given.get("href") or "")


def test_the_overview_loads_nothing_from_the_network():
    text = (DOCS / "pictures" / "overview.svg").read_text(encoding="utf-8")
    rest = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "//" not in rest
    assert all(word not in rest for word in ("href", "<script", "@import", "<image"))


def test_the_site_builds_strictly_and_loads_nothing_from_the_network(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    build(load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(tmp_path)))
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > len(METHODS)
    for page in pages:
        found = Assets()
        found.feed(page.read_text())
        assert found.loaded
        assert not [place for place in found.loaded if re.match(r"(\w+:)?//", place)], page
        assert "mermaid" not in found.classes, page  # the theme would ask a server for its script
    styles = "".join(path.read_text() for path in Path(tmp_path).rglob("*.css"))
    assert not re.findall(r"url\(['\"]?(?:https?:)?//", styles)
