"""Transfers of records: their nodes, their order, and what a method or a book sees of them."""

import datetime as dt
import math
import os
import random
from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest
import torch

import lightning_dpg as dpg
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.errors import Refusal
from lightning_dpg.interfaces import HoldsTransfers, TransferBounds
from lightning_dpg.main import main
from lightning_dpg.methods import BTER
from lightning_dpg.preflight.data import check_data

pytestmark = pytest.mark.usefixtures("ids_in_order")

WINDOW = (dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 31))
COLUMNS = {
    "weight": "amount",
    "weight_max": 50,
    "time": "at",
    "time_window": "2026-01-01,2026-01-31",
}
NAMES = [f"n{number}" for number in range(12)]


def table_of(seed=0, rows=60, names=NAMES):
    """Random rows; some are loops, above the bound, outside of the window or without an amount."""
    draw = random.Random(seed)
    cells = [
        (
            *draw.choices(names, k=2),
            draw.choice([None, 0, 12.34, 7, 99]),
            dt.datetime(2025, 12, 25) + dt.timedelta(hours=draw.randrange(24 * 50)),
        )
        for _ in range(rows)
    ]
    return pd.DataFrame(cells, columns=["payer", "payee", "amount", "at"])


def by_hand(table):
    """Payer, payee, cents and seconds of the transfers in a table, in no order."""
    return sorted(
        (payer, payee, min(round(amount * 100), 5000), int((at - WINDOW[0]).total_seconds()))
        for payer, payee, amount, at in table.itertuples(index=False)
        if payer != payee
        and not math.isnan(amount)
        and WINDOW[0] <= at < WINDOW[1] + dt.timedelta(1)
    )


def read(table, columns=COLUMNS, **options):
    undirected = options.get("kind", "undirected") == "undirected"
    data = EdgeListDataModule(table, undirected=undirected, columns=columns, **options)
    data.setup("fit")
    return data


def rows_of(data, names=None):
    found, names = data.records.transfers, names or data.records.node_names
    ends = [[names[node] for node in pair] for pair in found.pairs.tolist()]
    cells = zip(found.amounts.tolist(), found.times.tolist(), strict=True)
    return [(*pair, *each) for pair, each in zip(ends, cells, strict=True)]


def check_order(transfers):
    keys = [
        (min(pair), max(pair), time, pair[0], amount)
        for pair, amount, time in zip(
            *(part.tolist() for part in (transfers.pairs, transfers.amounts, transfers.times)),
            strict=True,
        )
    ]
    assert keys == sorted(keys)


@pytest.mark.parametrize("kind", ["undirected", "directed"])
def test_each_transfer_is_on_an_edge_and_each_edge_has_one(kind):
    for seed in range(10):
        table = table_of(seed)
        data = read(table, kind=kind)
        records = data.records
        assert isinstance(records, HoldsTransfers)
        assert records.transfers.bounds == TransferBounds(50, WINDOW)
        assert sorted(rows_of(data)) == by_hand(table)
        check_order(records.transfers)
        pairs = {tuple(p) if kind == "directed" else tuple(sorted(p))
                 for p in records.transfers.pairs.tolist()}  # fmt: skip
        assert pairs == set(map(tuple, records.edges.tolist()))
    assert "the largest amount of a transfer that counts, 50" in data.assumptions
    assert "the days of the transfers, 2026-01-01 to 2026-01-31" in data.assumptions


def test_a_row_less_changes_no_other_row():
    table = table_of(rows=40)
    whole = Counter(rows_of(read(table, nodes=NAMES)))
    lost = Counter()
    for row in table.index:
        rest = Counter(rows_of(read(table.drop(index=row), nodes=NAMES)))
        assert not rest - whole
        lost += whole - rest
    assert lost == whole
    assert 0 < whole.total() < len(table)


def test_ends_of_a_bipartite_graph_are_a_left_and_a_right_node():
    rows = [("bank", "ann", 1, "2026-01-02"), ("ann", "shop", 2, "2026-01-03")]
    table = pd.DataFrame(rows, columns=["payer", "payee", "amount", "at"])
    nodes = Nodes(left=["ann", "bob"], right=["bank", "shop"])
    data = read(table, kind="bipartite", nodes=nodes)
    assert rows_of(data) == [("ann", "bank", 100, 86_400), ("ann", "shop", 200, 2 * 86_400)]
    own = read(table[1:], kind="bipartite")
    assert rows_of(own) == [("ann", "shop", 200, 2 * 86_400)]


def test_public_nodes_may_lack_the_ids_of_rows_that_are_no_transfer(tmp_path):
    table = table_of(rows=30, names=NAMES[:6])
    late = pd.DataFrame([("x", "y", 1, dt.datetime(2027, 1, 1))], columns=table.columns)
    nodes = [*NAMES[:6], "z"]
    pd.concat([table, late]).to_csv(tmp_path / "pay.csv", index=False)
    for source in (pd.concat([table, late]), tmp_path / "pay.csv"):
        data = read(source, nodes=nodes)
        assert data.records.node_names == nodes
        assert sorted(rows_of(data)) == by_hand(table)
    with pytest.raises(Refusal, match="ids of nodes"):
        read(tmp_path / "pay.csv", nodes=nodes[1:])


def test_numbers_in_place_of_names_are_those_of_the_key():
    table = table_of()
    data = read(table, nodes=Nodes(names="numbers"))
    assert data.records.node_names == [str(number) for number in range(12)]
    assert sorted(rows_of(data, data.graph.node_names)) == by_hand(table)
    check_order(data.records.transfers)
    resumed = EdgeListDataModule(
        table, undirected=True, columns=COLUMNS, nodes=Nodes(names="numbers")
    )
    resumed.load_state_dict(data.state_dict())
    resumed.setup("fit")
    torch.testing.assert_close(resumed.records.transfers.pairs, data.records.transfers.pairs)


