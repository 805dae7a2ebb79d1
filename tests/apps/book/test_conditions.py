"""Conditional guarantees in a book: marked, and added up without their conditions."""

import json
from dataclasses import replace

import pytest

from lightning_dpg.apps.book import terminal
from lightning_dpg.apps.book.export import csv_text
from lightning_dpg.apps.book.page import page
from lightning_dpg.apps.book.report import summary
from lightning_dpg.apps.book.store import faults
from lightning_dpg.privacy.events import Relation
from tests.apps.book.small_book import entry, new_book, run

CHAIN = "the chain is stationary"


def test_runs_with_a_condition_are_marked(url, capsys):
    book = new_book(url, epsilon=4.0)
    run(book, entry(0.5))
    run(book, entry(1.0), method="HRG", condition=CHAIN)
    found = summary(book, "crm")
    assert (found["spent"], found["conditional"]) == (1.5, True)
    assert [each["condition"] for each in found["releases"]] == [None, CHAIN]
    print("\n".join(terminal.lines(found)))
    lines = capsys.readouterr().out.splitlines()
    assert "BTER" in lines[-3] and "†" not in lines[-3]
    assert "HRG †" in lines[-2]
    assert lines[-1].startswith("† under a condition")
    assert lines[-1].endswith("if the conditions do; without them nothing is proved")
    print("\n".join(terminal.all_lines([found])))
    assert "1.5 †" in capsys.readouterr().out
    assert CHAIN in csv_text(book, ["crm"])
    assert not faults(book.database)
    assert "All of this holds if the conditions of the runs marked † do." in page(book, ["crm"])


def test_runs_of_earlier_versions_count_as_unconditional(url, capsys):
    """Their lines have no condition: the log is that of before, line by line."""
    book = new_book(url)
    run(book, entry(0.5))
    bodies = book.database.rows("SELECT body FROM book_log WHERE kind = 'reserve'")
    assert ["condition" in json.loads(body) for (body,) in bodies] == [False]
    print("\n".join(terminal.lines(found := summary(book, "crm"))))
    assert not found["conditional"] and "†" not in capsys.readouterr().out


@pytest.mark.parametrize("relation", ["edge", "node"])
def test_labels_of_a_chain_that_earlier_versions_booked_without_a_condition_have_one(url, relation):
    """Their lines say nothing of a condition, and their entries name the chain."""
    labels = replace(entry(0.5, relation=Relation(relation)), public={"sweeps of the chain": 1500})
    book = new_book(url, relation=Relation(relation))
    run(book, labels, method="HRG")
    run(book, entry(0.25, relation=Relation(relation)))
    found = summary(book, "crm")
    words = "the Markov chain over labels is stationary after its 1500 sweeps"
    assert [each["condition"] for each in found["releases"]] == [words, None]
    assert (found["spent"], found["conditional"]) == (0.75, True)
