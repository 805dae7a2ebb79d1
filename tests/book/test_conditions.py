"""Conditional guarantees in a book: marked, and added up without their conditions."""

import json
import math
from dataclasses import replace

import pytest

from lightning_dpg.book import terminal
from lightning_dpg.book.export import csv_text
from lightning_dpg.book.filter import Spending, passes, together
from lightning_dpg.book.page import page
from lightning_dpg.book.report import summary
from lightning_dpg.book.verification import faults
from lightning_dpg.methods import HRG, BlockSampler
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.label_sampling import chain_facts
from tests.book.small_book import entry, new_book, reserve, run

CHAIN = "the chain is stationary"


def test_a_guard_counts_in_any_case_beside_runs_without_a_condition(url, capsys):
    book = new_book(url, epsilon=4.0)
    run(book, entry(0.5))
    run(book, entry(1.0), method="BlockSampler", condition=CHAIN, unconditional_epsilon=8.0)
    found = summary(book, "crm")
    assert (found["spent"], found["conditional"], found["in_any_case"]) == (1.5, True, 8.5)
    assert [each["condition"] for each in found["releases"]] == [None, CHAIN]
    print("\n".join(terminal.lines(found)))
    lines = capsys.readouterr().out.splitlines()
    assert "BTER" in lines[-3] and "†" not in lines[-3]
    assert "BlockSampler †" in lines[-2]
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
    labels = replace(entry(0.5, relation=Relation(relation)), public=chain_facts(1500, guard))
    book = new_book(url, relation=Relation(relation))
    run(book, labels, method="BlockSampler")
    run(book, entry(0.25, relation=Relation(relation)))
    found = summary(book, "crm")
    words = "the Markov chain over labels is stationary after its 1500 sweeps"
    assert [each["condition"] for each in found["releases"]] == [words, None]
    assert found["spent"] == 0.75
    assert found["in_any_case"] == (None if expected is None else expected + 0.25)


def test_a_book_adds_up_what_a_guard_proves(url):
    """Renyi curves of the parts of such runs would let in twice as many."""
    epsilon, total = 0.1, Budget(3.0, 1e-6)
    method = BlockSampler(60, guard_epsilon=epsilon, sweeps=1)
    method.ledger.budget = Budget(epsilon, 0.0)
    known = together([Spending(Budget(epsilon, 0.0), method.plan(Budget(epsilon, 0.0), 1))])
    let_in = [
        sum(passes(total, "split", known.plus(one, times)) for times in range(1, 120))
        for one in (
            Spending(Budget(epsilon, 0.0), plan)
            for plan in (method.plan(Budget(epsilon, 0.0), 1), [entry(epsilon)])
        )
    ]
    assert method.condition() is None
    assert let_in == [38, 38]


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
