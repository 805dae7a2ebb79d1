"""Attributed with transfers: its ledger, its noise, what it draws and what it refuses."""

import math

import networkx as nx
import numpy as np
import pytest
import torch

import lightning_dpg as dpg
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.drawn_tables import transfers_of
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.graph.transfer_counts import (
    amount_borders,
    count_days,
    window_of,
)
from lightning_dpg.interfaces import TransferBounds
from lightning_dpg.main import main
from lightning_dpg.methods import Attributed
from lightning_dpg.methods.single_graph.protected_unit import counted as counted_of
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Relation
from tests.training import quiet_trainer
from tests.transfers import BOUNDS, LENGTH, WINDOW, TransferDataModule

GRAPH = nx.gnm_random_graph(60, 240, seed=0)
AMOUNTS, TIMES = TransferBounds(1000.0, None), TransferBounds(None, WINDOW)
DATES = "2022-01-03,2022-01-30"


def data(bounds=BOUNDS, graph=GRAPH, **settings):
    return TransferDataModule(from_networkx(graph), bounds=bounds, **settings)


def plan(bounds, epsilon=1.0, **settings):
    has_window = bounds.window is not None
    method = Attributed(
        60,
        "erdos_renyi",
        weight_max=bounds.weight_max,
        time_window=has_window * DATES or None,
        **settings,
    )
    return method.plan(Budget(epsilon, 0.0), 1)


def listed(entries):
    return [(each.key, each.sensitivity, pytest.approx(each.event.epsilon)) for each in entries]


C = 100_000  # units


def test_without_times_a_relation_is_one_amount():
    entries = plan(AMOUNTS)
    assert listed(entries) == [
        ("num_edges", 1, 0.6),
        ("amounts", 1, 0.08),
        ("amount_sums", C, 0.16),
        ("strengths", 4, 0.16),
    ]
    assert {each.relation for each in entries} == {Relation.EDGE}
    assert entries[-1].record == "undirected edge with all its transfers and their amounts"


def test_with_times_the_first_transfers_of_a_relation_count():
    entries = plan(BOUNDS, max_transfers=5)
    assert listed(entries) == [
        ("num_edges", 1, 0.5),
        ("pair_numbers", 1, 0.25 * 0.15),
        ("amounts", 5, 0.05),
        ("amount_sums", 5 * C, 0.1),
        ("strengths", 4, 0.1),
        ("days", 5, 0.25 * 0.85 * 0.25),
        ("hours", 5, 0.25 * 0.85 * 0.15),
        ("gaps", 4, 0.25 * 0.85 * 0.35),
        ("new_pairs", 1, 0.25 * 0.85 * 0.25),
    ]
    assert entries[-1].record == "undirected edge with all its transfers, amounts and times"
    assert entries[-1].public == {"transfers of a pair": 5}


def test_under_one_transfer_all_of_them_count():
    entries = plan(BOUNDS, unit="transfer")
    assert [(each.key, each.sensitivity) for each in entries] == [
        ("num_edges", 1),
        ("pair_numbers", 2),
        ("amounts", 1),
        ("amount_sums", C),
        ("strengths", 4),
        ("days", 1),
        ("hours", 1),
        ("gaps", 3),
        ("new_pairs", 2),
    ]
    assert {each.relation for each in entries} == {Relation.TRANSFER}
    assert {each.record for each in entries} == {"transfer with its amount and time"}
    assert entries[0].public == {"proved for": "undirected edge"}
    assert math.fsum(each.event.epsilon for each in entries) == pytest.approx(1)
    several = plan(AMOUNTS, unit="transfer")
    assert listed(several)[1] == ("pair_numbers", 2, pytest.approx(0.4 * 0.15))


