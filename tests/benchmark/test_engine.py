"""The benchmark as a function resumes, returns results, and refuses bad arguments."""

import errno
import json
import re

import networkx as nx
import pytest
import yaml

from lightning_dpg.benchmark import benchmark, engine
from lightning_dpg.benchmark.jobs import fit_and_evaluate
from lightning_dpg.benchmark.result_folder import locked
from lightning_dpg.benchmark.study import complete
from lightning_dpg.errors import CommandError


@pytest.fixture
def in_this_process(monkeypatch):
    """Names of the jobs that are run, without processes of their own."""
    names = []

    def run(jobs, processes, folder):
        for job in jobs:
            names.append(job.name)
            yield job, fit_and_evaluate(job, folder)

    monkeypatch.setattr(engine, "run_jobs", run)
    return names


def test_results_are_those_of_the_folder_and_are_made_once(tmp_path, in_this_process):
    said = []
    results = benchmark(["erdos_renyi"], ["karate"], [2, 0.5], tmp_path, seeds=[0], say=said.append)
    assert [(table.graph, table.epsilon) for table in results.tables] == [
        ("karate", 0.5),
        ("karate", 2),
    ]
    rows = [row.method for table in results.tables for row in table.rows]
    assert rows == ["erdos_renyi (baseline)", "chung_lu (baseline)"] * 2
    recorded = [json.loads(path.read_text()) for path in (tmp_path / "cells").iterdir()]
    assert sorted(run["name"] for run in results.runs) == sorted(run["name"] for run in recorded)
    assert results.failed == 0
    assert all(path.is_file() for path in results.files)
    assert len(in_this_process) == 4
    again = benchmark(["erdos_renyi"], ["karate"], [2, 0.5], tmp_path, seeds=[0], say=said.append)
    assert len(in_this_process) == 4
    assert again.runs == results.runs
    assert said[-1] == "4 fits, 4 of them done already"


STUDY = {"methods": ["erdos_renyi"], "graphs": ["karate"], "epsilons": [0.5, 2], "seeds": [3]}


def write_study(folder, changes=None):
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump({"title": "Small", "benchmark": STUDY | (changes or {})}))
    return file


def test_a_study_gives_the_arguments_and_given_ones_win(tmp_path, in_this_process):
    study = write_study(tmp_path)
    results = benchmark(study=study, out=tmp_path / "out", epsilons=[1], say=str)
    assert {(run["graph"], run["epsilon"], run["run"]) for run in results.runs} == {
        ("karate", 1, 3)
    }
    given = {"delta": 1e-5, "epsilons": None}
    assert complete(study, given) == (
        ["erdos_renyi"],
        ["karate"],
        [0.5, 2],
        [3],
        1e-5,
        False,
        False,
        "undirected",
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"epsilons": [1, "two"]}, "benchmark: epsilons: must be a list of numbers, got"),
        ({"seeds": 5}, "benchmark: seeds: must be a list of whole numbers, got 5"),
        ({"graphs": "karate"}, "benchmark: graphs: must be a list of names, got 'karate'"),
        (
            {"kind": "both"},
            "benchmark: kind: must be undirected, directed or bipartite, got 'both'",
        ),
        ({"classify": 1}, "benchmark: classify: must be true or false, got 1"),
        ({"epsilon": 1}, "benchmark: epsilon: no such argument, did you mean epsilons?"),
    ],
)
def test_faults_of_a_study_name_file_and_key(tmp_path, changes, said):
    study = write_study(tmp_path, changes)
    with pytest.raises(CommandError, match=re.escape(f"study {study}: {said}")):
        benchmark(study=study, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_no_study_is_refused(tmp_path):
    (tmp_path / "study.yaml").write_text("title: Measured otherwise\n")
    for file in ("study.yaml", "missing.yaml"):
        with pytest.raises(CommandError, match=f"study .*{file}: (no section benchmark|cannot be)"):
            benchmark(study=tmp_path / file, out=tmp_path / "out")
    with pytest.raises(CommandError, match="methods, epsilons missing; give them, or a study"):
        benchmark(graphs=["karate"], out=tmp_path / "out")
    with pytest.raises(CommandError, match="out missing"):
        benchmark(study=write_study(tmp_path))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seeds": []}, "there must be a seed"),
        ({"processes": 0}, "a process or more, got 0"),
        ({"epsilons": [0]}, "epsilons must be positive and finite, got 0"),
        ({"graphs": ["karat"]}, "did you mean karate"),
        ({"methods": ["bte"]}, r"methods bte: no such file[^-]+lightning_dpg.list_methods\(\)$"),
        ({"methods": "bter"}, r"methods must be a list of names, such as \['bter'\]"),
        ({"epsilons": 1.0}, "epsilons must be a list of numbers, got 1.0"),
        ({"graphs": [nx.karate_club_graph()]}, "of type Graph\nwrite a graph to a file"),
        (
            {"graphs": ["directed.graphml"]},
            "set undirected=True of lightning_dpg.read to drop the directions$",
        ),
    ],
)
def test_refused_arguments_leave_no_folder(tmp_path, monkeypatch, changes, said):
    monkeypatch.chdir(tmp_path)
    nx.write_graphml(nx.DiGraph([("0", "1"), ("1", "2")]), "directed.graphml")
    given = {"methods": ["bter"], "graphs": ["karate"], "epsilons": [1], "out": tmp_path / "out"}
    with pytest.raises(CommandError, match=said):
        benchmark(**given | changes)
    assert not (tmp_path / "out").exists()


def test_a_network_folder_without_locks_is_used(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(number, "refused by the file system")

    monkeypatch.setattr("fcntl.flock", refuse)
    number = errno.ENOLCK
    with locked(tmp_path):
        pass
    number = errno.EIO
    with pytest.raises(CommandError, match="cannot be written to"), locked(tmp_path):
        pass
