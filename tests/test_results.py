"""The pages of results/ show the numbers of results.csv, and a changed number is found."""

import csv
import importlib
import os
import re
import shlex
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from lightning_dpg import datamodules, methods
from lightning_dpg.datamodules.loading import known_graphs
from lightning_dpg.datamodules.tu import known_sets
from lightning_dpg.errors import CommandError
from lightning_dpg.run.configurations import find_config
from results import __main__ as program
from results import adding, pages, printed, tables
from results.__main__ import find_outdated
from results.figures import digest, digest_in, draw

ROOT = Path(__file__).parent.parent
STUDIES = {name: tables.read_study(tables.FOLDER / name) for name in tables.study_names()}
PRINTED = {
    "zheng2021": {"Table 1": 14, "Table 2": 6},
    "yang2021": {"Table 1": 11, "Table 2": 7, "Figure 3": 8},
    "dubhashi2015": {"Data": 4, "Accuracy": 17, "Sampling": 1},
    "zhang2020": {"Data": 3, "Figure 2": 9},
    "jin2022": {
        "Table 1": 7,
        "Table 2": 3,
        "Table 3": 3,
        "Table 4": 6,
        "Figure 3": 2,
        "Section 4.1": 4,
        "Other figures": 9,
    },
}
"""Rows of the papers' tables and figures."""
HEADER = ",".join(tables.Cell._fields) + "\n"
TEXTS = {
    "title": "Small",
    "question": "How?",
    "tables": {
        "errors": {
            "caption": "Errors.",
            "header": "method",
            "rows": {"a": "`A`", "b": None, "old": None},
            "columns": ["1", "2"],
            "bold": {"a": ["2"]},
        }
    },
}
NUMBERS = """\
errors,a,1,.50,.1,3,measured,2026-01-02,abc1234,one core,0 1 2,first; of all
errors,a,2,10000,,1,measured,2026-01-02,abc1234,one core,,of all
errors,b,1,1e-5,,1,measured,2026-01-02,abc1234,one core,,of all; of the row
errors,b,2,7,,1,measured,2026-01-02,abc1234,one core,,of the row; of all
errors,old,2,9.0,,,paper,2026-01-02,abc1234,,,
"""
RENDERED = """\
Errors.

| method | 1 | 2 |
|---|---|---|
| `A` | .50 ± .1<sup>1</sup> | **10,000** |
| b<sup>2</sup> | 1e-5 | 7 |
| *old* |  | *9.0* |

Italic numbers are printed in a paper, or measured by others or with their code.  
Of all.  
<sup>1</sup> first.  
<sup>2</sup> of the row."""


def write_study(folder, texts=TEXTS, numbers=NUMBERS):
    folder.mkdir(exist_ok=True)
    (folder / "study.yaml").write_text(yaml.safe_dump(texts))
    (folder / "results.csv").write_text(HEADER + numbers)
    return folder


def test_every_page_and_figure_is_what_the_command_writes():
    assert find_outdated() == []


