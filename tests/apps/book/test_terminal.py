"""The tables of a book in a terminal and in a pipe, against numbers added up by hand."""

import pytest

from lightning_dpg.apps.book import terminal
from lightning_dpg.apps.book.report import summary
from tests.apps.book.small_book import EVIL, entry, full_book, new_book, register, run, small_book

HEADER = "run reserved (UTC) state method epsilon delta who folder"


@pytest.fixture
def found(tmp_path):
    return summary(small_book(f"sqlite:///{tmp_path}/book.db"), "crm")


def test_the_totals_the_bar_and_the_runs_in_a_pipe(found, capsys):
    print("\n".join(terminal.lines(found)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "crm: relation edge, record undirected edge",
        "total     epsilon 2, delta 1e-06",
        "spent     epsilon 0.75 (sum of pure epsilons)",
        "reserved  epsilon 1",
        "left      one pure release of epsilon 0.25",
    ]
    # 15 of 40 places are 0.75 of 2, 20 are 1 of 2.
    assert lines[5] == f"[{'#' * 15}{'+' * 20}{'.' * 5}] 38% spent"
    assert lines[6] == "run 3 is open: steps are booked ahead, and spent is an upper bound"
    assert " ".join(lines[7].split()) == HEADER
    cells = [line.split() for line in lines[8:]]
    assert [(row[0], *row[3:7], row[-1]) for row in cells] == [
        ("1", "ended", "BTER", "0.5", "0", "/data/runs/bter/version_0"),
        ("2", "ended", "ChungLu", "0.25", "0", "/data/runs/chung_lu/version_0"),
        ("3", "open", "PrivGraph", "1", "0", "/data/runs/priv_graph/version_0"),
    ]


def test_all_data_sets_in_one_table(tmp_path, capsys):
    book = small_book(f"sqlite:///{tmp_path}/book.db")
    register(book, "web", epsilon=4.0)
    print("\n".join(terminal.all_lines([summary(book, name) for name in ("crm", "web")])))
    _, crm, web, note = capsys.readouterr().out.splitlines()
    assert crm.split()[:7] == ["crm", "edge", "2", "1e-06", "0.75", "1", "0.25"]
    assert web.split()[:7] == ["web", "edge", "4", "1e-06", "0", "0", "4"]
    assert crm.split()[-1] == "3" and web.split()[-1] == "0"
    assert "show NAME" in note


def test_words_of_a_user_are_shown_as_they_are(tmp_path, capsys):
    book = new_book(f"sqlite:///{tmp_path}/book.db", EVIL, words="two\x1b[31m\nlines")
    run(book, entry(0.5), EVIL, folder="/runs/[bold]x\x1b]0;title\x07")
    print("\n".join(terminal.lines(summary(book, EVIL))))
    output = capsys.readouterr().out
    assert EVIL in output
    assert "[bold]x" in output
    assert "\x1b" not in output and "\x07" not in output
    assert "two\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}lines" in output


def test_grants_killed_runs_and_measurements_are_named(tmp_path, capsys):
    book = full_book(f"sqlite:///{tmp_path}/book.db")
    print("\n".join(terminal.lines(found := summary(book, "crm"))))
    lines = capsys.readouterr().out.splitlines()
    assert found["node_text"].startswith(
        "epsilon 2.25, delta 1e-06: all edges of a node, 3 at most"
    )
    assert lines[2:5] == [
        "spent     epsilon 0.75 (sum of pure epsilons)",
        "reserved  epsilon 0.25",
        "left      one pure release of epsilon 1",
    ]
    assert lines[6:11] == [
        "run 3 is open: steps are booked ahead, and spent is an upper bound",
        "run 2 is killed: what may have been released counts as spent",
        # Pure epsilons of a group of 3 edges: 3 times 0.75.
        f"node      {found['node_text']}",
        "measured  once, on no total: budget history crm",
        "grants    needed by all runs, each made by one person and approved by another",
    ]
    assert [line.split() for line in lines[12:15]] == [
        ["1", "eve", "1", "-", "0", "-", "replaced", "ann,", "bob"],
        ["2", "eve", "1.5", "1", "0", "0", "in", "force", "ann,", "bob"],
        ["3", "zoe", "0.2", "0", "0", "0", "waits", "for", "approval", "ann"],
    ]
    assert [line.split()[3] for line in lines[16:]] == ["ended", "killed", "open"]
    assert not [line for line in lines if line != line.rstrip()]
