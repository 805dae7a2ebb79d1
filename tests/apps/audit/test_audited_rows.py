"""Audits of rows: canaries attain the sensitivities, scores by hand, and noise that is off is caught."""

from functools import partial

import networkx as nx
import numpy as np
import pytest
import torch

import lightning_dpg as dpg
from lightning_dpg.apps.audit.audited_rows import RowAttacker
from lightning_dpg.apps.audit.canaries import plant_rows
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.edge_statistics import MIXING_UNIT, exact_mixing
from lightning_dpg.graph.rows import count_pairs
from lightning_dpg.methods import Attributed
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.sensitivity.private_columns import (
    mixing_row_sensitivity,
    row_table_sensitivity,
)
from tests.planting import plant

WEIGHT = 2


def people(columns=("age",), num_values=24, num_nodes=60):
    """Data of few edges and columns of many values, so that canaries share no cell."""
    graph = nx.path_graph(num_nodes)
    nx.set_node_attributes(graph, {v: dict.fromkeys(columns, "v0") for v in graph})
    values = [f"v{number}" for number in range(num_values)]
    domains = dict.fromkeys(columns, values)
    nodes = Nodes(attributes="from_graph", private_columns=list(columns), domains=domains)
    return EdgeListDataModule(graph, nodes=nodes)


def planted(count, **settings):
    data = people(**settings)
    data.setup("fit")
    return data, plant_rows(data, WEIGHT, count, torch.Generator().manual_seed(0))


audit = partial(
    dpg.audit,
    method="attributed",
    epsilon=1.0,
    relation="attributes",
    view="white_box",
    structure="erdos_renyi",
    max_weight=WEIGHT,
)


@pytest.mark.parametrize("num_values", [2, 24])
def test_each_canary_moves_the_reads_by_their_sensitivities(num_values):
    data, canaries = planted(3, columns=("age", "region"), num_values=num_values - 1)
    sizes, edges = [num_values] * 2, data.edges.numpy()
    degrees = np.bincount(edges.ravel(), minlength=60)
    rows, classes = canaries.known, np.zeros((60, 1), dtype=np.int64)
    for node, second in zip(canaries.nodes, canaries.second, strict=True):
        changed = rows.copy()
        changed[node] = second
        one, other = (exact_mixing(edges, degrees, each, sizes, WEIGHT) for each in (rows, changed))
        moved = np.abs(one - other).sum()
        assert moved == 2 * WEIGHT * 2 * MIXING_UNIT
        # The proof adds a unit for each cell that may be rounded.
        assert moved <= mixing_row_sensitivity(WEIGHT, sizes, MIXING_UNIT) <= moved * 1.1
        one, other = (
            count_pairs(np.hstack([classes, each]), [1, *sizes]) for each in (rows, changed)
        )
        assert np.abs(one - other).sum() == row_table_sensitivity(3)
    # The rows of a fit are the known ones, and the second ones where a coin says so.
    canaries.insert(data, np.array([True, False, False]))
    differs = (data.private_columns.values.numpy() != rows).all(axis=1)
    assert np.flatnonzero(differs).tolist() == [canaries.nodes[0]]


def test_scores_are_likelihood_ratios():
    data, canaries = planted(2)
    method = Attributed(60, "erdos_renyi", max_weight=WEIGHT, domains=data.private_columns.domains)
    method.accept_budget(Budget(1.0, 0.0), row_budget=Budget(1.0, 0.0))
    plan = {entry.key: entry for entry in method.plan(method.budget, 1)}
    method.ledger.entries = [plan["column_mixing"]]
    attacker = RowAttacker(method, data, canaries)
    degrees = np.bincount(data.edges.numpy().ravel(), minlength=60)
    noisy, expected = None, []
    for node, second in zip(canaries.nodes, canaries.second, strict=True):
        changed = canaries.known.copy()
        changed[node] = second
        one, other = (
            exact_mixing(data.edges.numpy(), degrees, each, [25], WEIGHT)
            for each in (canaries.known, changed)
        )
        if noisy is None:
            noisy = one + np.random.default_rng(0).integers(-3000, 3000, len(one))
        gap = np.abs(noisy - one).sum() - np.abs(noisy - other).sum()
        expected.append(gap / plan["column_mixing"].scale)
    attacker("column_mixing", torch.from_numpy(noisy))
    assert attacker.scores["column_mixing_rows"].tolist() == pytest.approx(expected)


def test_an_audit_of_rows_states_its_claim_and_finds_nothing():
    report = audit(people(), row_epsilon=1.0, canaries=8, runs=4, confidence=0.9999)
    assert not report.refuting and report.canaries == 32 and not report.unscored
    assert report.together.claimed_epsilon == 1.0
    assert (
        "rows of private columns" in str(report) and '"relation": "attributes"' in report.to_json()
    )
    # Without much noise coins are seen, and the claim allows it.
    loud = audit(people(), row_epsilon=60.0, canaries=11, runs=4)
    assert loud.together.epsilon_lower_bound > 0.5 and not loud.refuting


@pytest.mark.parametrize("key", ["row_tables", "column_mixing"])
def test_noise_that_is_off_is_caught(monkeypatch, key):
    plant(monkeypatch, 0, [key])
    assert audit(people(), row_epsilon=1.0, canaries=11, runs=4).refuting


def test_half_of_the_noise_is_caught(monkeypatch):
    """One of three audits refutes it."""
    plant(monkeypatch, 0.5)
    # Edges of little noise, so that the mixing has the noise that rows need.
    settings = {"epsilon": 60.0, "row_epsilon": 2.0, "table_share": 0.1}
    reports = (audit(people(), canaries=11, runs=40, **settings) for _ in range(3))
    assert any(report.refuting for report in reports)


def test_audits_of_rows_that_make_no_sense_are_refused():
    with pytest.raises(CommandError, match="white_box"):
        audit(people(), row_epsilon=1.0, view="black_box")
    with pytest.raises(CommandError, match="ChungLu draws no private columns"):
        dpg.audit("karate", "chung_lu", epsilon=1.0, relation="attributes", view="white_box")
    with pytest.raises(CommandError, match="21 canaries with their neighbors take 63 of 60 nodes"):
        audit(people(), row_epsilon=1.0, canaries=21)
    with pytest.raises(CommandError, match="relation must be edge or attributes, got 'rows'"):
        dpg.audit(people(), "attributed", epsilon=1.0, row_epsilon=1.0, relation="rows")
