"""Commands of other packages are found by the entry points of their metadata."""

import json

import pytest

from lightning_dpg.main import main

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
COMMANDS = """\
[lightning_dpg.commands]
greet = greetings:greet
gone = lost_module:gone
verify = greetings:verify
audit = greetings:verify
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "greetings.py").write_text(MODULE)
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