def test_a_read_of_rows_protects_no_transfer():
    method = Attributed(20, domains={"age": ["a", "b"]}, weight_max=1.0, unit="transfer")
    method.ledger.beside[Relation.ATTRIBUTES] = Budget(1.0, 0.0)
    reads = {each.key: each for each in method.plan(Budget(1.0, 0.0), 1)}
    assert reads["column_mixing"].relation is Relation.TRANSFER
    assert reads["column_mixing_rows"].relation is Relation.ATTRIBUTES
    with pytest.raises(Refusal, match="one edge only"):
        reads["row_tables"].by_transfer()


@pytest.fixture(scope="module")
def exact():
    """A release without noise, which shows what the post-processing does."""
    return dpg.fit(data(), "attributed", epsilon=math.inf, unit="transfer")


def test_transfers_are_drawn_on_edges_within_their_bounds(exact):
    graph = exact.sample(seed=0)
    drawn, edges = transfers_of(graph), space_of(graph).edges(graph).tolist()
    pairs = drawn.pairs.sort(1).values.tolist()
    assert {tuple(pair) for pair in pairs} == {
        tuple(edge) for edge in edges
    }  # each has one or more
    assert drawn.first_day == WINDOW[0]
    assert 0 <= drawn.times.min() and drawn.times.max() < LENGTH
    assert 0 <= drawn.amounts.min() and drawn.amounts.max() <= C
    again = transfers_of(exact.sample(seed=0))
    assert torch.equal(drawn.times, again.times) and torch.equal(drawn.amounts, again.amounts)
    assert not torch.equal(drawn.amounts[:50], transfers_of(exact.sample(seed=1)).amounts[:50])


def test_without_noise_totals_and_days_are_those_of_the_data(exact):
    real, drawn = data(), transfers_of(exact.sample(seed=0))
    real.setup("fit")
    transfers = real.records.transfers
    assert len(drawn.pairs) == pytest.approx(len(transfers.pairs), rel=0.05)
    assert int(drawn.amounts.sum()) == pytest.approx(int(transfers.amounts.sum()), rel=0.01)
    held = transfers._replace(pairs=drawn.pairs, amounts=drawn.amounts, times=drawn.times)
    window = window_of(*WINDOW)
    days = [count_days(counted_of(each, "undirected", None), window) for each in (held, transfers)]
    ours, theirs = (each / each.sum() for each in days)
    assert np.abs(ours - theirs).sum() / 2 < 0.03


@pytest.mark.parametrize("unit", ["relation", "transfer"])
def test_each_read_gets_the_noise_of_its_price(unit):
    """Around counts that are 0 for all but one edge of the graph."""
    real = data(graph=nx.path_graph(60), number=lambda u, v: int(u == 3))
    method, noisy = Attributed(structure="erdos_renyi", unit=unit), {}
    method.ledger.observer = lambda key, value: noisy.setdefault(key, value)
    quiet_trainer(PrivacyAccountant(1.0, 0.0)).fit(method, real)
    reads = {each.key: each for each in method.ledger.entries}
    for key in ("amounts", "strengths", "days", "hours", "gaps", "new_pairs"):
        size, scale = noisy[key].numel(), reads[key].sensitivity / reads[key].event.epsilon
        found = noisy[key].double().abs().mean()
        assert found == pytest.approx(scale, rel=5 / math.sqrt(size)), key
    assert noisy["hours"].shape == (168,) and noisy["days"].shape == (1,)  # days would be noise
    assert method.reading_note.endswith("Days were counted in bins of 28 days.")
    assert noisy["amounts"].shape[-1] == len(amount_borders(1000.0))


def test_the_sentence_names_the_unit():
    relation = dpg.fit(data(AMOUNTS), "attributed", epsilon=2.0, structure="chung_lu")
    assert "add/remove one undirected edge with all its transfers and their amounts" in (
        relation.guarantee
    )
    transfer = dpg.fit(data(TIMES), "attributed", epsilon=2.0, unit="transfer")
    assert "transfer-level (2, 0)-DP (add/remove one transfer with its amount and time)" in (
        transfer.guarantee
    )


