"""Totals for at most D edges of one node: a number D for all runs, and none is mixed with another."""

import pytest
import torch

from lightning_dpg.apps.book import owner, terminal
from lightning_dpg.apps.book.book import Book
from lightning_dpg.apps.book.further_releases import budget_plan
from lightning_dpg.apps.book.identity import Fingerprint, protected_unit
from lightning_dpg.apps.book.page import page
from lightning_dpg.apps.book.report import summary
from lightning_dpg.apps.book.request import Request
from lightning_dpg.apps.book.store import faults
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.errors import BookError
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import NodeNeighborVotes
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from tests.apps.book.commands.test_budget import place
from tests.apps.book.commands.test_owner import BOOK, budget
from tests.apps.book.small_book import entry, new_book, register
from tests.closed_forms import gaussian_sigma
from tests.training import quiet_trainer

__all__ = ["place"]

UNIT = protected_unit(Relation.EDGES_OF_NODE, "undirected edge", 20)
TOTAL = {"relation": Relation.EDGES_OF_NODE, "max_edges": 20}


def votes(max_edges, epsilon=1.0, delta=1e-7):
    method, budget = NodeNeighborVotes(max_edges=max_edges), Budget(epsilon, delta)
    plan = method.plan(budget, 1)
    return Request("NodeNeighborVotes", "s", budget, lambda _: plan, edges="edges of crm")


@pytest.fixture
def book(tmp_path):
    return new_book(f"sqlite:///{tmp_path}/book.db", delta=1e-5, **TOTAL)


def test_runs_of_another_number_of_edges_are_refused_and_book_nothing(book):
    for request, message in [
        (votes(5), r"at most 20 edges of one node, and NodeNeighborVotes hides at most 5\n.*to 20"),
        (
            votes(40),
            "hides at most 40",
        ),  # more is no guarantee for 20 either: it is not proved here
        (
            Request(
                *("Own", "s", Budget(1.0, 0.0)),
                lambda _: [entry(1.0, relation=Relation.EDGES_OF_NODE)],
                edges="e",
            ),
            "does not say how many",
        ),
    ]:
        with pytest.raises(BookError, match=message):
            book.reserve("crm", request)
    assert book.runs() == []
    book.reserve("crm", votes(20)).close("stopped")
    assert faults(book.database) == []


def test_one_number_is_fixed_when_the_data_are_registered(book):
    assert UNIT == "set of at most 20 undirected edges of one node"
    data = Fingerprint("edges of crm", "nodes of crm")
    values = {"total": Budget(1.0, 0.0)}
    with pytest.raises(BookError, match="registered as 'crm' already"):
        owner.register(book, "five", data, **values, relation=Relation.EDGES_OF_NODE, max_edges=5)
    for changes, message in [
        ({"max_edges": None}, r"number of edges of one node.*got None\ngive it: --max-edges 20"),
        ({"max_edges": 0}, "got 0"),
        ({"relation": Relation.EDGE}, "--max-edges 20 belongs to the relation edges_of_node"),
    ]:
        with pytest.raises(BookError, match=message):
            register(book, "web", **(TOTAL | changes))
    register(book, "january", part_of="year", **TOTAL)
    with pytest.raises(BookError, match="the parts of 'year' protect one set of at most 20"):
        register(book, "february", part_of="year", **(TOTAL | {"max_edges": 5}))


def test_data_of_single_edges_refuse_such_runs_and_say_the_way_out(tmp_path):
    book = new_book(f"sqlite:///{tmp_path}/book.db")
    with pytest.raises(BookError, match="--relation edges_of_node --max-edges 20"):
        book.reserve("crm", votes(20))


def test_epsilon_by_edges_is_that_of_all_runs_together(book, monkeypatch):
    """Two Gaussian releases of noise sigma each are one of sigma / sqrt 2."""
    for _ in range(2):
        request = votes(20)
        run = book.reserve("crm", request)
        run.book(*request.plan(request.budget))
        run.close("ended")
    found = summary(book, "crm")
    sigma = gaussian_sigma(1.0, 1e-7)
    for count, epsilon in found["epsilon_by_edges"].items():
        m = int(count)
        share = (m + min(m, 20 / 3)) / (80 / 3)
        assert gaussian_sigma(epsilon, 1e-5) == pytest.approx(sigma / share / 2**0.5, rel=0.01)
    assert found["spent"] == pytest.approx(found["epsilon_by_edges"]["20"], rel=0.01)
    line = "epsilon by the edges of one node together: 1, 5, 10, 20, 50 edges have"
    assert line in "\n".join(terminal.lines(found))
    html = page(book, ["crm"])
    assert line in html and UNIT in html and "neighbor-level" in html


def test_plans_are_of_the_number_of_the_data_set(tmp_path):
    values = TOTAL | {"max_edges": 7}
    book = new_book(f"sqlite:///{tmp_path}/book.db", delta=1e-5, **values)
    (row,) = budget_plan(book, "crm", "NodeNeighborVotes", releases=2, delta=1e-7)
    for _ in range(2):
        request = votes(7, *row.share.budget)
        book.reserve("crm", request).book(*request.plan(request.budget))
    with pytest.raises(BookError, match="does not pay"):
        book.reserve("crm", votes(7, *row.share.budget))


def labelled(num_nodes=40):
    graph = make_graph(
        torch.tensor([(a, (a + 1) % num_nodes) for a in range(num_nodes)]), num_nodes
    )
    graph.x, graph.y = torch.rand(num_nodes, 4), torch.arange(num_nodes) % 2
    graph.attribute_names = list("abcd")
    return EdgeListDataModule(graph, nodes=Nodes(attributes="from_graph"))


def test_a_fit_is_recognized_and_refused_with_another_number(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/book.db"
    monkeypatch.setenv("LIGHTNING_DPG_BOOK", url)
    book, data = Book(url, is_new=True), labelled()
    known = book.fingerprint(data.identity())
    owner.register(book, "ring", known, total=Budget(4.0, 1e-5), **TOTAL)

    def fit(max_edges):
        method = NodeNeighborVotes(max_edges=max_edges, rank=2)
        quiet_trainer(PrivacyAccountant(1.0, 1e-6)).fit(method, labelled())

    with pytest.raises(BookError, match=r"set model\.init_args\.max_edges to 20"):
        fit(5)
    fit(20)
    assert [run.outcome for run in book.runs("ring")] == ["ended"]


def test_the_command_line_registers_the_number(place, capsys, printed):
    relation = ["--relation", "edges_of_node", "--epsilon", "2", "--delta", "1e-6"]
    assert budget("register", "people", "graph.txt", *relation) == 2
    assert "give it: --max-edges 20" in capsys.readouterr().err
    assert budget("register", "people", "graph.txt", *relation, "--max-edges", "20") == 0
    assert f"record {UNIT}, total epsilon 2" in capsys.readouterr().out
    assert f"relation edges_of_node, record {UNIT}" in printed(budget("show", "people"))
    assert Book(BOOK[1]).data_set("people").max_edges == 20


def test_private_columns_beside_it_do_not_change_the_number(book):
    owner.add_row_total(book, "crm", Budget(1.0, 0.0))
    with pytest.raises(BookError, match="hides at most 5"):
        book.reserve("crm", with_columns(votes(5)))
    book.reserve("crm", with_columns(votes(20)))


def with_columns(request):
    """The request with a read of private columns."""
    plan = [*request.plan(request.budget), entry(0.5, relation=Relation.ATTRIBUTES)]
    return request._replace(
        plan=lambda _: plan, other_budgets={Relation.ATTRIBUTES: Budget(0.5, 0.0)}
    )
