"""A group of parts that the owner declares disjoint: the largest for a record, the sum for a node."""

import json

import networkx as nx
import pytest

from lightning_dpg.apps.book import owner
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.identity import Fingerprint
from lightning_dpg.apps.book.partition import group_facts, group_summary
from lightning_dpg.errors import BookError
from lightning_dpg.main import main
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from tests.apps.book.test_book import asked, pure


def add(book, name, edges, epsilon=1.0, **changes):
    values = {"relation": Relation.EDGE, "part_of": "months"}
    total = Budget(epsilon, 0.0)
    owner.register(book, name, Fingerprint(edges, "n"), total=total, **(values | changes))


@pytest.fixture
def book(tmp_path):
    book = Book(f"sqlite:///{tmp_path}/book.db", is_new=True)
    for number, name in enumerate(("january", "february", "march")):
        add(book, name, name, epsilon=1.0 + number, max_degree=4)
    return book


def test_a_group_proves_the_largest_part_for_a_record_and_the_sum_for_a_node(book):
    for name, epsilons in {"january": [0.5, 0.25], "february": [1.5]}.items():
        for epsilon in epsilons:
            run = book.reserve(name, asked(pure(epsilon)))
            run.book(pure(epsilon))
            run.close("ended")
    found = group_summary(book, "months")
    assert (found["total"], found["spent"]) == (3.0, 1.5)
    assert found["node"] == 4 * (0.75 + 1.5)  # four edges in each month
    assert [part["left"] for part in found["parts"]] == [0.25, 0.5, 3.0]  # filters of their own
    declared = dict(group_facts(found))["disjoint"]
    assert "each undirected edge lies in one part only" in declared
    assert "declared by the owner, and not checked" in declared
    add(book, "april", "april")  # without a bound on degrees
    facts = dict(group_facts(group_summary(book, "months")))
    assert facts["node"].startswith("no statement: edges of a node lie in many parts")


def test_what_is_no_partition_is_refused(book):
    with pytest.raises(BookError, match="registered as 'march' already"):
        add(book, "april", "march")
    book.reserve("march", asked(pure(0.5))._replace(edges="corrected"))
    with pytest.raises(BookError, match="registered as 'march' already"):
        add(book, "april", "corrected")  # a version of march
    with pytest.raises(BookError, match=r"parts of 'months' protect one undirected edge"):
        add(book, "april", "april", relation=Relation.NODE)
    for name, group in [("months", ""), ("april", "march"), ("april", "april")]:
        with pytest.raises(BookError, match="cannot be the name of a group"):
            add(book, name, "april", part_of=group)
    with pytest.raises(BookError, match="no data set is a part of 'years'"):
        group_summary(book, "years")


def test_the_command_line_declares_and_shows_a_group(here, monkeypatch, capsys, printed):
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", "sqlite:///book.db")
    assert main(["budget", "init"]) == 0
    for name, graph in {"north": nx.path_graph(5), "south": nx.cycle_graph(5)}.items():
        (here / f"{name}.txt").write_text("".join(f"{a} {b}\n" for a, b in graph.edges))
        what = [f"{name}.txt", "--relation", "edge", "--epsilon", "1", "--delta", "1e-6"]
        words = ["--words", f"tenant {name}", "--part-of", "tenants"]
        assert main(["budget", "register", name, *what, *words]) == 0
    capsys.readouterr()
    found = json.loads(printed(main(["budget", "show", "tenants", "--json"])))
    assert (found["total"], [part["dataset"] for part in found["parts"]]) == (1, ["north", "south"])
    assert "tenant north" in printed(main(["budget", "show", "tenants"]))
    assert main(["budget", "show", "north"]) == 0
    assert "part of   tenants, whose parts the owner declares" in capsys.readouterr().out
    assert main(["budget", "verify"]) == 0
