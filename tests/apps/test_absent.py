"""The package without the folder of an application: only its commands are missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

from lightning_dpg.budget_book import BOOK_VARIABLE

ROOT = Path(__file__).parents[2]
RUNS = """\
import contextlib, io, os, sys
# An editable installation would find the missing folder in the clone.
sys.meta_path[:] = [each for each in sys.meta_path if "__editable__" not in getattr(each, "__module__", "")]
import lightning_dpg
from lightning_dpg.main import main

assert lightning_dpg.__file__.startswith(os.getcwd()), lightning_dpg.__file__
fit = ["fit", "--config", "erdos_renyi", "--data.name", "edges.txt", "--trainer.default_root_dir"]
run = "runs/erdos_renyi/version_0"
commands = {
    "list": ["list"],
    "fit": [*fit, "runs"],
    "generate": ["generate", run],
    "verify": ["verify", f"{run}/release"],
    "evaluate": ["evaluate", "edges.txt", f"{run}/release"],
    **{name: [name, "--help"] for name in ("attack", "audit", "budget", "compare", "studio")},
    "--no-book": [*fit, "other", "--no-book"],
    "--privacy.book": [*fit, "refused", "--privacy.book", "sqlite:///book.db"],
    "environment": [*fit, "refused"],
}
for name, args in commands.items():
    if name in sys.argv[1:]:
        continue
    said = io.StringIO()
    if name == "environment":
        os.environ["LIGHTNING_DPG_BOOK"] = "sqlite:///book.db"
    with contextlib.redirect_stderr(said):
        code = main(args)
    last = said.getvalue().splitlines()[-1] if code else ""
    print(name, code, last, sep="|", file=sys.stderr)
"""
WITHOUT_BOOK = (
    "error: the budget book is not installed: leave out privacy.book, privacy.dataset and "
    f"{BOOK_VARIABLE}, or install lightning_dpg anew"
)
COMMANDS = {
    "audit": ("attack", "audit"),
    "bench": ("compare",),
    "book": ("budget",),
    "studio": ("studio",),
}
"""Commands of each application."""


@pytest.mark.parametrize("app", COMMANDS)
def test_without_an_application_all_else_runs(tmp_path, app):
    package = tmp_path / "lightning_dpg"
    shutil.copytree(ROOT / "lightning_dpg", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(package / "apps" / app)
    nx.write_edgelist(nx.karate_club_graph(), tmp_path / "edges.txt", data=False)
    environment = {name: value for name, value in os.environ.items() if name != BOOK_VARIABLE}
    with_a_book = ("--privacy.book", "environment")
    ran = subprocess.run(
        [sys.executable, "-c", RUNS, *(() if app == "book" else with_a_book)],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    lines = [line.split("|") for line in ran.stderr.splitlines() if line.count("|") == 2]
    answers = {name: (int(code), last) for name, code, last in lines}
    assert {"list", "fit", "generate", "verify", "evaluate", "--no-book"} < set(answers)
    refused = {
        name: (2, f"error: the command {name} is not installed: install lightning_dpg anew")
        for name in COMMANDS[app]
    }
    if app == "book":
        refused |= dict.fromkeys(with_a_book, (2, WITHOUT_BOOK))
    assert answers == dict.fromkeys(answers, (0, "")) | refused
