"""A browser for the reports."""

import shutil
import subprocess

import pytest


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
