"""A data set with a total for its edges and one for the private columns of its nodes."""

import csv
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import networkx as nx
import pytest

from lightning_dpg.apps.book import owner, terminal
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.export import csv_text, whole
from lightning_dpg.apps.book.further_releases import budget_plan
from lightning_dpg.apps.book.identity import Fingerprint
from lightning_dpg.apps.book.page import page
from lightning_dpg.apps.book.partition import group_summary
from lightning_dpg.apps.book.report import summary
from lightning_dpg.apps.book.request import Request
from lightning_dpg.apps.book.sketch import same_people_as
from lightning_dpg.apps.book.store import faults
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.identity import rows_of
from lightning_dpg.errors import BookError
from lightning_dpg.graph.attributes import AttributeTable
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import JOURNAL, PrivacyLedger
from tests.apps.book.small_book import act_as, entry, new_book, register
from tests.training import quiet_trainer
from tests.two_relations import EdgesAndRows

ROWS = Relation.ATTRIBUTES
KARATE = nx.karate_club_graph()


def row(epsilon=None, **changes):
    return entry(epsilon, relation=ROWS, **changes)


def asked(*plan, name="crm", **changes):
    """A run that asks for what its plan costs."""
    edges = sum(each.pure_epsilon for each in plan if each.relation is Relation.EDGE) or 0.1
    rows = sum(each.pure_epsilon for each in plan if each.relation is ROWS)
    values = {"edges": f"edges of {name}", "other_budgets": {ROWS: Budget(rows, 0.0)}} | changes
    return Request("BTER", "s", Budget(edges, 0.0), lambda budget: plan, **values)


def with_rows(url, rows=1.0, **changes):
    return new_book(url, row_total=Budget(rows, 0.0), **changes)


def left(book):
    return book.left("crm"), book.left("crm", ROWS)


def steps_of(book):
    """Booked steps of each planned release of the last run."""
    return [each.booked for each in book.runs("crm")[-1].planned]


def test_each_relation_has_a_total_and_a_rest_of_its_own(url):
    book = with_rows(url)
    first = book.reserve("crm", asked(entry(0.5), entry(0.25), row(0.25, steps=2)))
    assert left(book) == (1.25, 0.5)
    first.book(entry(0.5))
    first.book(entry(0.25), row(0.25))  # a read of both
    first.close("stopped")
    assert left(book) == (1.25, 0.75)  # one read of rows was not made
    only_edges = asked(entry(0.5), other_budgets={})
    book.reserve("crm", only_edges).book(entry(0.5))
    assert left(book) == (0.75, 0.75)
    found = summary(book, "crm")
    (rows,) = found["beside"]
    assert [each["spent"] for each in (found, rows)] == [1.25, 0.25]
    assert [each["total"] for each in (found, rows)] == [2.0, 1.0]
    assert (rows["relation"], rows["record"]) == ("attributes", "private columns of one node")
    assert [len(each["releases"]) for each in (found, rows)] == [2, 1]
    assert faults(book.database) == []


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            [entry(0.5), row(1.25)],
            r"private columns of nodes does not pay.*\n.*1\nset privacy.row_ep",
        ),
        (
            [entry(2.5), row(0.5)],
            r"of its total does not pay for BTER at epsilon 2\.5, delta 0\n",
        ),
    ],
)
def test_a_run_is_let_in_by_both_totals_or_by_none(tmp_path, plan, message):
    book = with_rows(f"sqlite:///{tmp_path}/book.db")
    with pytest.raises(BookError, match=message):
        book.reserve("crm", asked(*plan))
    assert book.runs() == []
    assert left(book) == (2.0, 1.0)
    book.reserve("crm", asked(entry(2.0), row(1.0)))
    assert left(book) == (0.0, 0.0)


def test_equal_costs_of_two_relations_are_not_one_release(tmp_path):
    """Pure reads of one epsilon are equal events, which only the relation tells apart."""
    book = with_rows(f"sqlite:///{tmp_path}/book.db")
    run = book.reserve("crm", asked(entry(0.25), row(0.25)))
    run.book(row(0.25))
    assert steps_of(book) == [0, 1]
    assert not run.affords([row(0.25)]) and run.affords([entry(0.25)])
    with pytest.raises(BookError, match="more than the run has reserved"):
        run.book(entry(0.25), row(0.25))  # of both, or of none
    assert steps_of(book) == [0, 1]
    run.close("stopped")
    assert left(book) == (2.0, 0.75)