def test_rows_and_transfers_share_one_run():
    graph = nx.planted_partition_graph(2, 30, 0.3, 0.02, seed=0)
    nodes = Nodes(attributes="from_graph", private_columns="block", domains={"block": ["0", "1"]})
    real = TransferDataModule(graph, nodes=nodes)
    release = dpg.fit(real, "attributed", epsilon=2.0, row_epsilon=1.0, unit="transfer")
    drawn = release.sample(seed=0)
    assert transfers_of(drawn) is not None and drawn.drawn_rows.values.shape == (60, 1)
    assert "together with k transfers of that node at epsilon 1 + 2 k" in release.guarantee


@pytest.mark.parametrize("kind", ["directed", "bipartite"])
def test_other_kinds_have_transfers_by_a_structure_that_learns_them(kind):
    graph = nx.bipartite.random_graph(20, 30, 0.2, seed=0)
    source = nx.DiGraph(graph.edges) if kind == "directed" else graph
    real = TransferDataModule(source, kind=kind)
    drawn = dpg.fit(real, "attributed", epsilon=4.0, structure="chung_lu").sample(seed=0)
    pairs = {tuple(pair) for pair in transfers_of(drawn).pairs.tolist()}
    assert pairs == {tuple(pair) for pair in space_of(drawn).edges(drawn).tolist()}
    with pytest.raises(CommandError, match="undirected graphs by the structure bter"):
        dpg.fit(real, "attributed", epsilon=4.0)


def refused(real, **settings):
    with pytest.raises(CommandError) as refusal:
        dpg.fit(real, "attributed", **{"epsilon": 1.0} | settings)
    assert len(str(refusal.value).splitlines()) <= 5
    return str(refusal.value)


def test_what_it_cannot_learn_is_refused():
    assert "leave weight_max out" in refused(data(), weight_max=5.0)
    assert "leave time_window out" in refused(data(AMOUNTS), time_window=DATES)
    assert "unit transfer protects one transfer" in refused(
        EdgeListDataModule(
            "planted_partition",
            nodes=Nodes(
                attributes="from_graph", private_columns="block", domains={"block": list("0123")}
            ),
        ),
        unit="transfer",
        row_epsilon=1.0,
    )
    assert "row_epsilon" in refused(data(), row_epsilon=1.0)
    assert "from 2 to" in refused(data(), max_transfers=1)
    assert "less than 1" in refused(data(), amount_share=0.6, time_share=0.5)


def test_a_graph_without_edges_has_no_transfers(exact):
    method, none = exact.method, torch.empty(0, 2, dtype=torch.long)
    rng = np.random.default_rng(0)
    drawn = method.transfers.draw(none, method.space, method.facts, 0, rng)
    assert drawn.pairs.shape == (0, 2) and len(drawn.times) == len(drawn.amounts) == 0


def test_a_release_is_verified_attacked_audited_and_drawn_from_again(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    setting = ["--model.init_args.unit", "transfer"]
    assert main(["fit", "--config", "transfers", "--out", "run", *setting]) == 0
    for command in ("verify", "evaluate", "attack"):
        assert main([command, "run"]) == 0
    assert main(["generate", "run", "--num-graphs", "1", "--out", "more"]) == 0
    (drawn,) = (tmp_path / "more").glob("transfers-*.csv")
    assert drawn.read_text().startswith("source,target,amount,time\n")
    capsys.readouterr()
    options = ["--canaries", "20", "--view", "white_box", "--no-book", "--out", "audit"]
    assert main(["audit", "--config", "transfers", *options, *setting]) == 0
    assert "not refuted" in capsys.readouterr().out
    (checkpoint,) = tmp_path.glob("run/checkpoints/*.ckpt")
    again = ["fit", "--config", "transfers", "--ckpt_path", str(checkpoint), "--out", "again"]
    assert main([*again, *setting]) == 0
    before, after = (
        transfers_of(dpg.open_release(tmp_path / name).sample(0)) for name in ("run", "again")
    )
    assert torch.equal(before.times, after.times) and torch.equal(before.amounts, after.amounts)
