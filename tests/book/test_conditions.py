"""Conditional guarantees in a book: marked, and added up without their conditions."""

import json

import pytest

from lightning_dpg.benchmark.budget_page import page
from lightning_dpg.book import terminal
from lightning_dpg.book.export import csv_text
from lightning_dpg.book.report import summary
from lightning_dpg.book.verification import faults
from lightning_dpg.methods import HRG, BlockSampler
from lightning_dpg.privacy.budget import Budget
from tests.small_book import entry, new_book, reserve, run

CHAIN = "the chain is stationary"


def test_a_guard_counts_in_any_case_beside_runs_without_a_condition(url, capsys):
    book = new_book(url, epsilon=4.0)
    run(book, entry(0.5))
    run(book, entry(1.0), method="BlockSampler", condition=CHAIN, in_any_case=8.0)
    found = summary(book, "crm")
    assert (found["spent"], found["conditional"], found["in_any_case"]) == (1.5, True, 8.5)
    assert [each["condition"] for each in found["releases"]] == [None, CHAIN]
    terminal.show(found)
    lines = capsys.readouterr().out.splitlines()
    assert "BTER" in lines[-3] and "†" not in lines[-3]
    assert "BlockSampler †" in lines[-2]
    assert lines[-1].startswith("† under a condition")
    assert lines[-1].endswith("in any case all releases together are (8.5, 1e-06)-DP")
    terminal.show_all([found])
    assert "1.5 †" in capsys.readouterr().out
    assert f"{CHAIN},8.0" in csv_text(book, ["crm"])
    assert not faults(book.database)
    assert "All of this holds if the conditions of the runs marked † do." in page(book, ["crm"])


def test_without_a_guard_nothing_is_proved_in_any_case(url, capsys):
    book = new_book(url)
    run(book, entry(0.5), method="HRG", condition=CHAIN)
    terminal.show(found := summary(book, "crm"))
    assert found["in_any_case"] is None
    assert "do; in any case nothing is proved" in capsys.readouterr().out


def test_what_is_reserved_only_is_not_released_in_any_case(url):
    book = new_book(url)
    reserve(book, entry(0.5), condition=CHAIN, in_any_case=8.0)
    found = summary(book, "crm")
    assert (found["conditional"], found["in_any_case"]) == (True, 0)


def test_runs_of_earlier_versions_count_as_unconditional(url, capsys):
    """Their lines have no condition: the log is that of before, line by line."""
    book = new_book(url)
    run(book, entry(0.5))
    bodies = book.database.rows("SELECT body FROM book_log WHERE kind = 'reserve'")
    assert [set(json.loads(body)) & {"condition", "in_any_case"} for (body,) in bodies] == [set()]
    terminal.show(found := summary(book, "crm"))
    assert not found["conditional"] and "†" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "epsilon", "expected"),
    [
        (BlockSampler(30), 2.0, 8.0),
        (BlockSampler(30, guard_epsilon=float("inf")), 2.0, None),
        (HRG(30), 2.0, None),
    ],
)
def test_methods_say_what_holds_in_any_case(method, epsilon, expected):
    method.ledger.budget = Budget(epsilon, 0.0)
    assert method.condition() is not None
    assert method.epsilon_in_any_case() == expected