def test_transfers_of_nodes_outside_of_the_largest_component_go():
    table = pd.concat([table_of(), table_of(1, 5, ["x", "y"]), table_of(2, 5, ["a", "b"])])
    data = read(table, largest_component=True)
    inside = table["payer"].isin(NAMES)
    assert sorted(rows_of(data)) == by_hand(table[inside])
    check_order(data.records.transfers)


@pytest.mark.parametrize("kind", ["undirected", "directed"])
def test_transfers_of_held_out_edges_are_held_out(kind):
    table = table_of(rows=120)
    data = read(table, kind=kind, val_fraction=0.2, test_fraction=0.2)
    whole = read(table, kind=kind)
    learned = {tuple(NAMES.index(n) for n in row[:2]) for row in rows_of(data)}
    edges = set(map(tuple, data.edges.tolist()))
    turned = set() if kind == "directed" else {(j, i) for i, j in edges}
    assert learned <= edges | turned
    kept = [row for row in rows_of(whole)
            if tuple(NAMES.index(n) for n in row[:2]) in edges | turned]  # fmt: skip
    assert rows_of(data) == kept
    assert 0 < len(kept) < len(rows_of(whole))


@pytest.mark.parametrize("kind", ["undirected", "directed"])
def test_a_book_recognizes_the_same_rows_and_no_others(kind):
    table = table_of()
    first = read(table, kind=kind).identity()
    assert read(table.sample(frac=1, random_state=0), kind=kind).identity() == first
    assert read(table, kind=kind, nodes=Nodes(names="numbers")).identity().edges == first.edges
    assert read(table, COLUMNS | {"weight_max": 20}, kind=kind).identity() == first
    isolated = read(table, kind=kind, nodes=[*NAMES, "a"]).identity()
    assert isolated.edges == first.edges and isolated.nodes != first.nodes

    kept = table.index[(table["amount"] > 0) & (table["payer"] != table["payee"])
                       & (table["at"] >= WINDOW[0]) & (table["at"] <= WINDOW[1])]  # fmt: skip
    row, others = kept[0], []
    for change in ("amount", "at", "again", "turned"):
        other = table.copy()
        if change == "amount":
            other.loc[row, "amount"] += 0.01
        elif change == "at":
            other.loc[row, "at"] += dt.timedelta(seconds=1)
        elif change == "turned":
            other.loc[row, ["payer", "payee"]] = table.loc[row, ["payee", "payer"]].tolist()
        else:
            other = pd.concat([table, table.loc[[row]]])
        others.append(read(other, kind=kind).identity().edges)
    amounts = read(table, {"weight": "amount", "weight_max": 50}, kind=kind).identity().edges
    assert len({first.edges, amounts, *others}) == 6


def test_the_content_without_amounts_and_times_is_as_before():
    table = pd.DataFrame([("a", "b", 3), ("b", "c", 4)], columns=["payer", "payee", "amount"])
    plain = read(table, {}).identity()
    pairs = b"".join(number.to_bytes(8, "little") for number in (2, 0, 1, 1, 2))
    assert plain.edges == b'["a", "b", "c"]\0' + pairs
    assert plain == EdgeListDataModule([("a", "b"), ("b", "c")]).identity()
    assert read(table, {"weight": "amount", "weight_max": 5}).identity().edges != plain.edges


def test_records_hold_none_unless_columns_are_named():
    assert read(table_of(), {}).records.transfers is None


def test_a_method_that_does_not_protect_them_refuses_them():
    class Learns(BTER):
        capabilities = replace(BTER.capabilities, learns_transfers=True)

    data = read(table_of())
    check_data(Learns, data)
    with pytest.raises(Refusal, match="amounts and times of transfers") as refusal:
        dpg.fit(data, "bter", epsilon=1)
    assert "no columns.weight and no columns.time" in str(refusal.value)
    times = read(table_of(), {"time": "at", "time_window": "2026-01-01,2026-01-31"})
    with pytest.raises(Refusal, match="the data have times of transfers"):
        dpg.fit(times, "bter", epsilon=1)


def test_sources_without_rows_are_refused():
    for source in ([("a", "b")], "karate", torch.eye(3).numpy()):
        with pytest.raises(Refusal, match="are for tables of edges"):
            read(source)


OPTIONS = ["--weight", "amount", "--weight-max", "50", "--time", "at",
           "--time-window", "2026-01-01,2026-01-31", "--undirected"]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        (
            "a,b,1,2026-01-01 10:00\nb,c,x,2026-01-01 10:00",
            OPTIONS,
            "line 3: a cell in column 'amount' is not",
        ),
        (
            "a,b,1,2026-01-01 10:00\nb,c,-3,2026-01-01 10:00",
            OPTIONS,
            "line 3: a negative amount in column",
        ),
        (
            "a,b,1,2026-01-01 10:00\nb,c,3,01/02/2026",
            OPTIONS,
            "line 3: a cell in column 'at' is no day",
        ),
        ("a,b,1,2026-01-01 10:00", OPTIONS[:2], "columns.weight_max is missing"),
        ("a,b,1,2026-01-01 10:00\nb,c,2,2026-01-02 10:00", OPTIONS, "does not protect them"),
    ],
)
def test_a_run_that_is_refused_spends_nothing_and_leaves_no_file(
    tmp_path, monkeypatch, capsys, rows, options, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pay.csv").write_text(f"payer,payee,amount,at\n{rows}\n")
    assert main(["fit", "pay.csv", "--method", "chung_lu", "--epsilon", "1", *options]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") <= 6
    assert os.listdir(tmp_path) == ["pay.csv"]
