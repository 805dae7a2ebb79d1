"""Warnings of the command line."""

import warnings

from lightning_dpg.run import quiet


def test_a_warning_of_this_program_is_a_line_and_others_keep_their_place(monkeypatch, capsys):
    others = []
    monkeypatch.setattr(warnings, "showwarning", lambda *args: others.append(args))
    quiet.plain_warnings()
    for file in (quiet.__file__, __file__):
        warnings.showwarning(UserWarning("take less"), UserWarning, file, 7)
    assert capsys.readouterr().err == "warning: take less\n"
    assert [args[2] for args in others] == [__file__]
