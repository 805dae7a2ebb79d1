"""Sentences and numbers of the model card, by relation and kind of data."""

import ast
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import lightning_dpg
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.privacy.events import Gaussian, Pure
from lightning_dpg.privacy.ledger import PrivacyLedger, Relation
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import pay
from lightning_dpg.privacy.reports import LABEL_REPORTS, report_rates
from lightning_dpg.release.card.document import CARD, PAGE, pages
from lightning_dpg.release.card.reads import _place, _proof_names, expected_error, read_of
from lightning_dpg.release.card.texts import Card
from lightning_dpg.release.card.topics import ADDED_UP, topics, with_texts
from lightning_dpg.run.shipped import method_files
from tests import entries
from tests.cards import FACTS, card_of, entry, statement, with_rows

SOURCES = Path(lightning_dpg.__file__).parent


def rows(card, first):
    """Cells of the table row that begins with a cell."""
    lines = [line for line in card.splitlines() if line.startswith(f"| {first} |")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_public_attributes_are_named_as_unprotected():
    public = "Node attributes are public and were not computed from the edges."
    said = "Attributes of the nodes are published as they are"
    assert said in card_of(statement(assumptions=["The node set is public.", public]))
    assert said not in card_of(statement())


@pytest.mark.parametrize(
    ("record", "domain", "hides_directions"),
    [
        ("undirected edge", "One undirected graph", True),
        ("directed edge", "One directed graph", False),
        ("edge between the two sides", "One bipartite graph", True),
    ],
)
def test_the_card_names_the_kind_of_the_graph(record, domain, hides_directions):
    card = card_of(statement(entries=[entry(record=record, epsilon=1.0)]))
    assert domain in card
    assert ("Amounts, dates, directions" in card) == hides_directions
    assert ("one in each direction is two relations" in card) == (record == "directed edge")


def test_an_edge_is_the_unit_and_a_person_is_not():
    card = card_of(statement(epsilon=1.0))
    assert "One unit is one relation: one undirected edge between two nodes." in card
    assert "A customer with 50 relations is protected at epsilon 50 only" in card
    assert "That A is a customer is known" in card
    assert "Not in the release: Amounts, dates" in card
    assert "private training steps" not in card
    assert "noise multiplier" not in card


def test_numbered_nodes_are_not_published_by_name():
    data = EdgeListDataModule("karate", nodes=Nodes(names="numbers"))
    data.setup("fit")
    card = card_of(statement(assumptions=data.assumptions))
    assert "Their names are not in the release." in card
    assert "is a customer" not in card


def test_the_table_of_groups_has_rounded_up_bounds():
    page, _, card = card_of(statement(epsilon=1.0)).partition("# Appendix")
    belief = math.exp(1) / (1 + math.exp(1))
    assert 0.731 < belief < 0.732
    assert rows(card, 1) == [["1", "1", "0", "73.2 %", "2.8 %"]]
    assert rows(card, 50) == [["50", "50", "0", "100 %", "100 %"]]
    for units in (1, 10, 50):
        assert rows(page, units) == rows(card, units)
    approximate = card_of(statement(epsilon=1.0, delta=1e-5)).partition("# Appendix")[2]
    # 1e-5 (1 + e + e^2 + e^3 + e^4) = 8.58e-4, and e^5 / 100 is beyond the second line.
    assert rows(approximate, 5) == [["5", "5", "0.000858", "99.4 %", "99.4 %"]]
    assert rows(approximate, 50) == [["50", "50", "1", "100 %", "100 %"]]
    assert "gives the answer away with probability 1e-05" in approximate
    assert "A customer with 50 relations is not protected: each relation counts" in approximate
    assert "gives the answer away" not in card and "on average" not in card
    assert "to at most 73.2 % after reading the release, on average over its noise." in approximate
    # (e + 0.9) / (1 + e) = 97.31 %
    assert rows(card_of(statement(epsilon=1.0, delta=0.9)), 1)[0][3] == "97.4 %"


def test_page_1_is_what_is_signed_and_reads_are_an_appendix():
    values = statement("node", condition="no node has more than 8 links", conditional=True)
    content = values | topics(values, FACTS._replace(other_runs=ADDED_UP))
    texts = {
        "epsilon_reason": "few links",
        "other_releases": "Epsilon 4 in all.",
        "unit": "a person",
    }
    content = with_texts(content, Card(**texts, purpose="word " * 80), {})
    page, _, appendix = pages(content)[CARD].partition("# Appendix")
    for said in (
        "| unit of protection | a person (in the words of the operator). One unit is all relations",
        "| epsilon, delta | 1, 0 for all relations of one node |",
        "| condition | no node has more than 8 links |",
        "| why this epsilon | few links |",
        f"Other runs on these data: {ADDED_UP}. Epsilon 4 in all. |",
        "word ... (whole text in the appendix) |",
        "- The node set is public.",
        "Not stated by the operator: operator, recipient, contact, licence, data,",
        "Name, decision: ________  Begin of sha256sum SHA256SUMS: ________",
    ):
        assert said in page
    assert "word " * 79 in appendix and "edge_count_sensitivity" in appendix
    assert "edge_count_sensitivity" not in page
    assert page.count("ot stated") == 1
    assert pages(content)[PAGE].count("</main>") == 1


def test_small_groups_have_larger_errors_than_the_whole():
    reads = [entry(epsilon=0.1), entry(key="amount_sums", epsilon=0.1, name="sums")]
    shares = [percent[4:] for percent in rows(card_of(statement(entries=reads)), "number of edges")]
    assert shares[-1] == ["1,000 %", "100 %", "10 %", "0.1 %"]
    assert rows(card_of(statement(entries=reads)), "sums")[-1][4:] == [""] * 4
    values = with_rows(key=LABEL_REPORTS)
    own, other = report_rates(0.5, num_classes=7)
    false = [(1 - s) * other / ((1 - s) * other + s * own) for s in (0.01, 0.5)]
    assert f"{false[0]:.2g} {false[1]:.2g}" == "0.98 0.38"
    said = "a class that 1 % of the nodes have, 98 % are expected to be false; of a class of half of the"
    assert f"{said} nodes, 38 %." in card_of(values)


def test_the_other_relations_have_units_of_their_own():
    node = card_of(statement("node", conditional=True, condition="no node has more than 8 links"))
    assert "One unit is all relations of one node." in node
    assert "is two such changes and protected at epsilon 2 only" in node
    assert "The guarantee holds only if no node has more than 8 links." in node
    assert "All of this holds only if no node has more than 8 links.\n\n- Protected: " in node
    nothing = card_of(statement("node", epsilon=500.0, delta=1e-4))
    assert "is two such changes, for which nothing is proved (epsilon 1000, delta 1)." in nothing
    local = card_of(statement("local_graph"), is_set=True, num_graphs=None)
    assert local.startswith("# Features of graphs by Any")
    assert "One unit is the whole graph of one client" in local
    assert "| trust model | local: Each client randomizes" in local
    assert "A synthetic relation" in node and "ynthetic relation" not in local


def test_copies_of_an_edge_in_a_set_are_one_unit():
    once = card_of(statement(), is_set=True)
    assert "one relation of one graph of the set" in once
    assert "a unit of its own" in once
    twice = card_of(statement(), is_set=True, max_occurrences=2)
    assert "one relation of the whole graph, which occurs in up to 2 graphs" in twice
    assert "a unit of its own" not in twice


def test_a_release_without_a_guarantee_says_so_in_its_first_line():
    entries = [entry("non_private", "training", sensitivity="inf", proof="CELL adds no noise")]
    none = {"guarantee": "none: training: CELL adds no noise.", "noise_source": "none"}
    card = card_of(statement(epsilon="inf", delta=1e-6, entries=entries, **none))
    assert card.startswith("# NOT PRIVATE: ")
    assert "- Protected: " not in card
    assert "| 50 |" not in card
    assert "read without protection (CELL adds no noise)" in card


def test_reads_are_told_by_their_mechanisms():
    step = entry("gaussian", "edge_gradient", noise_multiplier=1.5, sample_rate=0.1, steps=20)
    assert (
        "in 20 steps, each from a random sample that holds a unit with probability 0.1"
        in (read_of(step)["description"])
    )
    reports = entry(key="edge_reports", epsilon=math.log(99))
    assert "wrong with probability 0.01." in read_of(reports)["description"]
    certain = entry(key="edge_reports", epsilon=1000.0)
    assert "wrong with probability 0." in read_of(certain)["description"]


@pytest.mark.parametrize("event", [Pure(0.5), Gaussian(1.3)])
def test_expected_errors_are_those_of_the_mechanisms(event):
    read = replace(entries.entry(name="degrees", sensitivity=2, noise_multiplier=1.0), event=event)
    read = replace(read, proof="degree_l1_sensitivity")
    zeros = torch.zeros(40_000, dtype=torch.long)
    drawn = pay(read, zeros, PrivacyLedger(Relation.EDGE), NoiseSource())
    error = expected_error(read.to_dict())
    assert drawn.abs().double().mean() == pytest.approx(error["mean_absolute_error"], rel=0.05)
    exceeded = (drawn.abs() > error["half_width_95"]).double().mean()
    assert 0.03 < exceeded < 0.06


def test_errors_without_a_closed_form_are_left_out():
    sampled = entry(key="graphlets_3", epsilon=1.0, proof="amplified_epsilon, graphlet_sensitivity")
    assert expected_error(sampled) is None
    assert expected_error(entry(key="joint_degrees", epsilon=1.0)) is None
    assert expected_error(entry("gaussian", "degrees", noise_multiplier=1.0, steps=2)) is None


def test_each_proof_that_a_method_names_has_its_file():
    named = {"cost_of_piecewise", "cost_of_reports", "amplified_epsilon"}
    for path in method_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Name) and node.id.endswith("_sensitivity"):
                named |= {*_proof_names(node.id)}
    assert len(named) > 20
    for name in named:
        _, _, place = _place(name).rstrip(")").partition(" (")
        assert f"def {name}(" in (SOURCES.parent / place).read_text()
