"""Warnings of the command line, and messages."""

import logging
import subprocess
import sys
import warnings

import pytest

from lightning_dpg.outcome import note
from lightning_dpg.run import quiet


def test_a_warning_of_this_program_is_a_line_and_others_keep_their_place(monkeypatch, capsys):
    others = []
    monkeypatch.setattr(warnings, "showwarning", lambda *args: others.append(args))
    quiet.plain_warnings()
    for file in (quiet.__file__, __file__):
        warnings.showwarning(UserWarning("take less"), UserWarning, file, 7)
    assert capsys.readouterr().err == "warning: take less\n"
    assert [args[2] for args in others] == [__file__]


def test_messages_go_to_a_logger_which_writes_to_stderr(capsys):
    note("how far it is")
    with quiet.without_messages():
        note("what nobody asked for")
    assert capsys.readouterr() == ("", "how far it is\n")


@pytest.mark.parametrize(
    "set_up", ["", "logging.basicConfig(level='INFO', format='mine: %(message)s'); "]
)
def test_a_program_that_has_set_up_logging_gets_the_messages(set_up):
    code = f"import logging; {set_up}from lightning_dpg.outcome import note; note('a line')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr == ("mine: a line\n" if set_up else "a line\n")
    assert logging.getLogger("lightning_dpg").level == logging.INFO
