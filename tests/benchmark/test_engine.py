"""The benchmark as a function resumes, returns results, and refuses bad arguments."""

import json

import pytest

from lightning_dpg.benchmark import benchmark, engine
from lightning_dpg.benchmark.jobs import fit_and_evaluate
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


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seeds": []}, "there must be a seed"),
        ({"processes": 0}, "a process or more, got 0"),
        ({"epsilons": [0]}, "epsilons must be positive and finite, got 0"),
        ({"graphs": ["karat"]}, "did you mean karate"),
        ({"methods": ["bte"]}, "methods bte: no such file"),
    ],
)
def test_refused_arguments_leave_no_folder(tmp_path, changes, said):
    given = {"methods": ["bter"], "graphs": ["karate"], "epsilons": [1], "out": tmp_path / "out"}
    with pytest.raises(CommandError, match=said):
        benchmark(**given | changes)
    assert not (tmp_path / "out").exists()
