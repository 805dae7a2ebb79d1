"""Comparisons on other executors: a Dask cluster that loses a worker, executors that end early."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
import yaml

from lightning_dpg.apps.bench.engine import compare as compared
from lightning_dpg.apps.bench.jobs import Job, run_jobs
from lightning_dpg.apps.bench.result_folder import DRAWN, BrokenOffError
from lightning_dpg.errors import CommandError
from lightning_dpg.privacy import noise
from lightning_dpg.run.configurations import find_config
from lightning_dpg.run.fit import method_settings, on_data

ROOT = Path(__file__).parents[3]
LIMIT = 300  # seconds, of a machine under load
# The same noise in all executors, and a worker that is killed once.
PROBE = """
import os, random, signal
from pathlib import Path
from types import SimpleNamespace

from pytorch_lightning import Callback
from lightning_dpg.privacy import noise


class SameNoise(Callback):
    def setup(self, trainer, pl_module, stage):
        key = random.Random(os.environ["PL_GLOBAL_SEED"])
        noise.secrets = SimpleNamespace(randbits=key.getrandbits)


class KilledOnce(SameNoise):
    def on_train_start(self, trainer, pl_module):
        marker = Path(__file__).with_name("killed")
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
"""


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


@pytest.fixture
def scheduler(tmp_path):
    """Address of a Dask cluster of two worker processes."""
    pytest.importorskip("distributed", reason="needs the extra cluster")
    file = tmp_path / "scheduler.json"
    shared = [f"--scheduler-file={file}", "--no-dashboard"]
    worker = ["distributed.cli.dask_worker", *shared, "--nthreads=1", "--no-nanny"]
    roles = [
        ["distributed.cli.dask_scheduler", *shared, "--host=127.0.0.1", "--port=0"],
        [*worker, f"--local-directory={tmp_path / 'first'}"],
        [*worker, f"--local-directory={tmp_path / 'second'}"],
    ]
    paths = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}", "OMP_NUM_THREADS": "1"}
    with (tmp_path / "dask.log").open("w") as log:
        options = {"cwd": tmp_path, "env": paths, "stdout": log, "stderr": log}
        started = [subprocess.Popen([sys.executable, "-m", *role], **options) for role in roles]
        try:
            deadline = time.monotonic() + LIMIT
            while not file.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            yield yaml.safe_load(file.read_text())["address"]
        finally:
            for process in reversed(started):
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=LIMIT)


def test_a_dask_cluster_that_loses_a_worker_gives_the_results_of_this_process(
    here, scheduler, monkeypatch
):
    monkeypatch.syspath_prepend(here)
    Path("probe.py").write_text(PROBE)
    graph = "\n".join(f"{i},{(i + step) % 40}" for i in range(40) for step in (1, 7))
    Path("ring.csv").write_text(graph)  # its path is relative: workers have another folder
    settings = on_data(method_settings(find_config("bter")), "ring.csv")
    settings["data"]["init_args"]["nodes"] = {"names": "ids"}  # not in a secret order
    jobs = []
    for name in ("KilledOnce", "SameNoise"):
        trainer = settings["trainer"] | {"callbacks": [
            *settings["trainer"]["callbacks"], {"class_path": f"probe.{name}"},
        ]}  # fmt: skip
        whole = settings | {"trainer": trainer, "seed_everything": len(jobs)}
        jobs.append(Job(name, "method", "ring.csv", 1.0, len(jobs), whole, "1"))
    with pytest.importorskip("distributed").Client(scheduler, set_as_default=False) as client:
        executor = client.get_executor(pure=False)
        cluster = {job.method: result for job, result in run_jobs(jobs, executor, Path("cluster"))}
    assert Path("killed").exists()
    monkeypatch.setattr(noise, "secrets", noise.secrets)  # put back after the test
    local = {job.method: result for job, result in run_jobs(jobs, AtOnce(), Path("local"))}
    for job in jobs:
        assert cluster[job.method]["failure"] is local[job.method]["failure"] is None
        assert cluster[job.method]["answers"] == local[job.method]["answers"]
    files = [sorted(map(str, Path(place).rglob("*"))) for place in ("cluster", "local")]
    assert files[0] == [name.replace("local", "cluster", 1) for name in files[1]]
    assert any(name.endswith(DRAWN) for name in files[0])
