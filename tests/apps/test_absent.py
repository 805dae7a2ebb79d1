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
import pytorch_lightning, torch_geometric  # once for all: most of the time of a command
# An editable installation would find the missing folder in the clone.
sys.meta_path[:] = [each for each in sys.meta_path if "__editable__" not in getattr(each, "__module__", "")]
fit = ["fit", "--config", "erdos_renyi", "--data.name", "../edges.txt", "--trainer.default_root_dir"]
run = "runs/erdos_renyi/version_0"
commands = {
    "list": ["list"],
    "fit": [*fit, "runs"],
    "generate": ["generate", run],
    "verify": ["verify", f"{run}/release"],
    "evaluate": ["evaluate", "../edges.txt", f"{run}/release", "--no-baselines"],
    **{name: [name, "--help"] for name in ("attack", "audit", "budget", "compare", "studio")},
    "--no-book": [*fit, "other", "--no-book"],
    "--privacy.book": [*fit, "refused", "--privacy.book", "sqlite:///book.db"],
    "environment": [*fit, "refused"],
}

def answer(app):
    sys.path.insert(0, os.getcwd())
    import lightning_dpg
    from lightning_dpg.main import main

    assert lightning_dpg.__file__.startswith(os.getcwd()), lightning_dpg.__file__
    os.mkdir(app)
    os.chdir(app)
    for name, args in commands.items():
        if app != "book" and name in ("--privacy.book", "environment"):
            continue
        said = io.StringIO()
        if name == "environment":
            os.environ["LIGHTNING_DPG_BOOK"] = "sqlite:///book.db"
        with contextlib.redirect_stderr(said):
            code = main(args)
        last = said.getvalue().splitlines()[-1] if code else ""
        print(app, name, code, last, sep="|", file=sys.stderr, flush=True)

assert "lightning_dpg" not in sys.modules
for app in sys.argv[1:]:
    os.rename(f"lightning_dpg/apps/{app}", "away")  # the others are compiled once
    child = os.fork()
    if not child:
        answer(app)
        sys.exit()
    os.waitpid(child, 0)
    os.rename("away", f"lightning_dpg/apps/{app}")
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


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Exit code and last line of each command, for each application that is missing."""
    folder = tmp_path_factory.mktemp("absent")
    shutil.copytree(ROOT / "lightning_dpg", folder / "lightning_dpg")
    nx.write_edgelist(nx.karate_club_graph(), folder / "edges.txt", data=False)
    ran = subprocess.run(
        [sys.executable, "-c", RUNS, *COMMANDS],
        cwd=folder,
        env={
            name: value
            for name, value in os.environ.items()
            if name not in (BOOK_VARIABLE, "PYTHONPATH")
        },
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.split("|") for line in ran.stderr.splitlines() if line.count("|") == 3]
    return {
        app: {name: (int(code), last) for of, name, code, last in lines if of == app}
        for app in COMMANDS
    }, ran.stderr


@pytest.mark.parametrize("app", COMMANDS)
def test_without_an_application_all_else_runs(answers, app):
    found, said = answers[0][app], answers[1]
    assert {"list", "fit", "generate", "verify", "evaluate", "--no-book"} < set(found), said
    refused = {
        name: (2, f"error: the command {name} is not installed: install lightning_dpg anew")
        for name in COMMANDS[app]
    }
    if app == "book":
        refused |= dict.fromkeys(("--privacy.book", "environment"), (2, WITHOUT_BOOK))
    assert found == dict.fromkeys(found, (0, "")) | refused
