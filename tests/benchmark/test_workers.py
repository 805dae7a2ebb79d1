"""Worker processes end with their parent, and a dead worker costs one call."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from lightning_dpg.benchmark import workers
from lightning_dpg.benchmark.jobs import Job, run_jobs
from lightning_dpg.running.complete import method_settings
from lightning_dpg.running.settings import find_config

CRASH = """
import os
from pytorch_lightning.callbacks import Callback

class Crash(Callback):
    def on_fit_start(self, trainer, pl_module):
        os._exit(9)
"""


def alive(group):
    """Processes of a group, without those that are dead and not yet buried."""
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of = path.read_text().rpartition(")")[2].split()[:3]
            states += [path] if int(of) == group and state != "Z" else []
    return states


UNGUARDED = """
import operator, sys
from pathlib import Path
from lightning_dpg.benchmark.workers import run_calls

print("run by", __name__)
calls = run_calls(operator.neg, [1, 2], 1, log_of=lambda _: Path(sys.argv[1]), clean_up=print)
print(list(calls))
"""


class Fatal:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (3,)


QUICK = [
    *("compare", "--methods", "erdos_renyi", "--graphs", "karate", "--epsilons", "1"),
    *("--runs", "500", "--jobs", "2"),
]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="looks for processes there")
@pytest.mark.parametrize("moment", ["imports", "fit"])
def test_ctrl_c_ends_all_processes_and_says_how_to_go_on(tmp_path, moment):
    out = tmp_path / "out"
    args = [sys.executable, "-m", "lightning_dpg", *QUICK, "--out", str(out)]
    place = Path(__file__).parents[2]
    with subprocess.Popen(
        args,
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
        text=True,
        # Tests that a shell runs in the background inherit that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
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
    monkeypatch.setattr(workers.os, "_exit", ended.append)
    parent = SimpleNamespace(join=lambda: ended.append("join"))
    monkeypatch.setattr(workers.multiprocessing, "parent_process", lambda: parent)
    workers._end_with_parent()
    assert ended == ["join", 1]


@pytest.mark.slow
def test_a_dead_process_costs_one_job(tmp_path, monkeypatch):
    (tmp_path / "crash.py").write_text(CRASH)
    monkeypatch.syspath_prepend(tmp_path)
    settings = method_settings(find_config("erdos_renyi"))
    trainer = settings["trainer"] | {"callbacks": [{"class_path": "crash.Crash"}]}
    bad = Job("bad", "method", "karate", 1.0, 0, settings | {"trainer": trainer}, "1")
    good = Job("good", "method", "les_miserables", 1.0, 0, settings, "2")
    (_, first), (_, second) = run_jobs([bad, good], 1, tmp_path)
    assert (first["method"], first["failure"]) == ("bad", "its process ended with code 9")
    assert (second["method"], second["failure"]) == ("good", None)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [good.name]


def test_a_script_without_a_main_guard_is_run_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, script, log], cwd=tmp_path, capture_output=True, text=True, timeout=60,
        check=False, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert done.stdout == "run by __main__\n[(1, -1), (2, -2)]\n", done.stderr
    assert log.read_text() == ""


def test_a_process_that_dies_before_it_reads_its_call_costs_one_call():
    cleaned = []
    calls = workers.run_calls(abs, [1], 1, log_of=lambda _: Fatal(), clean_up=cleaned.append)
    ((item, result),) = calls
    assert (item, cleaned) == (1, [1])
    assert isinstance(result, workers.ProcessDiedError)
    assert str(result) == "its process ended with code 3"