def test_a_changed_number_is_found(tmp_path, monkeypatch, capsys):
    for name in ("results", "README.md"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)

    for module in (program, pages, tables):
        monkeypatch.setattr(module, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(tables, "_read", tables._read.__wrapped__)
    file = tmp_path / "results" / "links" / "results.csv"
    assert "auc,spectral,5,85.2," in file.read_text()
    file.write_text(file.read_text().replace("auc,spectral,5,85.2,", "auc,spectral,5,85.3,"))
    assert program.main(["--check"]) == 1
    outdated = re.findall(r"outdated: results/(\S+)", capsys.readouterr().out)
    assert outdated == ["links/README.md", "links/auc_by_epsilon.svg"]


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_each_number_is_in_its_table_once(study):
    for name, text in study.tables.items():
        lines = tables.render(study, name).splitlines()
        start = lines.index(f"|{'---|' * (1 + len(text.columns))}")
        rows = [line for line in lines[start + 1 :] if line.startswith("|")]
        for (row, label), line in zip(text.rows.items(), rows, strict=True):
            first, *shown = [field.strip() for field in line.strip("|").split(" | ")]
            assert label.strip("*") in first
            for column, field in zip(text.columns, shown, strict=True):
                cell = study.cells.get((name, row, column))
                number = re.sub(r"<sup>.*", "", field).strip("*")
                assert number.split(" ± ")[0].replace(",", "") == (cell.value if cell else "")


@pytest.mark.parametrize("paper", PRINTED)
def test_no_printed_row_is_forgotten(paper):
    _, found = printed.read_paper(paper)
    assert {title: len(table.rows) for title, table in found.items()} == PRINTED[paper]
    for table in found.values():
        for row, answer in table.text["rows"].items():
            assert answer.get("why") or any(kind in answer for kind in printed.KINDS), row
    assert f"{paper}.md" in (ROOT / f"lightning_dpg/papers/{paper}/README.md").read_text()


def test_a_printed_row_without_an_answer_is_found(tmp_path, monkeypatch):
    shutil.copytree(printed.PAPERS, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(printed, "PAPERS", tmp_path)
    file = tmp_path / "zhang2020.yaml"
    text = file.read_text()
    file.write_text(text.replace('      "petster-hamster, HRG":\n        why: *hamster\n', ""))
    with pytest.raises(CommandError, match="Figure 2: 'petster-hamster, HRG' is in one of"):
        printed.read_paper("zhang2020")
    file.write_text(text.replace('HRG":\n        why: *hamster', 'HRG": {}'))
    with pytest.raises(CommandError, match="petster-hamster, HRG: needs ours, published"):
        printed.read_paper("zhang2020")
    file.write_text(
        text.replace("{cells: communities/data/polblogs}", "{cells: communities/data/x}")
    )
    with pytest.raises(CommandError, match="no number communities/data/x"):
        printed.paper_pages()


def test_a_table_has_styles_deviations_and_footnotes(tmp_path):
    assert tables.render(tables.read_study(write_study(tmp_path)), "errors") == RENDERED


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ((",a,1,.50", ",b,2,.50"), "line 5: a second number of errors/b/2"),
        ((",.50,", ",about 5,"), "line 2: value 'about 5' is not a number"),
        ((",.50,", ",,"), "line 2: value '' is not a number"),
        (("3,measured", "3,guessed"), "source 'guessed' is none of measured, paper, others"),
        (("3,measured", "measured"), "line 2: not 12 fields"),
        ((",old,", ",other,"), "row 'old' is in one of study.yaml and results.csv alone"),
        ((",a,1,", ",a,1/2,"), "need names, without /"),
    ],
)
def test_faults_in_the_numbers_name_the_line(changed, said, tmp_path):
    with pytest.raises(CommandError, match=re.escape(said)):
        tables.read_study(write_study(tmp_path, numbers=NUMBERS.replace(*changed, 1)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"captions": "x"}, "no key 'captions', did you mean caption?"),
        ({"header": True}, "header: True is no text"),
        ({"bold": {"b": ["3"]}}, "bold: no number b/3"),
        ({"columns": ["1", "2", "3"]}, "column '3' is in one of"),
    ],
)
def test_faults_in_the_texts_name_the_key(changes, said, tmp_path):
    errors = TEXTS["tables"]["errors"] | changes
    with pytest.raises(CommandError, match=re.escape(said)):
        tables.read_study(write_study(tmp_path, TEXTS | {"tables": {"errors": errors}}))


def test_texts_take_numbers_and_tables_by_name():
    name = "local/accuracy/GIN taught by all graphs and judged on them: a leak/MUTAG"
    text = f"is {{{{ results: {name} }}}} ± {{{{results: {name}/deviation}}}}."
    assert pages.fill(text) == "is 90.4 ± 1.2."
    assert pages.fill("{{ results: shape/cora_ml }}") == tables.table("shape", "cora_ml")
    assert "836 target edges" in pages.fill("{{ results: attacks/polblogs }}")  # of its caption
    region = "a\n<!-- results: speed/ratios -->\nold\n<!-- end -->\nb\n"
    shown = tables.table("speed", "ratios")
    assert pages.fill_regions(region) == (
        f"a\n<!-- results: speed/ratios -->\n{shown}\n<!-- end -->\nb\n"
    )
    assert pages.fill_regions(pages.fill_regions(region)) == pages.fill_regions(region)
    named = "Write `<!-- results: STUDY/TABLE -->` before a table.\n"
    assert pages.fill_regions(named) == named


