"""A browser for the reports, and jobs without processes."""

import csv
import html
import json
import re
import shutil
import subprocess

import pytest

from lightning_dpg.apps.bench import engine
from lightning_dpg.apps.bench.jobs import fit_and_evaluate

NARROW = """<!doctype html><body><script>
addEventListener("message", (event) => { document.body.dataset.seen = event.data; });
</script><iframe src="probe.html" style="border: 0; width: 360px; height: 800px"></iframe>
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A function from a page to its DOM after its scripts have run, and to what it complained."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip(f"no browser on PATH, looked for {', '.join(names)}")
    profile = tmp_path_factory.mktemp("browser")

    def load(url):
        options = [
            *("--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *("--enable-logging=stderr", "--virtual-time-budget=3000", "--window-size=1280,900"),
            f"--user-data-dir={profile}",
        ]
        done = subprocess.run(
            [program, *options, url], capture_output=True, text=True, timeout=60, check=True
        )
        said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
        return done.stdout, said

    return load


@pytest.fixture(scope="module")
def probed(browser):
    """A function from a page and a script to what the script has seen, alone or in 360 pixels."""

    def look(folder, content, script, name, fragment=""):
        (folder / "probe.html").write_text(content.replace("</body>", f"{script}</body>"))
        (folder / "narrow.html").write_text(NARROW)
        dom, said = browser(f"{(folder / name).as_uri()}{fragment}")
        assert not said
        return json.loads(html.unescape(re.search(r'data-seen="([^"]*)"', dom)[1]))

    return look


def without_processes(patch):
    """Names of the jobs that are run, without processes of their own."""
    names = []

    def run(jobs, processes, folder):
        for job in jobs:
            names.append(job.name)
            yield job, fit_and_evaluate(job, folder)

    patch.setattr(engine, "run_jobs", run)
    return names


@pytest.fixture
def in_this_process(monkeypatch):
    return without_processes(monkeypatch)


def read_csv(folder):
    """Rows of the results in the folder ``out``."""
    with (folder / "out" / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))
