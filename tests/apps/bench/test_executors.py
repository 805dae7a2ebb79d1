"""Comparisons on other executors: those that lose calls, and those that end early."""

import re
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest
import yaml

from lightning_dpg.apps.bench.engine import compare as compared
from lightning_dpg.apps.bench.result_folder import BrokenOffError
from lightning_dpg.errors import CommandError


class AtOnce(Executor):
    """Runs calls in this process; the errors of some calls are given."""

    def __init__(self, errors=()):
        self.errors = list(errors)

    def submit(self, call, *args):
        future = Future()
        error = self.errors.pop(0) if self.errors else None
        if error is None:
            future.set_result(call(*args))
        else:
            future.set_exception(error)
        return future


def compare(out, executor, **changes):
    given = {"methods": ["chung_lu"], "graphs": ["karate"], "epsilons": [1], "seeds": [0]}
    return compared(**given | changes, out=out, executor=executor, say=str)


def test_a_fit_that_the_executor_loses_twice_is_marked_and_the_others_leave_their_files(tmp_path):
    killed = RuntimeError("\n".join(f"line {number}" for number in range(9)))
    results = compare(tmp_path, AtOnce([killed, None, killed]))
    failures = {run["method"]: run["failure"] for run in results.runs}
    first, second = failures.values()
    assert first.splitlines() == ["RuntimeError: line 0", *(f"line {k}" for k in range(1, 5))]
    assert second is None
    (done,) = [run["name"] for run in results.runs if run["failure"] is None]
    (config,) = (tmp_path / "runs").rglob("config.yaml")
    folder = yaml.safe_load(config.read_text())["trainer"]["default_root_dir"]
    assert folder == str(tmp_path / "runs" / done)
    again = compare(tmp_path, AtOnce([killed]))  # what failed, lost once and then run on its own
    assert again.failed == 0


def test_an_executor_that_ends_early_records_no_failure(tmp_path):
    with pytest.raises(BrokenOffError, match=r"executor has ended \(AtOnce: BrokenProcessPool\)"):
        compare(tmp_path, AtOnce([BrokenProcessPool("a process died")] * 2))
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("executor", "changes", "said"),
    [
        (ThreadPoolExecutor(1), {}, "ThreadPoolExecutor runs fits in this process"),
        (AtOnce(), {"processes": 2}, "give one of them"),
        ("tcp://host:8786", {}, "must be a concurrent.futures.Executor, got str"),
    ],
)
def test_executors_that_cannot_run_fits_are_refused(tmp_path, executor, changes, said):
    with pytest.raises(CommandError, match=re.escape(said)):
        compare(tmp_path / "out", executor, **changes)
    assert not (tmp_path / "out").exists()
