"""Worker processes end with their parent, and a dead worker costs one call."""

import contextlib
import operator
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from joblib.externals.loky import process_executor

from lightning_dpg.apps.bench.jobs import Job, run_jobs
from lightning_dpg.apps.bench.workers import ProcessDiedError, SeparateProcesses, run_logged
from lightning_dpg.run.configurations import find_config
from lightning_dpg.run.fit import method_settings

ROOT = Path(__file__).parents[3]
LIMIT = 300  # seconds, of a machine under load
CRASH = """
import os
from pytorch_lightning.callbacks import Callback

class Crash(Callback):
    def on_fit_start(self, trainer, pl_module):
        print("about to crash", flush=True)
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


def all_end(group):
    """Whether all processes of a group end, of whom some do so a moment later than their parent."""
    deadline = time.monotonic() + LIMIT
    while alive(group) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not alive(group)


UNGUARDED = """
import operator
from lightning_dpg.apps.bench.workers import SeparateProcesses

print("run by", __name__)
with SeparateProcesses(1) as executor:
    print([executor.submit(operator.neg, number).result() for number in (1, 2)])
"""
LONG = """
import time
from lightning_dpg.apps.bench.workers import SeparateProcesses

executor = SeparateProcesses(1)
executor.submit(int).result()
executor.submit(time.sleep, 600)
print(flush=True)
time.sleep(600)
"""


class Fatal:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (3,)


QUICK = [
    *("compare", "--methods", "erdos_renyi", "--graphs", "karate", "--epsilons", "1"),
    *("--runs", "500", "--jobs", "2"),
]
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").is_file(), reason="looks for processes there"
)


def wait_for(folder, pattern, process):
    """Wait for a file of a running process."""
    while not any(folder.glob(pattern)):
        assert process.poll() is None
        time.sleep(0.05)


@needs_proc
@pytest.mark.parametrize("moment", ["imports", "fit, ended by a batch system"])
def test_ctrl_c_ends_all_processes_and_says_how_to_go_on(tmp_path, moment):
    out = tmp_path / "out"
    args = [sys.executable, "-m", "lightning_dpg", *QUICK, "--out", str(out)]
    with subprocess.Popen(
        args,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
        text=True,
        # Tests that a shell runs in the background inherit that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as process:
        # The workers are about to start, or a fit has ended.
        wait_for(out, ".lock" if moment == "imports" else "cells/*", process)
        if moment.endswith("system"):
            process.terminate()
        else:
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert len(err.splitlines()) <= 5, err
    assert "fits are kept" in err
    assert "go on with the same command line again" in err
    assert all_end(process.pid)
    assert not [path for path in out.rglob("*") if path.name.endswith(".part")]


@needs_proc
def test_ctrl_c_reaches_no_process_of_an_executor():
    """Nor the first one, which a new interpreter starts together with a tracker of resources."""
    script = """
import signal
from lightning_dpg.apps.bench.workers import SeparateProcesses
executor = SeparateProcesses(1)
blocked = executor.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result()
print(signal.SIGINT in blocked)
executor.shutdown()
"""
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert run.stdout == "True\n", run.stderr


@needs_proc
def test_workers_end_with_a_parent_that_was_killed():
    with subprocess.Popen(
        [sys.executable, "-c", LONG], cwd=ROOT, stdout=subprocess.PIPE, process_group=0
    ) as process:
        assert process.stdout.readline()
        assert len(alive(process.pid)) > 1
        process.kill()
    assert all_end(process.pid)


def test_a_dead_process_costs_one_job_and_its_log_stays(tmp_path, monkeypatch):
    (tmp_path / "crash.py").write_text(CRASH)
    monkeypatch.syspath_prepend(tmp_path)
    settings = method_settings(find_config("erdos_renyi"))
    trainer = settings["trainer"] | {"callbacks": [{"class_path": "crash.Crash"}]}
    bad = Job("bad", "method", "karate", 1.0, 0, settings | {"trainer": trainer}, "1")
    good = Job("good", "method", "les_miserables", 1.0, 0, settings, "2")
    with SeparateProcesses(1) as executor:
        results = [result for _, result in run_jobs([bad, good], executor, tmp_path)]
    # The other job is done before the one whose process died is run once more.
    found = [(result["method"], result["failure"]) for result in results]
    assert found == [("good", None), ("bad", "its process ended with EXIT(9)")]
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [good.name]
    assert "about to crash" in (tmp_path / "logs" / f"{bad.name}.log").read_text()
    log = (tmp_path / "logs" / f"{good.name}.log").read_text()
    assert f"run folder: {tmp_path / 'runs' / good.name}" in log


def test_a_script_without_a_main_guard_is_run_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT,
        check=False, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("run by __main__\n[-1, -2]\n", "")


def test_a_process_that_dies_before_it_reads_its_call_costs_one_call():
    with SeparateProcesses(1) as executor:
        calls = [executor.submit(operator.is_, None, item) for item in (Fatal(), None)]
        with pytest.raises(ProcessDiedError, match=r"^its process ended with EXIT\(3\)$"):
            calls[0].result()
        assert calls[1].result() is True


def test_a_shutdown_ends_calls_that_run_and_cancels_those_that_wait():
    with SeparateProcesses(1) as executor:
        calls = [executor.submit(time.sleep, 600) for _ in range(2)]
    assert all(call.cancelled() or call.exception() for call in calls)


def test_a_shutdown_right_after_a_call_was_given_prints_nothing(monkeypatch):
    manager = process_executor._ExecutorManagerThread
    wait, failures = manager.wait_result_broken_or_wakeup, []

    def slow_wait(self):
        outcome = wait(self)
        time.sleep(0.3)  # a shutdown falls between the wakeup by a call and its start
        return outcome

    with SeparateProcesses(1) as executor:
        monkeypatch.setattr(threading, "excepthook", failures.append)
        monkeypatch.setattr(manager, "wait_result_broken_or_wakeup", slow_wait)
        executor.submit(int).result()
        executor.submit(time.sleep, 600)
        time.sleep(0.1)
    assert not failures


def test_output_goes_to_the_log_and_afterwards_to_the_terminal_again(tmp_path, capfd):
    log = tmp_path / "logs" / "log"
    call = pickle.dumps(partial(os.system, "echo from a child; echo error >&2"))
    for place in (log, None):
        assert run_logged(call, place) == (0, b"from a child\nerror\n")
    assert log.read_text() == "from a child\nerror\n"
    assert capfd.readouterr() == ("", "")
    os.write(1, b"after")
    assert capfd.readouterr().out == "after"
