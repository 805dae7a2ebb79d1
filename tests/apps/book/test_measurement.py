"""Measurements of registered data warn, are logged in the book, and are counted on no total."""

import json

import networkx as nx
import pytest

import lightning_dpg as dpg
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.log import lines
from lightning_dpg.apps.book.store import append, faults
from lightning_dpg.main import main

GRAPH = nx.karate_club_graph()
WARNING = "its numbers are not private"


@pytest.fixture
def place(here, monkeypatch):
    """A folder with a graph, and the book of the environment, in which it is registered."""
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", "sqlite:///book.db")
    nx.write_edgelist(GRAPH, "graph.txt", data=False)
    total = ["--relation", "edge", "--epsilon", "2", "--delta", "1e-6"]
    assert main(["budget", "init"]) == 0
    assert main(["budget", "register", "people", "graph.txt", *total]) == 0
    return here


def measured():
    """Facts of all measurements in a book that has no fault and no run."""
    book = Book("sqlite:///book.db")
    try:
        assert not faults(book.database)
        assert not book.runs()
        return [line.facts for line in lines(book.database) if line.kind == "measure"]
    finally:
        book.close()


COMPARE = ["compare", "--methods", "chung_lu", "--epsilons", "1", "--runs", "1", "--jobs", "1"]
AUDIT = ["audit", "--config", "chung_lu.yaml", "--data.init_args.name", "graph.txt"]


def test_commands_are_logged_once_and_spend_nothing(place, capsys, printed):
    with pytest.warns(UserWarning, match=WARNING):
        assert main([*COMPARE, "--graphs", "graph.txt", "karate", "--out", "out"]) == 0
    with pytest.warns(UserWarning, match=WARNING):
        assert main([*AUDIT, "--privacy.epsilon", "1"]) == 0
    found = measured()
    said = [(each["command"], each["methods"], each["epsilons"]) for each in found]
    compared = ("compare", ["chung_lu"], [1.0])
    assert said == [compared, ("audit", ["ChungLu"], [1.0])]
    assert {each["dataset"] for each in found} == {"people"}
    capsys.readouterr()
    assert json.loads(printed(main(["budget", "show", "people", "--json"])))["left"] == 2
    assert main(["budget", "history", "people"]) == 0
    assert "compare of chung_lu read people, not private and on no total, by " in (
        capsys.readouterr().out
    )


def test_audits_in_python_are_logged_and_evaluations_and_attacks_are_not(place):
    release = dpg.fit("graph.txt", "chung_lu", epsilon=1.0, book="none", progress=False)
    dpg.evaluate("graph.txt", release, baselines=False)
    dpg.attack("graph.txt", release)
    assert measured() == []
    with pytest.warns(UserWarning, match=WARNING):
        dpg.audit(nx.relabel_nodes(GRAPH, str), "chung_lu", epsilon=0.5)
    (audited,) = measured()
    assert (audited["command"], audited["epsilons"]) == ("audit", [0.5])


def test_a_book_with_lines_of_evaluations_and_attacks_opens_and_verifies(place, capsys, printed):
    book = Book("sqlite:///book.db")
    with book.database.write():
        for command in ("evaluate", "attack"):
            facts = {"methods": [], "epsilons": [], "who": "ann", "user": "ann"}
            append(book.database, "measure", dataset="people", command=command, **facts)
    book.close()
    assert [each["command"] for each in measured()] == ["evaluate", "attack"]
    assert main(["budget", "verify"]) == 0
    capsys.readouterr()
    assert "attack" in printed(main(["budget", "history", "people"]))


def test_a_missing_book_ends_a_measurement(place):
    with pytest.raises(dpg.CommandError, match="no such book"):
        dpg.audit("graph.txt", "chung_lu", epsilon=1.0, book="sqlite:///none.db")


@pytest.mark.parametrize("args", [[*COMPARE, "--graphs", "graph.txt", "--out", "out"], AUDIT])
def test_a_book_that_was_changed_ends_a_measurement_before_its_work(place, args, capsys, refusal):
    Book("sqlite:///book.db").database.rows(
        "UPDATE book_log SET body = REPLACE(body, '2.0', '9.0') WHERE line = 1"
    )
    capsys.readouterr()
    error = refusal(main(args))
    assert "the book was changed, and nothing is spent on it: line 1" in error
    assert "--no-book" in error
    assert not (place / "out").exists()
