"""``compare`` works from end to end: results, resumption, and refused arguments."""

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest
import yaml

from lightning_dpg.apps.bench import engine
from lightning_dpg.apps.bench.command import compare
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.io import from_networkx, read_graph
from lightning_dpg.main import main
from lightning_dpg.metrics import queries
from lightning_dpg.metrics.queries import KIND_QUERIES
from lightning_dpg.run.commands.arguments import call
from tests.apps.bench.conftest import read_csv
from tests.recorded import result

BROKEN = {  # a private run with a least number of steps is refused when its fit starts
    "model": {"class_path": "ErdosRenyi"},
    "data": {"class_path": "EdgeListDataModule"},
    "trainer": {"min_steps": 5},
    "privacy": {"epsilon": 1.0, "delta": 1e-6},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of the baselines and of a method that fails, on karate: two runs, one budget."""
    folder = tmp_path_factory.mktemp("compare")
    (folder / "broken.yaml").write_text(yaml.safe_dump(BROKEN))
    assert main(command(folder)) == 2
    return folder


def command(folder, *options):
    methods = ["--methods", str(folder / "broken.yaml"), "--graphs", "karate"]
    # At 1 the noisy number of edges is 0 in one fit of a hundred, and no file holds such a graph.
    rest = ["--epsilons", "4", "--runs", "2", "--jobs", "1", "--out", str(folder / "out")]
    return ["compare", *methods, *rest, *options]


@pytest.fixture
def asked(monkeypatch):
    """Jobs that would be run; none is."""
    jobs = []

    def pretend(missing, processes, folder):
        jobs.extend(missing)
        for job in missing:
            yield job, result(job.method, job.run, "not run") | {"graph": job.graph}

    monkeypatch.setattr(engine, "run_jobs", pretend)
    return jobs


def test_without_a_study_three_options_are_required(tmp_path):
    with pytest.raises(
        CommandError, match=r"required: --methods, --epsilons \(or --study, or --like\)"
    ):
        call(compare, ["--graphs", "karate", "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_results_are_those_of_the_kept_graphs(folder):
    rows = read_csv(folder)
    real = queries.profile(from_networkx(nx.karate_club_graph()))
    for method in ("erdos_renyi", "chung_lu"):
        (path,) = (folder / "out" / "runs").glob(f"{method}*/**/synthetic-0.npz")
        mine = [r for r in rows if r["method"] == f"{method} (baseline)" and r["run"] == "0"]
        expected = queries.compare(real, read_graph(path))
        assert [row["query"] for row in mine] == list(expected)
        for row, answer in zip(mine, expected.values(), strict=True):
            assert float(row["error"] or "nan") == pytest.approx(answer.score, nan_ok=True)
            assert float(row["spent_epsilon"]) <= 4 + 1e-9
            assert (row["role"], row["private"], row["relation"]) == ("baseline", "True", "edge")
            assert float(row["fit_seconds"]) > float(row["draw_seconds"]) > 0


def test_only_what_is_needed_stays(folder):
    out = folder / "out"
    assert {path.name for path in out.iterdir()} == {
        *(".lock", "cells", "logs", "runs", "report.html", "results.csv")
    }
    assert len(list((out / "cells").glob("*.json"))) == len(list((out / "cells").iterdir())) == 6
    names = {path.name for path in (out / "runs").rglob("*") if path.is_file()}
    assert names == {"config.yaml", "privacy.json", "synthetic-0.npz"}
    assert len(list((out / "runs").iterdir())) == 4  # what failed has left nothing


def test_failures_say_why(folder):
    failed = [row for row in read_csv(folder) if row["note"].startswith("failed")]
    assert {(row["method"], row["run"]) for row in failed} == {("broken", "0"), ("broken", "1")}
    jobs = [json.loads(path.read_text()) for path in (folder / "out" / "cells").glob("broken*")]
    assert len(jobs) == 2
    for job in jobs:
        assert "min_steps" in job["failure"]
        assert len(job["failure"].splitlines()) <= 5
    assert "broken, run 1 failed:" in (folder / "out" / "report.html").read_text()


def test_a_second_call_does_what_failed(folder, asked, tmp_path):
    again = tmp_path / "again"  # tests of the same results may come after this one
    shutil.copytree(folder, again)
    before = {path: path.read_bytes() for path in (again / "out" / "cells").glob("*baseline*")}
    assert len(before) == 4
    assert main(command(again)) == 2
    assert [(job.method, job.run) for job in asked] == [("broken", 0), ("broken", 1)]
    assert all(path.read_bytes() == content for path, content in before.items())


def test_interrupted(monkeypatch, tmp_path, capsys):
    def interrupted(missing, processes, folder):
        yield missing[0], result(missing[0].method)
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "run_jobs", interrupted)
    args = ["--graphs", "karate", "--epsilons", "1", "--runs", "1", "--out", str(tmp_path / "new")]
    assert main(["compare", "--methods", "erdos_renyi", *args]) == 130
    assert [path.suffix for path in (tmp_path / "new").rglob("?*.*")] == [".json"]
    err = capsys.readouterr().err
    assert "the results of 1 fits are kept" in err
    assert "go on with the same command line again" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"methods": "data/polblogs"}, "an overlay"),
        ({"methods": "taken"}, "taken: model: unknown class ErdosRenji, did you mean ErdosRenyi?"),
        ({"graphs": "nowhere.edges"}, "nowhere.edges: no such file"),
        ({"epsilons": "inf"}, "{epsilon: .inf}"),
        ({"runs": "0"}, "--runs must be positive"),
        ({"delta": "1"}, "delta must be between"),
        ({"delta": "0.02", "methods": "dp_netgan"}, "delta 0.02: not below one over the number"),
        ({"out": "taken"}, "taken: not a folder"),
        ({"epsilon": "1"}, "--epsilon"),
    ],
)
def test_mistakes_are_told_before_anything_starts(tmp_path, fails, options, said):
    (tmp_path / "taken").write_text("model: {class_path: ErdosRenji}")
    given = {"methods": "erdos_renyi", "graphs": "karate", "epsilons": "1", "out": "o"} | options
    args = [word for name, value in given.items() for word in (f"--{name}", value)]
    assert said in fails("compare", *args)


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
        with pytest.raises(CommandError, match="another benchmark is at work in it"):
            call(compare, quick(tmp_path / "out")[1:])
        assert not asked
        other.kill()
    # A process that has died holds nothing.
    call(compare, quick(tmp_path / "out")[1:])
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
    assert "go on with the same command line again" in err
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names <= {"cells", "results.csv", ".lock"}


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("kind", ["directed", "bipartite"])
def test_graphs_of_other_kinds_are_compared_as_such(kind, here, refusal):
    graph = "davis"
    if kind == "directed":
        graph = "votes.graphml"
        nx.write_graphml(nx.gnp_random_graph(30, 0.15, seed=1, directed=True), graph)
    rest = ["--graphs", graph, "--epsilons", "2", "--runs", "1", "--out", "out", "--kind", kind]
    assert "PrivGraph" in refusal(main(["compare", "--methods", "bter", *rest]))
    assert not Path("out").exists()
    assert main(["compare", "--methods", "privgraph", *rest]) == 0
    rows = read_csv(here)
    assert {row["method"].partition(" ")[0] for row in rows} == {
        "erdos_renyi",
        "chung_lu",
        "privgraph",
    }
    own = KIND_QUERIES[kind]
    asked = {row["query"] for row in rows}
    assert {*own, "triangles"} <= asked
    assert all(query in Path("out/report.html").read_text() for query in own)