def test_a_run_on_private_columns_without_a_total_is_refused_until_an_owner_sets_it(url):
    book = new_book(url)
    with pytest.raises(BookError, match=r"no total for private columns.*\n.*budget rows crm --eps"):
        book.reserve("crm", asked(entry(0.5), row(0.5)))
    assert book.runs() == []
    owner.add_row_total(book, "crm", Budget(0.5, 0.0))
    book.reserve("crm", asked(entry(0.5), row(0.5)))
    assert left(book) == (1.5, 0.0)
    with pytest.raises(BookError, match=r"have a total of epsilon 0\.5, delta 0, and no total"):
        owner.add_row_total(book, "crm", Budget(3.0, 0.0))
    assert faults(book.database) == []


def test_of_two_runs_at_once_one_gets_the_last_row_budget(url):
    with_rows(url).close()
    start, books = Barrier(2, timeout=60), [Book(url), Book(url)]

    def reserve(book):
        start.wait()
        try:
            return book.reserve("crm", asked(entry(0.1), row(0.75))).run
        except BookError as error:
            return "private columns" in str(error)

    with ThreadPoolExecutor(2) as both:
        assert sorted(both.map(reserve, books)) == [1, True]
    assert left(books[0]) == (1.9, 0.25)


def test_a_resumed_run_shares_both_budgets_and_another_row_budget_is_a_new_run(tmp_path):
    book = with_rows(f"sqlite:///{tmp_path}/book.db")
    plan = [entry(0.25, steps=2), row(0.25, steps=2)]
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    run = book.reserve("crm", asked(*plan, journal=first))
    run.book(entry(0.25), row(0.25))
    run.close("stopped")
    done = [entry(0.25), row(0.25)]
    resumed = asked(*plan, journal=second, previous=first, before=done)
    more = resumed._replace(other_budgets={ROWS: Budget(0.75, 0.0)})
    for request, family in ((resumed, 1), (more, 3)):
        made = book.reserve("crm", request)
        assert left(book) == (1.5, 0.5)
        assert book.runs()[-1].family == family
        made.close("stopped")


def test_a_killed_run_keeps_what_its_journal_shows_of_each_relation(tmp_path):
    url = f"sqlite:///{tmp_path}/book.db"
    with_rows(url).close()
    killed = Book(url)
    killed.reserve(
        "crm", asked(entry(0.25, steps=2), row(0.25, steps=2), journal=tmp_path / JOURNAL)
    )
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.beside, ledger.journal = {ROWS: Budget(1.0, 0.0)}, tmp_path / JOURNAL
    ledger.spend(row(0.25))  # the book has not heard of it
    killed.close()
    book = Book(url)
    assert book.reconcile() == [1]
    assert steps_of(book) == [0, 1]


def test_a_grant_is_for_one_total(tmp_path):
    book = act_as(with_rows(f"sqlite:///{tmp_path}/book.db"), "ann")
    owner.grant(book, "crm", "ann", Budget(1.0, 0.0))
    request = asked(entry(0.5), row(0.5))
    with pytest.raises(BookError, match="may spend on its private columns, and ann has none"):
        book.reserve("crm", request)
    owner.grant(book, "crm", "ann", Budget(0.25, 0.0), ROWS)
    with pytest.raises(BookError, match=r"on private columns does not pay for epsilon 0\.5"):
        book.reserve("crm", request)
    owner.grant(book, "crm", "ann", Budget(0.5, 0.0), ROWS)
    book.reserve("crm", request)
    found = summary(book, "crm")
    (rows,) = found["beside"]
    assert [each["state"] for each in found["grants"]] == ["in force"]
    assert [each["state"] for each in rows["grants"]] == ["replaced", "in force"]
    assert rows["grants"][1]["spent_epsilon"] == 0.5
    register(book, "web")
    with pytest.raises(BookError, match="web has no total of the relation attributes"):
        owner.grant(book, "web", "ann", Budget(0.5, 0.0), ROWS)


def test_all_pages_show_both_totals_and_never_their_sum(tmp_path):
    book = with_rows(f"sqlite:///{tmp_path}/book.db", part_of="year")
    run = book.reserve("crm", asked(entry(0.5), row(0.25)))
    run.book(entry(0.5), row(0.25))
    run.close("ended")
    found = summary(book, "crm")
    text = "\n".join(terminal.lines(found))
    assert "left      one pure release of epsilon 1.5" in text
    assert "left      one pure release of epsilon 0.75" in text
    assert "with 10 of its edges: epsilon 5.25, delta 0" in text  # 10 x 0.5 + 0.25
    assert [line.split()[1] for line in terminal.all_lines([found])[1:3]] == ["edge", "attributes"]
    html = page(book, ["crm"])
    assert "crm, private columns" in html
    assert "attribute-level (0.25, 0)-DP (exchange the private columns of one node)" in html
    rows = csv.DictReader(csv_text(book, ["crm"]).splitlines())
    columns = ("relation", "run", "budget_epsilon", "epsilon")
    assert [[line[column] for column in columns] for line in rows] == [
        ["edge", "1", "0.5", "0.5"],
        ["attributes", "1", "0.25", "0.25"],
    ]
    (exported,) = whole(book, ["crm"])["datasets"]
    assert [len(each["entries"]) for each in exported["beside"][0]["releases"]] == [1]
    assert group_summary(book, "year")["spent"] == 0.5


