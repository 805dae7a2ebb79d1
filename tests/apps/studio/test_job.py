"""A run is a process of its own: its state, its lock and its stop outlive the studio."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from lightning_dpg.apps.studio import job as jobs
from lightning_dpg.apps.studio.answers import Answers
from lightning_dpg.errors import CommandError
from tests.apps.studio.doors import text_of, wait_for

PROGRAM = """#!{python}
import json, signal, sys, time
def interrupted(*_):
    print("\\ninterrupted\\n1 of 5 steps made; spent for good: epsilon 0.2 of 1", file=sys.stderr)
    sys.exit(130)
signal.signal(signal.SIGINT, interrupted)
print("ready", file=sys.stderr, flush=True)
if "--card.operator=wait" in sys.argv:
    time.sleep(60)
if "--card.operator=refuse" in sys.argv:
    print(json.dumps({{"command": "fit", "error": "the book refuses it\\nask its owner", "exit_code": 2}}))
    sys.exit(2)
print(json.dumps({{"command": "fit", "run_folder": "runs/studio-1"}}))
"""


@pytest.fixture(autouse=True)
def _program(tmp_path, monkeypatch):
    """A program in place of the command line, which does what its options say."""
    path = tmp_path / "program"
    path.write_text(PROGRAM.format(python=sys.executable))
    path.chmod(0o700)
    monkeypatch.setattr(jobs.sys, "executable", str(path))


def started(data="transfers.csv", operator=""):
    answers = Answers(data=data, method="chung_lu", card={"operator": operator})
    run = jobs.new_job(answers)
    run = run.start(answers.words(run.out), [("number of edges", 1, "edge")], "")
    wait_for(lambda: "ready" in run.messages.read_text())
    return run


def test_a_run_ends_done_or_refused_and_starts_once(folder):
    run = started()
    wait_for(lambda: run.state != "running")
    assert run.state == "done"
    with pytest.raises(CommandError, match="was started"):
        jobs.job(run.number).start([], [], "")
    refused = started(operator="refuse")
    wait_for(lambda: refused.state != "running")
    assert refused.state == "refused"
    assert refused.problem == "error: the book refuses it\nask its owner"


def test_one_run_at_a_time_on_the_same_data(folder):
    first = started(operator="wait")
    (folder / "same.csv").hardlink_to(folder / "transfers.csv")
    with pytest.raises(CommandError, match=f"run {first.number} works on the same data"):
        started()
    other = started("people.csv")
    wait_for(lambda: other.state == "done")
    first.stop()
    wait_for(lambda: first.state == "stopped")
    assert first.problem.splitlines()[0] == "interrupted" and "epsilon 0.2" in first.problem
    assert started().number > other.number


def test_a_run_goes_on_without_the_studio_and_another_one_sees_and_stops_it(folder):
    run = started(operator="wait")
    code = f"""
from lightning_dpg.apps.studio.job import job
run = job({run.number})
assert run.state == "running" and run.holder == {run.number}
run.stop()
"""
    # A process that is no parent of the run, as a studio that was started again.
    python = os.path.realpath(f"/proc/{os.getpid()}/exe")
    subprocess.run(
        [python, "-c", code], check=True, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    )
    wait_for(lambda: run.state == "stopped")


def test_a_killed_run_has_ended_without_a_result(folder):
    run = started(operator="wait")
    os.kill(run.process, signal.SIGKILL)
    wait_for(lambda: run.state != "running")
    assert run.state == "lost"
    run.stop()  # the number may belong to another process now
    assert jobs.job(run.number) == run


def test_two_tabs_that_start_one_run_start_it_once(client):
    run = jobs.new_job(Answers(data="transfers.csv", direction="drop", card={"operator": "wait"}))
    form = {"card.operator": "wait", "go": "next"}
    first = client.post(f"/runs/{run.number}/plan", **form)
    assert first.status_code == 303, text_of(first)
    second = client.post(f"/runs/{run.number}/plan", **form)
    assert "its answers stay" in second.text
    page = text_of(client.get(f"/runs/{run.number}/run"))
    assert "running Reading the data. Nothing was spent yet." in page and "Stop" in page
    client.post(f"/runs/{run.number}/stop")
    wait_for(lambda: jobs.job(run.number).state == "stopped")
    again = client.post("/runs", like=str(run.number))
    assert jobs.job(int(again.headers["Location"].split("/")[2])).answers == replace(
        jobs.job(run.number).answers
    )


def test_a_stopped_run_goes_on_from_its_checkpoint(client, folder):
    import lightning_dpg as dpg

    run = started(operator="wait")
    run.stop()
    wait_for(lambda: run.state == "stopped")
    assert "there is no checkpoint" in client.post(f"/runs/{run.number}/resume").text
    dpg.fit("les_miserables", method="erdos_renyi", epsilon=1.0, out=run.out)
    assert "Go on from the last checkpoint" in client.get(f"/runs/{run.number}/run").text
    client.post(f"/runs/{run.number}/resume")
    words = jobs.job(run.number + 1).words
    assert words[:2] == ["fit", f"--config={run.out}/config.yaml"]
    assert words[2].startswith(f"--ckpt_path={run.out}/checkpoints/")
    assert words[3] == f"--out=runs/studio-{run.number + 1}"


def test_a_new_run_takes_no_folder_that_is_there(folder):
    (folder / "runs" / "studio-1").mkdir(parents=True)
    assert jobs.new_job().number == 2
    assert json.loads((folder / ".studio" / "2.json").read_text())["number"] == 2
