"""What programs rely on: one JSON object on stdout, exit codes, and the help on one screen."""

import json
import re
import shutil
from pathlib import Path

import pytest

from lightning_dpg.main import LIGHTNING_COMMANDS, command_names, main
from lightning_dpg.metrics.node_classification import NETWORKS
from lightning_dpg.outcome import EXIT_CODES
from tests.documented_objects import FIT, PAGE, keys_of, nested_keys

BUDGET = (
    "init",
    "register",
    "rows",
    "grant",
    "close",
    "show",
    "history",
    "plan",
    "export",
    "html",
    "verify",
)
BOOK = ["--book", "sqlite:///book.db"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Folder with a run on karate."""
    place = tmp_path_factory.mktemp("place")
    options = ["--trainer.default_root_dir", str(place / "runs"), "--quiet"]
    assert main(["fit", "karate", "--config", "chung_lu", *options]) == 0
    return place


def refuse(constant):
    raise AssertionError(f"{constant} is no strict JSON")


@pytest.fixture
def said(place, monkeypatch, capsys):
    """Object that a command prints on stdout, which holds nothing else."""
    monkeypatch.chdir(place)

    def run(*words, code=0):
        capsys.readouterr()
        assert main([*words, "--json"]) == code
        return json.loads(capsys.readouterr().out, parse_constant=refuse)

    return run


def check(found, name, row=""):
    """An object has the keys that the documentation names."""
    assert found["command"] == name
    assert list(found) == ["command", *keys_of(row or f"`{name}`")], name


RELEASE = "runs/chung_lu/version_0"


@pytest.mark.parametrize(
    "words",
    [
        ("generate", RELEASE, "--num-graphs", "2", "--out", "drawn"),
        ("verify", RELEASE),
        ("card", RELEASE, "--operator", "Ann"),
        ("evaluate", "karate", RELEASE, "--csv", "out.csv"),
        ("attack", "karate", f"{RELEASE}/release/synthetic-0.npz"),
        ("plan", "--epsilon", "1", "--goal", "links", "--nodes", "100"),
        ("list",),
        ("audit", "--config", "chung_lu", "--canaries", "20", "--out", "audited"),
    ],
    ids=lambda words: words[0],
)
def test_each_command_prints_one_object(said, words):
    found = said(*words)
    check(found, words[0])
    assert all(Path(path).is_file() for path in found.get("files", ()))


def test_predictions_of_classes_are_an_object_of_rows(said, monkeypatch):
    for name, network in NETWORKS.items():
        monkeypatch.setitem(NETWORKS, name, network._replace(steps=2))
    graph = "planted_classes"
    found = said("evaluate", graph, graph, "--task", "node-classification", "--num-seeds", "2")
    check(found, "evaluate", "`evaluate` of classes of nodes")
    entry = "`rows` of classes of nodes"
    for row in found["rows"]:
        assert list(row) == keys_of(entry)
        assert list(row["scores"]["node_accuracy"]) == nested_keys(entry, "scores")
    compared = found["rows"][-1]["scores"]["node_accuracy"]["to_best_control"]
    assert list(compared) == keys_of("`to_best_control`")


def test_a_fit_prints_one_object(said, capsys):
    found = said("fit", "--config", "chung_lu", "--trainer.default_root_dir", "runs")
    assert list(found) == list(FIT)
    statement = json.loads(Path(found["release"], "privacy.json").read_text())
    assert found["guarantee"].startswith(statement["guarantee"])
    assert (found["epsilon"], found["reads"]) == (statement["epsilon"], 3)
    assert found["book"].startswith("other runs on these data are not added up")


def test_a_run_without_a_guarantee_says_so(said):
    options = ["--privacy.epsilon", "inf", "--trainer.default_root_dir", "runs"]
    found = said("fit", "--config", "chung_lu", *options)
    assert found["epsilon"] == "inf" and found["guarantee"].startswith("none: ")
    assert Path(found["not_private"]).is_dir() and "release" not in found


def test_refusals_are_objects_too(said, capsys):
    for words in (["verify", "none"], ["evaluate", "karat", "karate"], ["fit", "--config", "none"]):
        found = said(*words, code=2)
        assert list(found) == ["command", *keys_of("a refusal of any command")]
        assert (found["command"], found["exit_code"]) == (words[0], 2)
    assert main(["verify", "none", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["error"] == err.removeprefix("error: ").strip()


def test_a_changed_release_is_an_object_with_code_1(said, tmp_path):
    release = shutil.copytree(RELEASE, tmp_path / "changed") / "release"
    (release / "synthetic-0.edges").write_text("0 1\n")
    found = said("verify", str(release), code=1)
    assert "synthetic-0.edges" in found["faults"][0]


def test_quiet_says_results_and_warnings_only(place, monkeypatch, capfd):
    monkeypatch.chdir(place)
    words = ["fit", "--config", "chung_lu", "--trainer.enable_progress_bar", "true"]
    assert main([*words, "--quiet"]) == 0
    out, err = capfd.readouterr()
    assert [line.partition(":")[0] for line in out.splitlines()] == [
        "run folder",
        "release",
        "names in the release",
        "guarantee",
    ]
    assert err == ""


@pytest.mark.tenants
def test_each_budget_command_prints_one_object(said, place):
    Path("crm.csv").write_text(
        "from,to,amount\n" + "".join(f"p{i},p{i + 1},9\n" for i in range(40))
    )
    total = ["--relation", "edge", "--epsilon", "2", "--delta", "0"]
    calls = {
        "init": [],
        "register": ["crm", "crm.csv", *total],
        "rows": ["crm", "--epsilon", "3"],
        "grant": ["crm", "--to", "ann", "--epsilon", "1"],
        "show": ["crm"],
        "history": ["crm"],
        "plan": ["crm", "--releases", "2"],
        "export": ["crm", "--format", "csv"],
        "html": ["--out", "book.html"],
        "verify": [],
        "close": ["crm"],
    }
    assert {*calls} == {*BUDGET}
    for name, words in calls.items():
        check(said("budget", name, *words, *BOOK), f"budget {name}")


def test_the_table_of_exit_codes_is_that_of_the_program():
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert {int(code): text for code, text in rows} == EXIT_CODES


@pytest.mark.parametrize(
    "words",
    [
        *([name] for name in command_names() if name not in LIGHTNING_COMMANDS),
        *(["budget", name] for name in BUDGET),
    ],
    ids=" ".join,
)
def test_help_is_one_screen(words, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    assert main([*words, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 36 and max(map(len, lines)) <= 100
    assert lines[0].startswith(f"usage: lightning_dpg {' '.join(words)}")
    assert lines[-3].startswith(f"  python -m lightning_dpg {words[0]}")
    assert (
        lines[-1]
        == f"all options and explanations: python -m lightning_dpg {' '.join(words)} --help-all"
    )
    assert main([*words, "--help-all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > len(lines) - 4
