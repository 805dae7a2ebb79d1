"""Conditional guarantees in a book: marked, and added up without their conditions."""

import json
import math
from dataclasses import replace

import pytest

from lightning_dpg.apps.book import terminal
from lightning_dpg.apps.book.export import csv_text
from lightning_dpg.apps.book.page import page
from lightning_dpg.apps.book.report import summary
from lightning_dpg.apps.book.verification import faults
from lightning_dpg.privacy.events import Relation
from tests.apps.book.small_book import entry, new_book, reserve, run

CHAIN = "the chain is stationary"


def test_a_guard_counts_in_any_case_beside_runs_without_a_condition(url, capsys):
    book = new_book(url, epsilon=4.0)
    run(book, entry(0.5))
    run(book, entry(1.0), method="HRG", condition=CHAIN, unconditional_epsilon=8.0)
    found = summary(book, "crm")
    assert (found["spent"], found["conditional"], found["in_any_case"]) == (1.5, True, 8.5)
    assert [each["condition"] for each in found["releases"]] == [None, CHAIN]
    print("\n".join(terminal.lines(found)))
    lines = capsys.readouterr().out.splitlines()
    assert "BTER" in lines[-3] and "†" not in lines[-3]
    assert "HRG †" in lines[-2]
    assert lines[-1].startswith("† under a condition")
    assert lines[-1].endswith("in any case all releases together are (8.5, 1e-06)-DP")
    print("\n".join(terminal.all_lines([found])))
    assert "1.5 †" in capsys.readouterr().out
    assert f"{CHAIN},8.0" in csv_text(book, ["crm"])
    assert not faults(book.database)
    assert "All of this holds if the conditions of the runs marked † do." in page(book, ["crm"])


def test_without_a_guard_nothing_is_proved_in_any_case(url, capsys):
    book = new_book(url)
    run(book, entry(0.5), method="HRG", condition=CHAIN)
    print("\n".join(terminal.lines(found := summary(book, "crm"))))
    assert found["in_any_case"] is None
    assert "do; in any case nothing is proved" in capsys.readouterr().out


def test_what_is_reserved_only_is_not_released_in_any_case(url):
    book = new_book(url)
    reserve(book, entry(0.5), condition=CHAIN, unconditional_epsilon=8.0)
    found = summary(book, "crm")
    assert (found["conditional"], found["in_any_case"]) == (True, 0)


def test_runs_of_earlier_versions_count_as_unconditional(url, capsys):
    """Their lines have no condition: the log is that of before, line by line."""
    book = new_book(url)
    run(book, entry(0.5))
    bodies = book.database.rows("SELECT body FROM book_log WHERE kind = 'reserve'")
    assert [set(json.loads(body)) & {"condition", "in_any_case"} for (body,) in bodies] == [set()]
    print("\n".join(terminal.lines(found := summary(book, "crm"))))
    assert not found["conditional"] and "†" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("relation", "guard", "expected"),
    [("edge", 2.0, 2.0), ("edge", math.inf, None), ("node", 2.0, None)],
)
def test_labels_of_a_chain_that_earlier_versions_booked_without_a_condition_have_one(
    url, relation, guard, expected
):
    """Their lines say nothing of a condition, and their entries name the chain and the guard."""
    public = {"sweeps of the chain": 1500}
    if guard < math.inf:
        public["epsilon without the chain, by the guard"] = guard
    labels = replace(entry(0.5, relation=Relation(relation)), public=public)
    book = new_book(url, relation=Relation(relation))
    run(book, labels, method="HRG")
    run(book, entry(0.25, relation=Relation(relation)))
    found = summary(book, "crm")
    words = "the Markov chain over labels is stationary after its 1500 sweeps"
    assert [each["condition"] for each in found["releases"]] == [words, None]
    assert found["spent"] == 0.75
    assert found["in_any_case"] == (None if expected is None else expected + 0.25)
