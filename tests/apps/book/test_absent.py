"""The package without the folder ``book/``: only the budget book is missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import networkx as nx

from lightning_dpg.budget_book import BOOK_VARIABLE

ROOT = Path(__file__).parents[3]
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
    "fit": [*fit, "runs"],
    "generate": ["generate", "--run", run],
    "verify": ["verify", f"{run}/release"],
    "evaluate": ["evaluate", "edges.txt", f"{run}/release"],
    "--no-book": [*fit, "other", "--no-book"],
    "--privacy.book": [*fit, "refused", "--privacy.book", "sqlite:///book.db"],
    "environment": [*fit, "refused"],
    "budget": ["budget", "show"],
}
for name, args in commands.items():
    said = io.StringIO()
    if name == "environment":
        os.environ["LIGHTNING_DPG_BOOK"] = "sqlite:///book.db"
    with contextlib.redirect_stderr(said):
        code = main(args)
    last = said.getvalue().splitlines()[-1] if code else ""
    print(name, code, last, sep="|", file=sys.stderr)
"""
ABSENT = "error: the budget book (lightning_dpg.apps.book) is not installed:"


def test_without_the_book_all_else_runs(tmp_path):
    shutil.copytree(
        ROOT / "lightning_dpg",
        tmp_path / "lightning_dpg",
        ignore=shutil.ignore_patterns("book", "__pycache__"),
    )
    assert not (tmp_path / "lightning_dpg" / "book").exists()
    nx.write_edgelist(nx.karate_club_graph(), tmp_path / "edges.txt", data=False)
    environment = {name: value for name, value in os.environ.items() if name != BOOK_VARIABLE}
    ran = subprocess.run(
        [sys.executable, "-c", RUNS],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    lines = [line.split("|") for line in ran.stderr.splitlines() if line.count("|") == 2]
    settings = f"{ABSENT} leave out privacy.book, privacy.dataset and {BOOK_VARIABLE}"
    assert {name: (int(code), last) for name, code, last in lines} == {
        "fit": (0, ""),
        "generate": (0, ""),
        "verify": (0, ""),
        "evaluate": (0, ""),
        "--no-book": (0, ""),
        "--privacy.book": (2, settings),
        "environment": (2, settings),
        "budget": (2, f"{ABSENT} the command budget needs it"),
    }
