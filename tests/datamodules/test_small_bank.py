"""The generated bank has what methods of amounts and times are to find."""

import numpy as np
import pytest

from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.small_bank import small_bank
from lightning_dpg.errors import Refusal
from lightning_dpg.interfaces import AttributedGraphRecords


def read(columns, **options):
    data = EdgeListDataModule("small_bank", columns=columns, **options)
    data.setup("fit")
    return data


def test_it_is_the_same_each_time_and_no_transfer_is_left_out():
    bank, again = small_bank(), small_bank()
    assert sorted(bank.edges(data="at")) == sorted(again.edges(data="at"))
    records = read({"weight": "amount", "time": "at"}).records
    assert len(records.transfers.pairs) == bank.number_of_edges()
    assert records.num_nodes == 300
    total = sum(min(round(amount * 100), 50_000) for *_, amount in bank.edges(data="amount"))
    assert int(records.transfers.amounts.sum()) == total


def test_amounts_grow_with_degrees_and_have_a_heavy_tail():
    data = read({"weight": "amount"})
    found = data.records.transfers
    degrees = data.graph.edge_index[0].bincount(minlength=300).double()
    partners = degrees[found.pairs].log().mean(1).numpy()
    assert np.corrcoef(partners, np.log(found.amounts.numpy()))[0, 1] > 0.25
    amounts = [amount for *_, amount in small_bank().edges(data="amount")]
    assert max(amounts) > 20 * np.median(amounts)
    assert 0.005 < np.mean(np.array(amounts) > 500) < 0.03


def test_times_have_a_week_replies_and_bursts():
    found = read({"time": "at"}).records.transfers
    hours, days = found.times // 3600 % 24, (found.times // 86_400 + 3) % 7  # a Thursday is first
    assert ((hours >= 8) & (hours < 18)).double().mean() > 0.6
    assert (days >= 5).double().mean() < 0.12 < 2 / 7
    keys = found.pairs.sort(1).values @ found.pairs.new_tensor([300, 1])
    same = keys[1:] == keys[:-1]
    gaps = (found.times[1:] - found.times[:-1])[same]
    assert (gaps < 86_400).double().mean() > 0.4 < (gaps > 7 * 86_400).double().mean() + 0.1
    replies = (found.pairs[1:, 0] != found.pairs[:-1, 0])[same]
    assert replies.double().mean() == pytest.approx(1 / 3, abs=0.03)


def test_customers_pay_within_their_region_and_near_their_age():
    domains = {"age": [18, 30, 45, 60, 75, 100], "region": ["north", "south", "east", "west"]}
    nodes = {
        "attributes": "from_graph",
        "private_columns": "age,region",
        "domains": domains,
        "names": "ids",
    }
    columns = {"weight": "amount", "time": "at"}
    records = read(columns, nodes=nodes).records
    rows, edges = records.private_columns.values, records.edges
    assert (rows < rows.new_tensor([5, 4])).all()
    shares = rows[:, 1].bincount().double() / 300
    same = (rows[edges, 1][:, 0] == rows[edges, 1][:, 1]).double().mean()
    assert same > 1.5 * (shares**2).sum()
    assert abs(rows[edges, 0].diff()).double().mean() < 1
    assert records.transfers is not None
    public = read(columns, nodes={"attributes": "from_graph"}).records
    assert isinstance(public, AttributedGraphRecords)
    assert len(public.attributes) == 300


def test_kinds_and_settings():
    assert read({}).records.transfers is None
    directed = read({"weight": "amount"}, kind="directed").records
    assert len(directed.edges) > len(read({}).records.edges) == 900
    assert set(map(tuple, directed.transfers.pairs.tolist())) == set(
        map(tuple, directed.edges.tolist())
    )
    bounds = read({"weight": "amount", "weight_max": 20}).records.transfers.bounds
    assert bounds == (20, None)
    with pytest.raises(Refusal, match="no column 'eur'"):
        read({"weight": "eur"})
