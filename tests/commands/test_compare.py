"""The command ``compare``: which fits there are, how they are done, and the tables."""

import contextlib
import csv
import json
import math
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import yaml

from lightning_dpg.benchmark import html as report
from lightning_dpg.benchmark import jobs as cells
from lightning_dpg.benchmark import results as tables
from lightning_dpg.benchmark.jobs import Cell, run_cells
from lightning_dpg.benchmark.tasks import SINGLE_GRAPHS
from lightning_dpg.commands import compare
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.io import from_networkx, read_graph
from lightning_dpg.main import main
from lightning_dpg.metrics import queries
from lightning_dpg.metrics.queries import HIGHER_IS_BETTER, QUERIES
from lightning_dpg.running.settings import conf_folder

BROKEN = {  # a private run with a least number of steps is refused when its fit starts
    "model": {"class_path": "ErdosRenyi"},
    "data": {"class_path": "EdgeListDataModule"},
    "trainer": {"min_steps": 5},
    "privacy": {"epsilon": 1.0, "delta": 1e-6},
}
CRASH = """
import os
from pytorch_lightning.callbacks import Callback

class Crash(Callback):
    def on_fit_start(self, trainer, pl_module):
        os._exit(9)
"""


def result(method, run=0, failure=None, spent=None, kind="method", epsilon=1.0, **errors):
    """A fabricated cell; the queries that are not named have error 0."""
    answers = {
        query: {"real": 2.0, "synthetic": 1.0, "error": errors.get(query, 0.0), "note": ""}
        for query in QUERIES
    }
    privacy = {
        "relation": "edge",
        "mode": "plain",
        "epsilon": epsilon if spent is None else spent,
        "delta": 1e-6,
        "accountant": "PRV",
        "guarantee": f"what {method} guarantees",
    }
    base = {"name": f"{method}-{run}", "method": method, "kind": kind, "graph": "karate"}
    return {
        **base,
        "epsilon": epsilon,
        "run": run,
        "digest": "",
        "failure": failure,
        "seconds": {"fit": 2.0 + run, "draw": 0.5, "total": 3.0},
        **({} if failure else {"privacy": privacy, "answers": answers}),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of the controls and of a method that fails, on karate: two runs, one budget."""
    folder = tmp_path_factory.mktemp("compare")
    (folder / "broken.yaml").write_text(yaml.safe_dump(BROKEN))
    assert main(command(folder)) == 2
    return folder


def command(folder, *options):
    methods = ["--methods", str(folder / "broken.yaml"), "--graphs", "karate"]
    rest = ["--epsilons", "1", "--runs", "2", "--out", str(folder / "out")]
    return ["compare", *methods, *rest, *options]


@pytest.fixture
def asked(monkeypatch):
    """Cells that would be run; none is."""
    cells = []

    def pretend(missing, jobs, folder):
        cells.extend(missing)
        for cell in missing:
            yield cell, result(cell.method, cell.run, "not run") | {"graph": cell.graph}

    monkeypatch.setattr(compare, "run_cells", pretend)
    return cells


def read_csv(folder):
    with (folder / "out" / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_results_are_those_of_the_kept_graphs(folder):
    rows = read_csv(folder)
    real = queries.profile(from_networkx(nx.karate_club_graph()))
    for method in ("erdos_renyi", "chung_lu"):
        (path,) = (folder / "out" / "runs").glob(f"{method}*/**/synthetic-0.npz")
        mine = [r for r in rows if r["method"] == f"{method} (control)" and r["run"] == "0"]
        expected = queries.compare(real, read_graph(path))
        assert [row["query"] for row in mine] == list(expected)
        for row, answer in zip(mine, expected.values(), strict=True):
            assert float(row["error"] or "nan") == pytest.approx(answer.error, nan_ok=True)
            assert float(row["spent_epsilon"]) <= 1 + 1e-9
            assert (row["kind"], row["private"], row["relation"]) == ("control", "True", "edge")
            assert float(row["fit_seconds"]) > float(row["draw_seconds"]) > 0


def test_only_what_is_needed_stays(folder):
    out = folder / "out"
    assert {path.name for path in out.iterdir()} == {
        *(".lock", "cells", "logs", "runs", "report.html", "results.csv", "results.md"),
    }
    assert len(list((out / "cells").glob("*.json"))) == len(list((out / "cells").iterdir())) == 6
    names = {path.name for path in (out / "runs").rglob("*") if path.is_file()}
    assert names == {"config.yaml", "privacy.json", "synthetic-0.npz"}
    assert len(list((out / "runs").iterdir())) == 4  # what failed has left nothing


def test_failures_say_why(folder):
    failed = [row for row in read_csv(folder) if row["note"].startswith("failed")]
    assert {(row["method"], row["run"]) for row in failed} == {("broken", "0"), ("broken", "1")}
    cells = [json.loads(path.read_text()) for path in (folder / "out" / "cells").glob("broken*")]
    assert len(cells) == 2
    for cell in cells:
        assert "min_steps" in cell["failure"]
        assert len(cell["failure"].splitlines()) <= 5
    assert "broken, run 1 failed:" in (folder / "out" / "results.md").read_text()


def test_a_second_call_does_what_failed(folder, asked, capsys):
    before = {path: path.read_bytes() for path in (folder / "out" / "cells").glob("*control*")}
    assert main(command(folder)) == 2
    assert [(cell.method, cell.run) for cell in asked] == [("broken", 0), ("broken", 1)]
    assert "6 fits, 4 of them done already" in capsys.readouterr().out
    assert all(path.read_bytes() == content for path, content in before.items())


def test_other_settings_are_other_cells(asked, tmp_path, monkeypatch):
    edges = tmp_path / "graph.edges"
    edges.write_text("0 1\n1 2\n")
    options = ["--methods", "netgan", "--epsilons", "1", "--runs", "1"]
    args = ["compare", *options, "--graphs", str(edges), "--out", str(tmp_path / "out")]

    def digests():
        asked.clear()
        assert main(args) == 2
        return {cell.method: cell.digest for cell in asked}

    first = digests()
    assert digests() == first
    monkeypatch.setattr(compare, "__version__", "another")
    assert set(digests().values()).isdisjoint(first.values())
    monkeypatch.undo()
    edges.write_text("0 1\n0 2\n")
    monkeypatch.setattr(compare, "run_cells", lambda *_: iter(()))
    options = compare._parse(args[1:])
    graphs = {str(edges): read_graph(edges)}
    settings = compare.parse_settings(compare.find_config("netgan"))
    changed = compare.plan_cells({"netgan": settings}, graphs, SINGLE_GRAPHS, options)
    assert {cell.method for cell in changed} == {"netgan", "netgan (untrained)"}
    assert {cell.digest for cell in changed}.isdisjoint(first.values())


def test_methods_without_privacy_are_fitted_once():
    rest = ["--epsilons", "2", "0.5", "1", "--runs", "2", "--delta", "1e-3", "--out", "out"]
    options = compare._parse(["--methods", "m", "--graphs", "a", "b", *rest])
    names = ("erdos_renyi", "netgan", "dp_netgan")
    methods = {name: compare.parse_settings(compare.find_config(name)) for name in names}
    graph = from_networkx(nx.path_graph(4))
    cells = compare.plan_cells(methods, {"a": graph, "b": graph}, SINGLE_GRAPHS, options)
    budgets = {}
    for cell in cells:
        budgets.setdefault(cell.method, []).append(cell.epsilon)
        settings = cell.settings
        assert settings["privacy"]["epsilon"] == cell.epsilon
        assert settings["seed_everything"] == cell.run
        assert settings["data"]["init_args"]["name"] == cell.graph
        untrained = cell.method.endswith("(untrained)")
        assert (settings["trainer"]["max_steps"] == 0) == (cell.kind == "untrained") == untrained
    private, open_ = [0.5, 1.0, 2.0] * 4, [math.inf] * 4
    assert budgets == {
        "erdos_renyi (control)": private,
        "netgan": open_,
        "netgan (untrained)": open_,
        "dp_netgan": private,
        "dp_netgan (untrained)": private,
    }
    deltas = {cell.method: cell.settings["privacy"]["delta"] for cell in cells}
    assert deltas["erdos_renyi (control)"] == 0  # pure, and stays so
    assert deltas["dp_netgan"] == 1e-3
    assert len({cell.name for cell in cells}) == len(cells)


def test_interrupted(monkeypatch, tmp_path, capsys):
    def interrupted(missing, jobs, folder):
        yield missing[0], result(missing[0].method)
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "run_cells", interrupted)
    args = ["--graphs", "karate", "--epsilons", "1", "--runs", "1", "--out", str(tmp_path / "new")]
    assert main(["compare", "--methods", "erdos_renyi", *args]) == 130
    assert [path.suffix for path in (tmp_path / "new").rglob("?*.*")] == [".json"]
    err = capsys.readouterr().err
    assert "the results of 1 fits are kept" in err
    assert f"go on with: python -m lightning_dpg compare --methods erdos_renyi {args[0]}" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"methods": "erdos_reny"}, "did you mean erdos_renyi?"),
        ({"methods": "data/polblogs"}, "an overlay"),
        ({"methods": "taken"}, "taken: model: unknown class ErdosRenji, did you mean ErdosRenyi?"),
        ({"graphs": "karat"}, "did you mean karate?"),
        ({"graphs": "nowhere.edges"}, "nowhere.edges: no such file"),
        ({"epsilons": "0"}, "--epsilons must be positive and finite, got 0"),
        ({"epsilons": "inf"}, "{epsilon: .inf}"),
        ({"runs": "0"}, "--runs must be positive"),
        ({"delta": "1"}, "--delta"),
        ({"delta": "0.02", "methods": "dp_netgan"}, "--delta 0.02: not below one over the number"),
        ({"out": "taken"}, "--out taken: not a folder"),
        ({"epsilon": "1"}, "--epsilon"),
    ],
)
def test_mistakes_are_told_before_anything_starts(tmp_path, fails, options, said):
    (tmp_path / "taken").write_text("model: {class_path: ErdosRenji}")
    given = {"methods": "erdos_renyi", "graphs": "karate", "epsilons": "1", "out": "o"} | options
    args = [word for name, value in given.items() for word in (f"--{name}", value)]
    assert said in fails("compare", *args)


def test_a_control_that_is_named_is_there_once(monkeypatch):
    folder = conf_folder()
    monkeypatch.chdir(folder.parent)
    names = [
        "conf/baselines/erdos_renyi.yaml",
        "papers/zheng2021/citeseer_eps16",
        *SINGLE_GRAPHS.controls,
    ]
    found = compare._find(names)
    assert list(found) == ["erdos_renyi", "papers/zheng2021/citeseer_eps16", "chung_lu"]


def markdown_row(lines, title):
    """Cells of the row of a method, by column."""
    heads, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    (row,) = (row for row in rows if row[0] == title)
    return dict(zip(heads, row, strict=True))


def test_markdown_against_numbers_by_hand():
    assert {"edge_overlap", "community_nmi"} <= HIGHER_IS_BETTER
    results = [
        result("near", 0, triangles=0.1, edge_overlap=0.2, community_nmi=0.5, cluster=None),
        result("near", 1, triangles=0.3, edge_overlap=0.4, community_nmi=0.5, cluster=0.25),
        result("far", 0, triangles=0.5, edge_overlap=0.7, community_nmi=0.5, cluster=0.5),
        result("far", 1, triangles=2000.0, edge_overlap=0.8, community_nmi=0.5, cluster=0.5),
        result("open", 0, epsilon="inf", spent="inf", edge_overlap=1.0),
        result("beyond", 0, spent=1.5, edge_overlap=0.9),
        result("half", 0, edge_overlap=0.95),
        result("half", 1, failure="for want\nof memory"),
    ]
    text = tables.markdown(results, SINGLE_GRAPHS)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    near, far = markdown_row(lines, "near"), markdown_row(lines, "far")
    # sd of two numbers is their distance over the root of two
    assert near["triangles"] == "0.2 ± 0.14"  # less, but not told from a mean of such a deviation
    assert far["triangles"] == "1,000 ± 1,414"
    assert near["edge_overlap ↑"] == "0.3 ± 0.14"
    assert far["edge_overlap ↑"] == "**0.75 ± 0.071**"
    assert near["community_nmi ↑"] == far["community_nmi ↑"] == "0.5"  # nothing set apart
    assert near["cluster"] == "0.25 (1 of 2)"  # a number less: not best
    assert far["cluster"] == "0.5"  # and the only one left sets nothing apart
    assert near["num_nodes"] == "0"
    assert near["fit (s)"] == "2.5 ± 0.71"
    for title in ("open (not private)", "beyond (not private)"):
        row = markdown_row(lines, f"*{title}*")
        assert all(cell.startswith("*") and not cell.startswith("**") for cell in row.values())
    assert "**" not in "".join(markdown_row(lines, "half").values())
    assert "- half, run 1 failed: for want of memory" in text
    assert "- near: what near guarantees" in text


def test_rows_of_conditional_guarantees_are_marked_and_the_mark_is_explained():
    results = [result("chain", 0), result("chain", 1), result("plain", 0)]
    assert tables.MARK not in tables.markdown(results, SINGLE_GRAPHS)
    results[1]["privacy"]["conditional"] = True
    text = tables.markdown(results, SINGLE_GRAPHS)
    assert "\n| chain † | " in text
    assert "\n- chain †: " in text
    assert "\n| plain | " in text
    assert text.count(tables.FOOTNOTE) == 1
    assert [row["conditional"] for row in tables.csv_rows(results)][:: len(QUERIES)] == [
        *(False, True, False)
    ]
    page = report.page(
        results, {"karate": from_networkx(nx.karate_club_graph())}, SINGLE_GRAPHS, Path()
    )
    assert "<th scope=col>chain †</th>" in page
    assert page.count(tables.FOOTNOTE) == 1


def marked(query, **means):
    """Rows that are marked of those with runs at ``mean - 0.1`` and ``mean + 0.1``."""
    kinds = {"control": "control", "untrained": "untrained"}
    results = [
        result(name, run, kind=kinds.get(name, "method"), **{query: mean + shift})
        for name, mean in means.items()
        for run, shift in enumerate((-0.1, 0.1))
    ]
    (table,) = tables.tables(results)
    return tables.best(table.rows, query, SINGLE_GRAPHS)


def test_ties_are_marked_together_and_controls_only_alone():
    # Each mean has the variance 0.02 / 2, a difference the standard error 0.1414, two are 0.2828.
    assert marked("triangles", a=1.0, b=1.28, c=1.29) == {"a", "b"}
    assert marked("edge_overlap", a=0.3, b=0.5, c=0.6) == {"b", "c"}
    assert marked("triangles", control=1.0, a=1.28, c=1.29) == {"a"}
    assert marked("triangles", control=1.0, untrained=1.1, a=1.29) == {"control", "untrained"}
    assert marked("triangles", control=1.0, a=1.2) == set()
    assert marked("triangles", a=1.0) == set()
    one_run = [result(name, triangles=mean) for name, mean in (("a", 1.0), ("b", 1.01))]
    assert tables.best(tables.tables(one_run)[0].rows, "triangles", SINGLE_GRAPHS) == {"a"}


def test_rows_without_privacy_are_in_every_table():
    results = [result("a", epsilon=eps) for eps in (2.0, 0.5)]
    results.append(result("open", epsilon="inf", spent="inf"))
    found = tables.tables(results)
    assert [table.epsilon for table in found] == [0.5, 2.0]
    assert [[row.method for row in table.rows] for table in found] == [["a", "open"]] * 2


def test_summary_is_that_of_the_standard_library(tmp_path):
    values = np.random.default_rng(0).normal(size=7).tolist()
    mean, sd, runs = tables.summarize([*values, None])
    assert (mean, runs) == (pytest.approx(statistics.mean(values)), 7)
    assert sd == pytest.approx(math.sqrt(sum((v - mean) ** 2 for v in values) / 6))
    tables.write_csv([result("a", triangles=None), result("a", 1, "why")], tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == tables.COLUMNS
    assert len(rows) == len(QUERIES) + 1
    assert [row["error"] for row in rows if row["query"] == "triangles"] == [""]
    assert rows[-1]["note"] == "failed: why"


def quick(folder, *options):
    words = ["--methods", "erdos_renyi", "--graphs", "karate", "--epsilons", "1", "--runs", "1"]
    return ["compare", *words, "--out", str(folder), *options]


def test_a_second_compare_in_one_folder_is_refused_at_once(tmp_path, asked):
    (tmp_path / "out").mkdir()
    path = str(tmp_path / "out" / ".lock")
    code = f"from filelock import FileLock; lock = FileLock({path!r}); lock.acquire()"
    script = f"{code}; print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as other:
        other.stdout.readline()
        with pytest.raises(CommandError, match="another compare is at work in it"):
            compare.run(quick(tmp_path / "out")[1:])
        assert not asked
        other.kill()
    # A process that has died holds nothing.
    with pytest.raises(SystemExit):
        compare.run(quick(tmp_path / "out")[1:])
    assert asked


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a folder that cannot be written to")
def test_a_folder_that_cannot_be_written_to_is_refused_before_any_fit(fails, asked):
    assert "/proc" in fails(*quick("/proc"))
    assert "/proc/new" in fails(*quick("/proc/new"))
    assert not asked


def test_a_full_disk_leaves_no_broken_file_and_says_how_to_go_on(tmp_path, asked, capsys):
    assert main(quick(tmp_path / "out")) == 2
    (tmp_path / "out" / "report.html").unlink()
    capsys.readouterr()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
    try:
        assert main(quick(tmp_path / "out")) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    err = capsys.readouterr().err
    assert len(err.splitlines()) <= 5
    assert "results of 2 fits are kept" in err
    assert "go on with: python -m lightning_dpg compare --methods erdos_renyi" in err
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names <= {"cells", "results.csv", "results.md", ".lock"}


def alive(group):
    """Processes of a group, without those that are dead and not yet buried."""
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of = path.read_text().rpartition(")")[2].split()[:3]
            states += [path] if int(of) == group and state != "Z" else []
    return states


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="looks for processes there")
@pytest.mark.parametrize("moment", ["imports", "fit"])
def test_ctrl_c_ends_all_processes_and_says_how_to_go_on(tmp_path, moment):
    out = tmp_path / "out"
    args = [sys.executable, "-m", "lightning_dpg", *quick(out, "--runs", "500", "--jobs", "2")]
    place = Path(__file__).parents[2]
    with subprocess.Popen(
        args, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0, text=True
    ) as process:
        line = process.stdout.readline()  # the workers are about to start
        if moment == "fit":
            line = process.stdout.readline()
        assert line
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert len(err.splitlines()) <= 5, err
    assert "fits are kept" in err
    assert "go on with: python -m lightning_dpg compare" in err
    # The tracker of resources, which Python starts beside the workers, ends a moment later.
    deadline = time.monotonic() + 20
    while alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(process.pid)


def test_workers_end_with_a_parent_that_was_killed(tmp_path, monkeypatch):
    ended = []
    monkeypatch.setattr(cells.os, "_exit", ended.append)
    parent = SimpleNamespace(join=lambda: ended.append("join"))
    monkeypatch.setattr(cells.multiprocessing, "parent_process", lambda: parent)
    cells._end_with_parent()
    assert ended == ["join", 1]


@pytest.mark.slow
def test_a_dead_process_costs_one_cell(tmp_path, monkeypatch):
    (tmp_path / "crash.py").write_text(CRASH)
    monkeypatch.syspath_prepend(tmp_path)
    settings = compare.parse_settings(compare.find_config("erdos_renyi"))
    trainer = settings["trainer"] | {"callbacks": [{"class_path": "crash.Crash"}]}
    bad = Cell("bad", "method", "karate", 1.0, 0, settings | {"trainer": trainer}, "1")
    good = Cell("good", "method", "les_miserables", 1.0, 0, settings, "2")
    (_, first), (_, second) = run_cells([bad, good], 1, tmp_path)
    assert (first["method"], first["failure"]) == ("bad", "its process ended with code 9")
    assert (second["method"], second["failure"]) == ("good", None)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [good.name]
