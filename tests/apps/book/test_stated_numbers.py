"""What is said beside the numbers of a book: other totals of the same edges, conditions, sums."""

from html import unescape

import pytest

from lightning_dpg.apps.book import owner, terminal
from lightning_dpg.apps.book.identity import Fingerprint
from lightning_dpg.apps.book.page import page
from lightning_dpg.apps.book.partition import group_facts, group_summary
from lightning_dpg.apps.book.report import summary
from lightning_dpg.apps.book.request import Request
from lightning_dpg.errors import BookError
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from tests.apps.book.small_book import entry, new_book, register, reserve, run
from tests.apps.book.test_page import text_of

NOTE = "the same edges are registered as {!r} for the relation {}: its runs are not in this number"


@pytest.fixture
def book(tmp_path):
    return new_book(f"sqlite:///{tmp_path}/book.db")


def register_for_nodes(book, name, edges):
    total = Budget(3.0, 1e-6)
    owner.register(book, name, Fingerprint(edges, "nodes"), total=total, relation=Relation.NODE)


def test_two_totals_of_the_same_edges_name_each_other(book):
    register_for_nodes(book, "people", "edges of crm")
    run(book, entry(2.0, relation=Relation.NODE), "people", edges="edges of crm")
    register(book, "web")
    crm, people, web = (summary(book, name) for name in ("crm", "people", "web"))
    assert crm["same_edges"] == [{"dataset": "people", "relation": "node"}]
    assert people["same_edges"] == [{"dataset": "crm", "relation": "edge"}]
    assert (web["same_edges"], crm["spent"], people["spent"]) == ([], 0, 2.0)
    assert NOTE.format("people", "node") in terminal.lines(crm)
    assert NOTE.format("crm", "edge") in terminal.lines(people)
    lines = terminal.all_lines([crm, people, web])
    assert f"crm: {NOTE.format('people', 'node')}" in lines
    assert not [line for line in lines if line.startswith("web:")]
    text = text_of(page(book, ["crm"]))
    assert "Nothing was released on this total yet. The same edges are registered as" in text


def test_totals_of_transfers_edges_and_nodes_name_each_other(book):
    """Transfers are known by their edges alone; edges that differ are known by their nodes."""
    values = {"total": Budget(1.0, 0.0)}
    paid = Fingerprint("transfers", "nodes of crm", links="edges of crm")
    owner.register(book, "pay", paid, relation=Relation.TRANSFER, **values)
    directed = Fingerprint("directed edges of crm", "nodes of crm")
    owner.register(book, "arcs", directed, relation=Relation.EDGES_OF_NODE, max_edges=3, **values)
    found = {name: summary(book, name) for name in ("crm", "pay", "arcs")}
    crm, pay = (
        {"dataset": name, "relation": of} for name, of in [("crm", "edge"), ("pay", "transfer")]
    )
    assert [found[name]["same_edges"] for name in found] == [[pay], [crm], []]
    assert [each["dataset"] for each in found["arcs"]["same_nodes"]] == ["crm", "pay"]
    assert NOTE.format("pay", "transfer") in terminal.lines(found["crm"])
    note = NOTE.replace("the same edges", "the same nodes, or most of them,")
    assert note.format("arcs", "edges_of_node") in terminal.lines(found["pay"])
    assert book.names_of("edges of crm") == ["crm", "pay"]


def test_the_epsilon_of_a_node_has_one_text_with_its_condition(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/nodes.db", max_degree=3)
    run(book, entry(0.5))
    found = summary(book, "crm")
    text = "epsilon 1.5, delta 1e-06: all edges of a node, 3 at most, as a group,"
    assert found["node_text"] == f"{text} if all runs were planned in advance"
    lines = terminal.lines(found)
    assert f"node      {found['node_text']}" in lines
    assert f"node {found['node_text']}" in text_of(page(book, ["crm"]))


def test_a_later_version_of_the_data_is_found_in_the_total_of_others(book):
    run(book, entry(0.5), edges="edges of december")
    register_for_nodes(book, "people", "edges of december")
    assert [each["dataset"] for each in summary(book, "crm")["same_edges"]] == ["people"]


def test_parts_of_a_group_name_other_totals_and_conditions(book):
    """Jan proves 1 under a condition; Feb proves 1.5."""
    for name, epsilon, more in [
        ("jan", 1.0, {"condition": "the chain is stationary"}),
        ("feb", 1.5, {}),
    ]:
        register(book, name, part_of="year", max_degree=2)
        run(book, entry(epsilon), name, **more)
    register_for_nodes(book, "people", "edges of jan")
    found = group_summary(book, "year")
    assert (found["spent"], found["conditional"]) == (1.5, True)
    facts = dict(group_facts(found))
    assert facts["spent"] == "epsilon 1.5 † for one undirected edge"
    assert facts["node"].startswith("epsilon 5 †: all edges of a node")
    lines = terminal.group_lines(found, group_facts(found))
    assert lines[-1].endswith("if the conditions do; without them nothing is proved")
    assert f"jan: {NOTE.format('people', 'node')}" in lines
    text = unescape(text_of(page(book, ["jan", "feb"])))
    assert "if the conditions do; without them nothing is proved." in text
    assert f"jan: {NOTE.format('people', 'node')}." in text


def test_a_group_without_conditions_has_no_mark(book):
    register(book, "jan", part_of="year")
    found = group_summary(book, "year")
    assert found["conditional"] is False
    assert "†" not in str(group_facts(found))


def test_pure_epsilons_are_shown_as_their_sum(book):
    """By Renyi divergences, 7 releases of 0.25 are 1.7496 at this delta."""
    register(book, "web", delta=1e-5)
    for count in (4, 3):
        made = reserve(book, entry(0.25, steps=count), "web")
        made.book(entry(0.25, steps=count))
        made.close("ended")
    found = summary(book, "web")
    assert (found["spent"], found["accountant"]) == (1.75, "sum of pure epsilons")
    assert (found["pure_sum"], found["left"]) == (1.75, 0.25)
    assert "spent     epsilon 1.75 (sum of pure epsilons)" in terminal.lines(found)
    assert "(1.75, 1e-05)-DP" in text_of(page(book, ["web"]))


def test_where_much_less_is_proved_the_sum_comes_first_and_both_are_named(book):
    reserved = reserve(book, entry(0.01, steps=100))
    reserved.book(entry(0.01, steps=100))
    reserved.close("ended")
    found = summary(book, "crm")
    assert found["pure_sum"] == 1.0 and 0.4 < found["spent"] < 0.6
    line = f"spent     epsilon 1 added up, {found['spent']:g} proved together (RDP)"
    assert line in terminal.lines(found)
    run(book, entry(sigma=50.0), delta=1e-7)
    assert summary(book, "crm")["pure_sum"] is None


@pytest.mark.parametrize("spent", [2.0, 2.0 - 1e-11])
def test_nothing_left_is_called_that(book, spent):
    """Rounding errors of sums are no budget."""
    run(book, entry(spent))

    def plan(budget):
        return [entry(budget.epsilon)]

    with pytest.raises(BookError, match=r"delta 1e-06; nothing is left$") as refused:
        book.reserve("crm", Request("BTER", "s", Budget(0.5, 0.0), plan, "edges of crm"))
    assert "set privacy.epsilon" not in str(refused.value)
