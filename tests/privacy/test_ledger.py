"""Ledgers of known runs give known epsilons, and no spending exceeds the budget."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lightning_dpg.privacy.calibration import calibrate_gaussian, max_steps
from lightning_dpg.privacy.ledger import (
    Budget,
    LedgerEntry,
    PrivacyBudgetExceeded,
    PrivacyLedger,
    Relation,
)
from tests.closed_forms import gaussian_sigma
from tests.entries import entry


def step(sigma=1.0, q=0.01, steps=1, **changes):
    changes = {"name": "critic"} | changes
    return entry(noise_multiplier=sigma, sample_rate=q, steps=steps, **changes)


def ledger_of(*entries, relation=Relation.EDGE):
    ledger = PrivacyLedger(relation)
    for item in entries:
        ledger.spend(item)
    return ledger


COUNT = entry("pure", epsilon=0.05)


@pytest.mark.parametrize(  # rows 17 and 18 of PRIVACY section 8: Google's RDP, PLD
    ("entries", "rdp", "pld"),
    [
        ((COUNT, entry(noise_multiplier=8.0, steps=2), step(1.0, 0.01, 1000)), 2.2316, 1.9669),
        ((COUNT, entry(noise_multiplier=6.0), step(4.0, 0.05, 2000)), 2.6487, 2.4375),
    ],
)
def test_mixed_ledgers_known_answers(entries, rdp, pld):
    ledger = ledger_of(*entries)
    assert ledger.epsilon(1e-5) == pytest.approx(rdp, rel=1e-3)
    assert ledger.delta(rdp) == pytest.approx(1e-5, rel=5e-3)
    # Google books Laplace noise for the count, which costs a little less than any pure release.
    epsilon, accountant = ledger.headline(1e-5)
    assert accountant == "PLD"
    assert pld < epsilon < pld + 0.01


def test_reads_that_fit_one_by_one_and_not_together_are_refused_together():
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(1.0, 0.0)
    first, second = (entry("pure", name=name, epsilon=0.6) for name in ("degrees", "wedges"))
    with pytest.raises(PrivacyBudgetExceeded, match="'degrees' and 'wedges'"):
        ledger.spend(first, second)
    assert not ledger.entries
    ledger.spend(first)


def test_pure_releases_add_up_where_that_is_less_than_renyi_dp():  # whose values are opacus'
    assert ledger_of(entry("pure", epsilon=1.0)).epsilon(1e-5) == 1.0
    ten = entry("pure", epsilon=0.1, steps=10)
    assert ledger_of(ten).epsilon(1e-5) == pytest.approx(0.99369, rel=1e-4)
    assert ledger_of(replace(ten, steps=50)).epsilon(1e-5) == pytest.approx(3.04994, rel=1e-4)


def test_pure_release_fits_a_budget_of_its_own_epsilon():
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(1.0, 1e-6)
    ledger.spend(entry("pure", epsilon=1.0))
    assert ledger.delta(1.0) == 0
    assert ledger.headline(1e-6) == (1.0, "sum of pure epsilons")


def test_a_delta_is_added_to_that_of_all_other_releases():
    approximate = entry("approximate", epsilon=0.5, delta=1e-6, steps=2)
    ledger = ledger_of(entry("pure", epsilon=0.25), approximate)
    assert ledger.delta(1.25) == pytest.approx(2e-6)
    assert ledger.delta(1.0) > 1e-3  # basic composition, hence no less than that
    assert ledger.epsilon(2e-6) == pytest.approx(1.25)
    assert ledger.epsilon(1.9e-6) == math.inf
    assert ledger.headline(2e-6) == (pytest.approx(1.25), "sum of epsilons and of deltas")
    assert ledger.headline(1e-6)[0] == math.inf
    # Beside Gaussian noise, whose own curve gives what is left of delta.
    sigma = gaussian_sigma(1.0, 3e-6)
    mixed = ledger_of(approximate, entry(noise_multiplier=sigma))
    assert mixed.delta(2.0) == pytest.approx(5e-6, rel=1e-6)
    epsilon, accountant = mixed.headline(5e-6)
    assert accountant == "PLD"
    assert 1.0 < epsilon < 2.0


def test_no_delta_is_spent_that_the_budget_does_not_have():
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(2.0, 1.5e-6)
    approximate = entry("approximate", epsilon=0.5, delta=1e-6)
    ledger.spend(approximate)
    with pytest.raises(PrivacyBudgetExceeded, match=r"from 1e-06 to 2e-06; the budget is 1.5e-06"):
        ledger.spend(approximate)
    ledger.spend(entry("pure", epsilon=1.5))
    assert ledger.delta(2.0) == pytest.approx(1e-6)


@pytest.mark.parametrize(
    ("mechanism", "delta"), [("approximate", 1.0), ("approximate", -1e-9), ("pure", 1e-6)]
)
def test_deltas_that_no_mechanism_has_are_refused(mechanism, delta):
    with pytest.raises(ValueError, match=f"^{mechanism}: .*delta"):
        entry(mechanism, epsilon=1.0, delta=delta)


def test_entries_that_were_written_without_a_delta_have_none():
    state = entry("pure", epsilon=1.0).to_dict()
    del state["delta"]
    assert LedgerEntry.from_dict(state) == entry("pure", epsilon=1.0)


def written_by_0_1_0(**changes):
    return entry("pure", epsilon=1.0).to_dict() | {"partition": None} | changes


def test_a_journal_of_0_1_0_with_its_key_partition_is_read(tmp_path):
    journal = tmp_path / "ledger.jsonl"
    journal.write_text(json.dumps(written_by_0_1_0()) + "\n")
    assert PrivacyLedger.replay(journal) == ledger_of(entry("pure", epsilon=1.0)).state_dict()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partition": ["graphs", "first"]}, r"^pure: .* parallel, as .*\['graphs', 'first'\]$"),
        ({"parallel": 2}, r"^pure: this version does not account for parallel, which a later one"),
        ({"mechanism": "laplace"}, r"^pure: unknown mechanism 'laplace': .*, pure, .*$"),
        ({"relation": "graph"}, r"^unknown relation 'graph': .*, local_graph, attributes$"),
        (
            {"relation": "edge_replace"},
            r"^unknown relation 'edge_replace': .*edge, transfer, node, .*$",
        ),
    ],
)
def test_a_journal_with_what_is_not_accounted_for_is_refused(tmp_path, changes, message):
    journal = tmp_path / "ledger.jsonl"
    journal.write_text(json.dumps(written_by_0_1_0(**changes)) + "\n")
    with pytest.raises(ValueError, match=message):
        PrivacyLedger.replay(journal)


def test_full_batch_gaussian_fits_its_analytic_calibration():
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(1.0, 1e-5)
    ledger.spend(entry(noise_multiplier=calibrate_gaussian(ledger.budget)))
    assert ledger.headline(1e-5) == (pytest.approx(1.0, abs=1e-6), "GDP")


def test_empty_ledger_costs_nothing():
    ledger = PrivacyLedger(Relation.EDGE)
    assert (ledger.epsilon(1e-5), ledger.delta(0.1), ledger.steps) == (0, 0, 0)
    assert ledger.headline(1e-5) == (0, "RDP")


settings_of_runs = (
    st.floats(0.5, 20),
    st.floats(1e-3, 1),
    st.floats(0.2, 20),
    st.floats(1e-8, 1e-3),
)


@settings(max_examples=50)
@given(*settings_of_runs, st.integers(0, 39))
def test_spending_until_refused_ends_just_within_the_budget(sigma, q, epsilon, delta, far):
    ledger, other = PrivacyLedger(Relation.EDGE), PrivacyLedger(Relation.EDGE)
    ledger.budget = other.budget = Budget(epsilon, delta)
    # Refusals of a thousand times too many steps took most of the time: one of them is tried.
    refused = next(k for k in range(41) if not other.affords(step(sigma, q, 2**k)))
    for steps in [2 ** max(far, refused), *(2**k for k in reversed(range(refused))), 1]:
        before = ledger.state_dict()
        try:
            ledger.spend(step(sigma, q, steps))
        except PrivacyBudgetExceeded:
            assert ledger.state_dict() == before
    one_more = step(sigma, q)
    assert ledger.delta(epsilon) <= delta < ledger.delta(epsilon, one_more)
    assert not ledger.affords(one_more)
    if ledger.steps:
        assert ledger.epsilon(delta) <= epsilon * (1 + 1e-9)
    booked = ledger.entries[0].steps if ledger.entries else 0
    # A single release of all records is no training step.
    assert ledger.steps == (0 if q == 1 and booked == 1 else booked)
    if q < 1:
        assert ledger.steps == max_steps(ledger.budget, sigma, sample_rate=q)


@settings(max_examples=50)
@given(*settings_of_runs, st.integers(1, 500), st.integers(1, 500))
def test_resumed_state_equals_one_go(sigma, q, epsilon, delta, first, second):
    run = ledger_of(COUNT, step(sigma, q, first))
    resumed = PrivacyLedger(Relation.EDGE)
    resumed.load_state_dict(json.loads(json.dumps(run.state_dict())))
    resumed.spend(step(sigma, q, second))
    one_go = ledger_of(COUNT, step(sigma, q, first + second))
    assert resumed.state_dict() == one_go.state_dict()
    assert resumed.epsilon(delta) == one_go.epsilon(delta)
    assert resumed.epsilon(delta) >= run.epsilon(delta)
    assert resumed.delta(epsilon) >= run.delta(epsilon)


def test_entries_of_a_run_written_by_hand():
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.spend(entry("pure", name="num_edges", epsilon=0.1))
    for _ in range(3):
        ledger.spend(step(2.0, 0.05, public={"max_grad_norm": 1.0}))
    ledger.spend(step(1.0, 0.05, public={"max_grad_norm": 1.0}))
    critic = {
        "key": "critic",
        "name": "critic",
        "relation": "edge",
        "mechanism": "gaussian",
        "sensitivity": 1.0,
        "proof": "by hand",
        "noise_multiplier": 2.0,
        "epsilon": 0.0,
        "delta": 0.0,
        "sample_rate": 0.05,
        "steps": 3,
        "record": "undirected edge",
        "public": {"max_grad_norm": 1.0},
    }
    count = {
        **critic,
        "key": "num_edges",
        "name": "num_edges",
        "mechanism": "pure",
        "noise_multiplier": 0.0,
        "epsilon": 0.1,
        "sample_rate": 1.0,
        "steps": 1,
        "public": {},
    }
    assert ledger.state_dict() == {
        "relation": "edge",
        "entries": [count, critic, {**critic, "noise_multiplier": 1.0, "steps": 1}],
    }
    assert ledger.steps == 4


def test_successive_equal_releases_are_merged_across_other_names():
    validation = entry("gaussian", name="validation", noise_multiplier=9.0)
    ledger = ledger_of(step(), validation, step(steps=2), validation)
    assert ledger.entries == [step(steps=3), replace(validation, steps=2)]


def test_relations_are_never_added():
    ledger = ledger_of(step())
    other = entry("pure", relation=Relation.NODE, epsilon=0.1)
    for refused in (ledger.spend, ledger.affords, lambda e: ledger.delta(1.0, e)):
        with pytest.raises(ValueError, match="'node'"):
            refused(other)
    with pytest.raises(ValueError, match="node"):
        ledger.load_state_dict(ledger_of(other, relation=Relation.NODE).state_dict())
    assert ledger.entries == [step()]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: step(relation=Relation.NODE), "adding or removing"),
        (lambda: step(relation=Relation.LOCAL_GRAPH), "adding or removing"),
        (lambda: entry("pure", epsilon=1.0, sample_rate=0.1), "Gaussian noise only"),
        (lambda: step(steps=0), "steps"),
        (lambda: step(q=0.0), "sample_rate"),
        (lambda: step(sigma=-1.0), "negative"),
        (lambda: step(sigma=math.nan), "negative"),
        (lambda: entry("exponential"), "unknown mechanism"),
    ],
)
def test_entries_that_no_accountant_covers_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_non_private_reads_make_the_total_infinite_and_say_why():
    ledger = ledger_of(
        step(), entry("non_private", name="early stopping", proof="reads validation edges")
    )
    assert (ledger.epsilon(1e-5), ledger.delta(100.0)) == (math.inf, 1.0)
    assert ledger.headline(1e-5)[0] == math.inf
    assert ledger.reasons == ["early stopping: reads validation edges"]
    ledger = ledger_of(step(sigma=0.0))
    assert (ledger.epsilon(1e-5), ledger.steps) == (math.inf, 1)
    assert ledger.reasons == ["critic: gaussian 0 protects nothing"]
    assert ledger_of(step()).reasons == []


def test_infinite_budget_refuses_nothing():
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(math.inf, 1e-5)
    ledger.spend(entry("non_private"))
    ledger.budget = Budget(100.0, 1e-5)
    with pytest.raises(PrivacyBudgetExceeded, match="budget"):
        ledger.spend(step())


def test_journal_is_written_before_booking_and_replays(tmp_path, monkeypatch):
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.journal = tmp_path / "ledger.jsonl"
    ledger.spend(COUNT)
    book = ledger._book

    def check_then_book(item):
        assert json.loads(ledger.journal.read_text().splitlines()[-1]) == item.to_dict()
        book(item)

    monkeypatch.setattr(ledger, "_book", check_then_book)
    for _ in range(5):
        ledger.spend(step())
    ledger.spend(step(name="check"))
    assert PrivacyLedger.replay(ledger.journal) == ledger.state_dict()

    ledger.budget = Budget(1e-3, 1e-9)
    before = ledger.journal.read_text()
    with pytest.raises(PrivacyBudgetExceeded):
        ledger.spend(step())
    assert ledger.journal.read_text() == before


def test_nothing_is_booked_when_the_journal_cannot_be_written(tmp_path):
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.journal = tmp_path / "missing" / "ledger.jsonl"
    with pytest.raises(FileNotFoundError):
        ledger.spend(step())
    assert ledger.entries == []


def test_new_journal_starts_with_what_was_booked_before(tmp_path):
    ledger = ledger_of(COUNT, step(steps=7))
    ledger.journal = tmp_path / "ledger.jsonl"
    ledger.spend(step())
    assert PrivacyLedger.replay(ledger.journal) == ledger.state_dict()


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_line_torn_by_a_kill_is_left_out_and_overwritten(tmp_path, cut):
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.journal = tmp_path / "ledger.jsonl"
    ledger.spend(COUNT)
    ledger.spend(step())
    ledger.journal.write_bytes(ledger.journal.read_bytes()[:-cut])
    state = PrivacyLedger.replay(ledger.journal)
    assert state == ledger_of(COUNT).state_dict()
    ledger.load_state_dict(state)
    ledger.spend(step(steps=4))
    assert PrivacyLedger.replay(ledger.journal) == ledger_of(COUNT, step(steps=4)).state_dict()


def test_killed_run_catches_up_with_its_journal(tmp_path):
    killed = PrivacyLedger(Relation.EDGE)
    killed.journal = tmp_path / "ledger.jsonl"
    killed.spend(step(steps=100))
    checkpoint = killed.state_dict()
    killed.spend(step(steps=50))
    killed.spend(COUNT)
    resumed = PrivacyLedger(Relation.EDGE)
    resumed.load_state_dict(checkpoint)
    for _ in range(2):  # the second time there is nothing to catch up with
        resumed.catch_up(PrivacyLedger.replay(killed.journal))
        assert resumed.state_dict() == killed.state_dict()


def test_empty_journal_is_refused(tmp_path):
    (tmp_path / "ledger.jsonl").touch()
    with pytest.raises(ValueError, match="no release"):
        PrivacyLedger.replay(tmp_path / "ledger.jsonl")