def test_a_region_without_an_end_is_refused():
    region = "<!-- results: speed/ratios -->\n<!-- end -->\n"
    with pytest.raises(CommandError, match="1 of 2 regions without <!-- end -->"):
        pages.fill_regions(region.replace("<!-- end -->\n", "kept\n") + region)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("link/auc", "no study link, did you mean links?"),
        ("links/aux", "no table links/aux, did you mean auc?"),
        ("links/auc/BTER/3", "no number links/auc/BTER/3, did you mean links/auc/BTER/5?"),
        ("links", "links is neither STUDY/TABLE nor"),
    ],
)
def test_a_wrong_name_is_refused(name, said):
    with pytest.raises(CommandError, match=re.escape(said)):
        pages.fill(f"{{{{ results: {name} }}}}")


def test_a_figure_is_drawn_the_same_twice_and_holds_its_digest():
    study = STUDIES["shape"]
    drawn = draw(study, "facebook_errors")
    assert drawn == draw(study, "facebook_errors")
    assert digest_in(drawn) == digest(study, "facebook_errors") != ""


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_methods_and_commands_exist(study):
    assert study.benchmark or study.commands
    for name in study.benchmark.get("methods", []):
        find_config(name)
    for command in study.commands:
        python, m, module, first, *rest = shlex.split(command)
        assert (python, m) == ("python", "-m")
        if module == "benchmarks":
            importlib.import_module(f"benchmarks.{first}")
        for option, value in pairwise(rest):
            if option == "--config":
                find_config(value)


@pytest.mark.parametrize("name", STUDIES)
def test_texts_name_classes_and_files_that_exist(name):
    text = (tables.FOLDER / name / "study.yaml").read_text(encoding="utf-8")
    for quoted in re.findall(r"`([\w./]+)`", text):
        if re.fullmatch(r"[A-Z]+[a-z]\w*[A-Za-z]\w*", quoted):
            assert hasattr(methods, quoted) or hasattr(datamodules, quoted)
        elif quoted.startswith("papers/"):
            find_config(quoted)
        elif "/" in quoted:
            assert (ROOT / quoted).exists()


@pytest.mark.skipif("LIGHTNING_DPG_DATA" not in os.environ, reason="names real graphs")
def test_graphs_exist():
    known = {*known_graphs(), *known_sets()}
    named = {graph for study in STUDIES.values() for graph in study.benchmark.get("graphs", [])}
    assert named <= known


def test_a_comparison_is_appended_once(tmp_path, monkeypatch):
    write_study(tmp_path / "small")
    monkeypatch.setattr(adding, "FOLDER", tmp_path)
    compared = tmp_path / "compared"
    compared.mkdir()
    columns = ["method", "graph", "epsilon", "run", "query", "error", "private", "conditional"]
    rows = [
        ["papers/x", "some/karate.csv", "1.0", "0", "triangles", "1", "True", "False"],
        ["papers/x", "some/karate.csv", "1.0", "2", "triangles", "2", "True", "False"],
        ["cell", "some/karate.csv", "inf", "0", "triangles", ".25", "False", "False"],
        ["bter", "some/karate.csv", "1.0", "0", "triangles", "", "", ""],
    ]
    with (compared / "results.csv").open("w", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    adding.add("small", compared, "2026-03-04", "two cores", "abc")
    study = tables.read_study(tmp_path / "small")
    found = study.cells["karate.csv at 1.0 on 2026-03-04", "triangles", "papers x"]
    assert found[3:] == (
        *("1.5", "0.71", "2", "measured", "2026-03-04", "abc", "two cores", "0 2", ""),
    )
    other = study.cells["karate.csv at inf on 2026-03-04", "triangles", "cell"]
    assert (other.value, other.deviation, other.note) == ("0.25", "", "not private")
    assert len(study.cells) == 7
    with pytest.raises(CommandError, match="is there already"):
        adding.add("small", compared, "2026-03-04", "two cores", "abc")
    adding.add("small", compared, "2026-03-04", "two cores", "abc", by_query=True)
    study = tables.read_study(tmp_path / "small")
    assert study.cells["karate.csv triangles", "papers x", "1"].value == "1.50"
    assert study.cells["karate.csv triangles", "cell", "inf"].value == "0.250"
    with pytest.raises(CommandError, match="triangles' is there already"):
        adding.add("small", compared, "2026-03-04", "two cores", "abc", by_query=True)
    with pytest.raises(CommandError, match="not a day"):
        adding.add("small", compared, "yesterday", "two cores", "abc")
