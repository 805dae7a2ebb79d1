"""A read is booked, drawn and published in this order, for all relations that it costs or for none."""

import json
from dataclasses import replace

import pytest
import torch

from lightning_dpg.privacy.events import (
    Approximate,
    Gaussian,
    LedgerEntry,
    Pure,
    Relation,
)
from lightning_dpg.privacy.ledger import Budget, PrivacyBudgetExceeded, PrivacyLedger
from lightning_dpg.privacy.mechanisms import integer_noise
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.pay import noise_of, pay
from lightning_dpg.privacy.sensitivity.matrix_products import node_edge_count_sensitivity
from lightning_dpg.privacy.sensitivity.subgraph_counts import wedge_sensitivity
from tests.entries import entry

EDGES = entry("pure", name="edges", epsilon=0.5)
NODES = entry("pure", name="edges", epsilon=2.0, relation=Relation.NODE)


def of_two_relations(edges=1.0, nodes=4.0):
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(edges, 0.0)
    ledger.beside[Relation.NODE] = Budget(nodes, 0.0)
    return ledger


def test_a_read_is_booked_then_drawn_then_published():
    ledger, calls = PrivacyLedger(Relation.EDGE), []
    ledger.account = lambda *entries: calls.append(("booked", entries))
    ledger.observer = lambda key, noisy: calls.append(("published", key))

    def law(value, noise):
        assert ledger.entries == [EDGES]
        calls.append(("drawn", value))
        return torch.tensor(3)

    assert int(pay(EDGES, "private", ledger, NoiseSource(), law)) == 3
    assert calls == [("booked", (EDGES,)), ("drawn", "private"), ("published", EDGES.key)]


def test_what_cannot_be_drawn_is_refused_before_it_is_booked():
    ledger = PrivacyLedger(Relation.EDGE)
    for read in (
        entry("non_private"),
        entry("pure", epsilon=1.0, sensitivity=1.5),
        entry("pure", epsilon=1.0, sensitivity=float("inf")),
        entry("pure", epsilon=1e-13),
    ):
        with pytest.raises(ValueError, match=r"no noise|integer"):
            pay(read, torch.zeros(2, dtype=torch.long), ledger, NoiseSource())
    with pytest.raises(TypeError, match="not to str"):
        pay(EDGES, "text", ledger, NoiseSource())
    assert not ledger.entries


def test_a_plan_and_its_payment_are_the_same_entries():
    proved = LedgerEntry.proved("wedges", "wedges", Pure(0.25), wedge_sensitivity, 2)
    assert (proved.sensitivity, proved.proof) == (wedge_sensitivity(2), "wedge_sensitivity")
    assert (proved.scale, proved.record) == (wedge_sensitivity(2) / 0.25, "undirected edge")
    node = LedgerEntry.proved(
        "n", "n", Gaussian(2.0), node_edge_count_sensitivity, 7, relation=Relation.NODE
    )
    assert (node.scale, node.record) == (14.0, "edges of a node")
    void = entry("non_private", name="x", proof="it is read as it is")
    assert void.why_void == "it is read as it is"
    with pytest.raises(ValueError, match="no noise"):
        noise_of(void)


def test_a_read_of_two_relations_is_booked_under_both_and_never_added(tmp_path):
    ledger = of_two_relations()
    ledger.journal = tmp_path / "ledger.jsonl"
    pay(EDGES, torch.tensor(5), ledger, NoiseSource(), also=[NODES])
    assert ledger.of(Relation.EDGE) == [EDGES]
    assert ledger.of(Relation.NODE) == [NODES]
    assert (ledger.epsilon(0.0), ledger.headline(0.0)[0]) == (0.5, 0.5)
    written = [json.loads(line)["relation"] for line in ledger.journal.read_text().splitlines()]
    assert written == ["edge", "node"]
    again = of_two_relations()
    again.load_state_dict(PrivacyLedger.replay(ledger.journal))
    assert again.entries == ledger.entries
    assert again.is_part_of(ledger.state_dict())


@pytest.mark.parametrize(
    ("event", "law", "message"),
    [
        (Pure(0.2), None, "that of noise of scale 5, and the read gets 2"),
        (Approximate(0.2, 0.0), None, "that of another mechanism"),
        (Gaussian(9.0), None, "that of another mechanism"),
        (Pure(1.0), integer_noise(EDGES), "a law of its own"),
    ],
)
def test_a_price_that_is_not_that_of_the_noise_is_refused(event, law, message):
    ledger = of_two_relations(9.0, 9.0)
    with pytest.raises(ValueError, match=message):
        pay(EDGES, torch.tensor(5), ledger, object(), law, also=[replace(NODES, event=event)])
    assert not ledger.entries


@pytest.mark.parametrize(("budgets", "said"), [((0.4, 4.0), "0.4"), ((1.0, 1.9), "1.9")])
def test_a_read_that_one_of_two_budgets_refuses_is_booked_under_none(budgets, said, tmp_path):
    ledger = of_two_relations(*budgets)
    ledger.journal = tmp_path / "ledger.jsonl"
    assert not ledger.affords(EDGES, NODES)
    with pytest.raises(PrivacyBudgetExceeded, match=f"epsilon={said} "):
        pay(EDGES, torch.tensor(5), ledger, object(), also=[NODES])  # a draw would fail otherwise
    assert not ledger.entries
    assert not ledger.journal.exists()


def test_a_relation_beyond_its_budget_refuses_reads_of_its_own_only():
    ledger = of_two_relations()
    ledger.book_lost(entry("pure", epsilon=9.0, relation=Relation.NODE))
    ledger.spend(EDGES)
    with pytest.raises(PrivacyBudgetExceeded, match="'edges' would raise"):
        ledger.spend(EDGES, NODES)
    assert ledger.of(Relation.EDGE) == [EDGES]


def test_each_relation_has_a_budget_of_its_own():
    ledger = of_two_relations()
    for _ in range(2):
        ledger.spend(EDGES, NODES)
    for left in (EDGES, NODES):
        assert not ledger.affords(left)
    with pytest.raises(ValueError, match="local_graph"):
        ledger.spend(entry("pure", epsilon=0.0, relation=Relation.LOCAL_GRAPH))
