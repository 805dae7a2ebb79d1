"""Figures of drawn transfers: by hand, from a run, and from a data module in Python."""

import json
import math

import networkx as nx
import numpy as np
import pytest

import lightning_dpg as dpg
from lightning_dpg.evaluation.transfer_quality import (
    NOT_COMPARED,
    GraphTransfers,
    transfer_figures,
)
from lightning_dpg.graph.transfer_counts import Window
from lightning_dpg.main import main
from tests.transfers import TransferDataModule

DAY = 86_400
REAL = GraphTransfers(
    np.array([(0, 1), (1, 0), (0, 2), (3, 4)]),
    np.array([500, 500, 100, 300]),
    np.array([0, 60, DAY, 2 * DAY]),
)


def figures(synthetic, **settings):
    given = {"kind": "undirected", "num_nodes": 5, "window": Window(3, 0), "has_names": True}
    found = transfer_figures(REAL, synthetic, **(given | settings))
    return {each.figure: each for each in found}


def test_the_same_transfers_have_no_error():
    found = figures(REAL)
    assert [each.error for each in found.values()] == [0] * 11
    assert found["transfers"].real == 4 and found["money"].real == 14
    assert found["top_tenth_share"].real == pytest.approx(1100 / 2800)


def test_errors_by_hand():
    later = np.array([DAY, DAY + 60, DAY, 2 * DAY])
    found = figures(REAL._replace(amounts=REAL.amounts * 2, times=later))
    assert found["money"].error == 1 and found["strengths"].error > 0
    assert found["days"].error == 0.5  # two of four transfers
    assert found["growth"].error == 0.5
    assert found["new_pairs"].error == pytest.approx(1 / 3)
    assert found["gaps"].error == 0
    assert found["hours"].error == 0.5
    assert "top_tenth_found" not in figures(REAL, has_names=False)
    amounts_alone = figures(REAL._replace(times=None), window=None)
    assert [*amounts_alone] == [
        "transfers",
        "money",
        "strengths",
        "top_tenth_share",
        "top_tenth_found",
    ]
    none = GraphTransfers(REAL.pairs[:0], REAL.amounts[:0], REAL.times[:0])
    assert math.isnan(figures(none)["days"].error)


def test_a_data_module_is_compared_and_a_graph_is_not():
    graph = nx.gnm_random_graph(40, 120, seed=0)
    data = TransferDataModule(graph)
    data.setup("fit")
    release = dpg.fit(data, "attributed", epsilon=8.0, unit="transfer")
    found = dpg.evaluate(data, release)
    assert "days" in str(found) and "without ties" in str(found)
    frame = found.to_dataframe()
    assert (frame.group == "transfers").sum() == 11
    other = dpg.evaluate(graph, release)
    assert NOT_COMPARED[0] in str(other)


def test_a_run_is_compared_by_its_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    loud = ["--privacy.epsilon", "8"]
    assert main(["fit", "--config", "transfers", "--out", "run", *loud]) == 0
    assert main(["evaluate", "run", "--html", "page.html"]) == 0
    assert '<h2 id="transfers">Transfers</h2>' in (tmp_path / "page.html").read_text()
    capsys.readouterr()
    assert main(["evaluate", "run", "--json"]) == 0
    (graph,) = json.loads(capsys.readouterr().out)["graphs"]
    found = {each["figure"]: each for each in graph["transfers"]}
    assert found["days"]["error"] < 0.3 and found["transfers"]["real"] > 1000
