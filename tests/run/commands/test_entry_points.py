"""Commands and methods of other packages are found by the entry points of their metadata."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import lightning_dpg as dpg
from lightning_dpg.main import main
from tests.test_readme import ROOT, TEXTS

MODULE = '''\
from lightning_dpg.outcome import Outcome


def greet(name: str, *, loud: bool = False) -> Outcome:
    """Greet somebody.

    Args:
        name: Whom to greet.
        loud: Say it louder.

    Example:
        python -m lightning_dpg greet Ada
    """
    text = f"Hello {name}" + "!" * loud
    return Outcome([text], {"text": text})


def verify() -> Outcome:
    """Say that all is well."""
    return Outcome(["all is well"])
'''
# The method of CONTRIBUTING, and one with an error in its sensitivity.
METHOD = re.search(r"```python\n(.*?)\n\n\nprint", TEXTS["CONTRIBUTING"], re.DOTALL)[1]
WRONG = """

class Wrong(NoisyDegrees):
    \"\"\"Degrees are read as if one edge changed one of them.\"\"\"

    def plan(self, budget, steps):
        count, degrees = super().plan(budget, steps)
        return [count, self.read("degrees", "degrees", budget.split(count=0.1, degrees=0.9)["degrees"], edge_count_sensitivity)]


class Leaky(NoisyDegrees):
    \"\"\"The number of edges is released as it is.\"\"\"

    def release(self, source, reads):
        super().release(source, reads)
        self.num_edges = torch.tensor(source.num_edges())
"""
COMMANDS = """\
[lightning_dpg.methods]
noisy_degrees = greetings_methods:NoisyDegrees
wrong = greetings_methods:Wrong
leaky = greetings_methods:Leaky
bter = greetings_methods:Wrong
[lightning_dpg.commands]
greet = greetings:greet
gone = lost_module:gone
verify = greetings:verify
audit = greetings:verify
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "greetings.py").write_text(MODULE)
    (tmp_path / "greetings_methods.py").write_text(METHOD + WRONG)
    metadata = tmp_path / "greetings-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greetings\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(COMMANDS)
    monkeypatch.syspath_prepend(tmp_path)


def test_a_command_of_another_package_runs_as_one_of_ours(package, capsys):
    assert main(["greet", "Ada", "--loud"]) == 0
    assert capsys.readouterr().out == "Hello Ada!\n"
    assert main(["greet", "Ada", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"command": "greet", "text": "Hello Ada"}
    assert main(["greet", "--help"]) == 0
    assert "usage: lightning_dpg greet NAME [options]" in capsys.readouterr().out
    assert main(["greet", "Ada", "--lod"]) == 2
    assert "unknown option --lod, did you mean --loud?" in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.endswith("of other packages: gone, greet\n")
    assert main(["gret"]) == 2
    assert "unknown command 'gret', did you mean greet?" in capsys.readouterr().err


def test_a_command_without_its_module_is_refused(package, capsys):
    assert main(["gone"]) == 2
    assert "error: the command gone is not installed" in capsys.readouterr().err


def test_another_package_replaces_no_command_of_ours(package, capsys):
    assert main(["verify"]) == 2
    assert main(["audit", "--help"]) == 0
    said = capsys.readouterr()
    assert "all is well" not in said.out and "usage: lightning_dpg audit" in said.out


def test_a_method_of_another_package_has_a_short_name(package, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["list"]) == 0
    assert re.search(r"  noisy_degrees +greetings_methods.NoisyDegrees\n", capsys.readouterr().out)
    assert "greetings_methods" not in sys.modules  # nothing of it is run for a list
    fit = "fit karate --epsilon 2 --delta 0 --method noisy_degrees --out run"
    assert main(fit.split()) == 0
    assert "guarantee: edge-level (2, 0)-DP" in capsys.readouterr().out
    release = dpg.fit("karate", "noisy_degrees", epsilon=2.0)
    assert type(release.method).__module__ == "greetings_methods"
    assert type(dpg.fit("karate", "bter", epsilon=2.0).method) is dpg.methods.BTER


def test_the_contracts_pass_an_honest_method_and_find_what_others_do(package, tmp_path):
    plugin = ["-q", "-p", "no:cacheprovider"]
    if not entry_points(group="pytest11", name="lightning_dpg"):  # of an older installation
        plugin += ["-p", "lightning_dpg.contracts.plugin"]
    names = ("noisy_degrees", "wrong", "leaky")
    methods = [word for name in names for word in ("--dpg-method", name)]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, *methods],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', ROOT)}"},
    )
    failed = re.findall(r"FAILED .*::test_(\w+)\[(\w+)-", run.stdout)
    assert {name for _, name in failed} == {"wrong", "leaky"}, run.stdout
    assert {test[:8] for test, _ in failed} == {"one_edge"}
    assert "degrees moves by 2" in run.stdout and "num_edges depends on" in run.stdout