def test_a_plan_has_releases_for_each_total(tmp_path):
    book = with_rows(f"sqlite:///{tmp_path}/book.db", relation=Relation.NODE)
    book.reserve("crm", asked(row(0.25), edges="e"))
    plan = budget_plan(book, "crm", releases=1)
    assert [(each.method, each.share.budget.epsilon) for each in plan] == [
        ("pure release", 2.0),
        ("pure release of private columns", 0.75),
    ]


def test_the_same_columns_have_one_total(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db")
    owner.add_row_total(book, "crm", Budget(1.0, 0.0), "columns")
    with pytest.raises(BookError, match="these private columns are on the total of 'crm' already"):
        register_rows(book, "again", "columns")
    assert [dataset.name for dataset in book.data_sets()] == ["crm"]  # not registered either
    book.reserve("crm", asked(entry(0.1), row(0.1), contents={ROWS: "march"})).close("stopped")
    assert book.names_of_rows("march") == ["crm"] == book.names_of_rows("columns")
    assert book.names_of_rows("") == []


def register_rows(book, name, content, relation=Relation.EDGE, **changes):
    data = Fingerprint(f"edges of {name}", f"nodes of {name}", rows=content)
    total = Budget(1.0, 0.0)
    owner.register(book, name, data, total=total, relation=relation, row_total=total, **changes)


def test_people_with_a_row_total_are_found_whatever_links_them(tmp_path):
    book = with_rows(f"sqlite:///{tmp_path}/book.db")
    same = Fingerprint("edges of crm", "nodes of crm")
    owner.register(book, "people", same, total=Budget(1.0, 0.0), relation=Relation.NODE)
    assert [dataset.name for dataset in same_people_as(book.database, "people", ROWS)] == ["crm"]
    assert same_people_as(book.database, "crm", ROWS) == []
    register(book, "others")
    assert same_people_as(book.database, "others", ROWS) == []


def test_columns_are_recognized_in_any_order_and_without_other_nodes():
    table = AttributeTable("t", ["ann", "bob"], {"age": [1, 2], "region": ["n", "s"], "x": [0, 0]})
    other = AttributeTable("u", ["bob", "zoe", "ann"], {"region": "sxn", "age": ["2", "9", "1"]})
    both = [rows_of(each, ["region", "age"], ["ann", "bob"]) for each in (table, other)]
    assert both[0] == both[1] != rows_of(table, ["age"], ["ann", "bob"])
    assert rows_of(table, [], ["ann"]) == b""


class Columns(EdgeListDataModule):
    """A graph whose nodes have a private column."""

    column = b"column"

    def identity(self):
        return super().identity()._replace(rows=self.column)


class Changed(Columns):
    """The same graph with other values of the column."""

    column = b"changed"


def test_a_fit_books_both_budgets_and_recognizes_the_columns(tmp_path, monkeypatch, capsys):
    url = f"sqlite:///{tmp_path}/book.db"
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", url)
    book, data = Book(url, is_new=True), Columns(KARATE)
    known = book.fingerprint(data.identity())
    owner.register(book, "karate", known, total=Budget(4.0, 0.0), relation=Relation.EDGE)

    def fit(columns):
        accountant = PrivacyAccountant(2.0, 0.0, row_epsilon=1.0)
        quiet_trainer(accountant).fit(EdgesAndRows(), columns(KARATE))

    with pytest.raises(
        BookError, match="no total for private columns of nodes, which EdgesAndRows"
    ):
        fit(Columns)
    owner.add_row_total(book, "karate", Budget(2.0, 0.0), known.rows)
    fit(Columns)
    assert (book.left("karate"), book.left("karate", ROWS)) == pytest.approx((2.0, 1.0))
    assert "total of epsilon 2, delta 0 for private columns of nodes; left is one" in (
        capsys.readouterr().out
    )
    with pytest.warns(UserWarning, match="the private columns differ from those of 'karate'"):
        fit(Changed)
    assert (book.left("karate"), book.left("karate", ROWS)) == pytest.approx((0.0, 0.0))
    assert [[each.booked for each in run.planned] for run in book.runs()] == [[1] * 4] * 2
    assert faults(book.database) == []
