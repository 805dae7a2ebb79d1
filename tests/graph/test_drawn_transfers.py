"""Drawn transfers as attributes of edges, as events and in files."""

import datetime as dt

import networkx as nx
import pandas as pd
import pytest
import torch
from torch_geometric.data import TemporalData
from torch_geometric.loader import TemporalDataLoader

from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.transfer_tables import read_transfers
from lightning_dpg.graph.drawn_tables import (
    DrawnTransfers,
    attach_transfers,
    edge_values,
    to_temporal,
    transfers_of,
)
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.pair_space import BipartitePairs, DirectedPairs
from lightning_dpg.methods import BTER
from lightning_dpg.release.graph_files import write_graph_files
from lightning_dpg.release.release import Release

DAY = dt.datetime(2026, 1, 1)
NAMES = ["a, b", "b", 'c"', "d"]
PAIRS = [[0, 1], [1, 0], [1, 0], [1, 2]]  # and the edge of 2 and 3 has none
AMOUNTS, TIMES = [1050, 300, 99_999_999_999, 0], [50, 3600, 40, 90_061]
TOTAL = {(0, 1): 1_000_000_013.49, (1, 2): 0.0, (2, 3): 0.0}


def transfers(amounts=AMOUNTS, times=TIMES):
    return DrawnTransfers(
        torch.tensor(PAIRS),
        None if amounts is None else torch.tensor(amounts),
        None if times is None else torch.tensor(times),
        None if times is None else DAY,
    )


def graph_of(drawn, names=NAMES):
    graph = make_graph(torch.tensor([[0, 1], [1, 2], [2, 3]]), 4, names)
    attach_transfers(graph, drawn)
    return graph


def test_both_directions_of_an_edge_have_its_total_and_its_first_time():
    graph = graph_of(transfers())
    assert graph.edge_index.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2]]
    total = torch.tensor([TOTAL[0, 1], TOTAL[0, 1], 0, 0, 0, 0])
    torch.testing.assert_close(graph.edge_attr, total[:, None])
    assert graph.edge_time.tolist() == [40, 40, 90_061, 90_061, -1, -1]
    assert transfers_of(graph).pairs.tolist() == PAIRS
    assert graph.validate()


def test_directions_of_a_directed_graph_have_their_own():
    graph = DirectedPairs(4).graph(torch.tensor([[0, 1], [1, 0], [1, 2], [2, 3]]))
    attach_transfers(graph, transfers())
    assert graph.edge_attr[:, 0].tolist() == [10.5, pytest.approx(1_000_000_002.99), 0, 0]
    assert graph.edge_time.tolist() == [50, 40, 90_061, -1]
    assert edge_values(graph)["amount"] == [10.5, 1_000_000_002.99, 0, 0]


def test_edges_of_a_bipartite_graph_may_be_paid_by_either_side():
    graph = BipartitePairs(4, 2).graph(torch.tensor([[0, 2], [1, 2], [1, 3]]))
    pairs = torch.tensor([[2, 0], [0, 2], [1, 3]])
    attach_transfers(graph, DrawnTransfers(pairs, torch.tensor([100, 50, 7]), None, None))
    assert edge_values(graph) == {"amount": [1.5, 0, 0.07]}
    assert "edge_time" not in graph


def test_a_transfer_without_an_edge_is_a_fault():
    with pytest.raises(ValueError, match="pairs must be edges"):
        graph_of(transfers()._replace(pairs=torch.tensor([[0, 1], [1, 0], [1, 0], [1, 3]])))
    graph = DirectedPairs(4).graph(torch.tensor([[0, 1], [1, 2], [2, 3]]))
    with pytest.raises(ValueError, match="pairs must be edges"):
        attach_transfers(graph, transfers())


def test_events_are_in_the_order_of_their_times():
    events = to_temporal(graph_of(transfers()))
    assert isinstance(events, TemporalData)
    assert list(zip(events.src.tolist(), events.dst.tolist(), events.t.tolist(), strict=True)) == [
        (1, 0, 40), (0, 1, 50), (1, 0, 3600), (1, 2, 90_061)]  # fmt: skip
    torch.testing.assert_close(events.msg[:, 0], torch.tensor([999_999_999.99, 10.5, 3, 0]))
    assert [len(batch) for batch in TemporalDataLoader(events, batch_size=3)] == [3, 1]
    assert to_temporal(graph_of(transfers(amounts=None))).msg.shape == (4, 0)
    with pytest.raises(ValueError, match="no drawn times"):
        to_temporal(graph_of(transfers(times=None)))


@pytest.mark.parametrize("formats", [["edges", "npz"], ["parquet"]])
@pytest.mark.parametrize("values", [(AMOUNTS, TIMES), (AMOUNTS, None), (None, TIMES)])
def test_tables_beside_a_graph_hold_the_same_transfers(tmp_path, formats, values):
    drawn = transfers(*values)
    paths = write_graph_files(graph_of(drawn), tmp_path, 3, formats)
    suffix = "parquet" if "parquet" in formats else "csv"
    assert [path.name for path in paths[len(formats) :]] == [f"transfers-3.{suffix}"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    again = read_transfers(paths[-1], NAMES, drawn.first_day)
    for one, other in zip(again, drawn, strict=True):
        torch.testing.assert_close(one, other) if isinstance(one, torch.Tensor) else None
        assert type(one) is type(other)
    # The reader of private tables reads the synthetic one.
    columns = {"source": "source", "target": "target"}
    if drawn.amounts is not None:
        columns |= {"weight": "amount", "weight_max": 1e9}
    if drawn.times is not None:
        columns |= {"time": "time", "time_window": "2026-01-01,2026-01-02"}
    data = EdgeListDataModule(paths[-1], undirected=True, nodes=NAMES, columns=columns)
    data.setup("fit")
    found, order = data.records.transfers, [2, 0, 1, 3] if drawn.times is not None else None
    assert sorted(found.pairs.tolist()) == sorted(PAIRS)
    if order and drawn.amounts is not None:
        assert found.amounts.tolist() == [AMOUNTS[place] for place in order]
    if order:
        assert found.times.tolist() == [TIMES[place] for place in order]


def test_the_table_has_two_decimals_and_iso_times(tmp_path):
    path = write_graph_files(graph_of(transfers()), tmp_path, 0, ["edges"])[-1]
    assert path.read_text() == (
        "source,target,amount,time\n"
        '"a, b",b,10.50,2026-01-01T00:00:50\n'
        'b,"a, b",3.00,2026-01-01T01:00:00\n'
        'b,"a, b",999999999.99,2026-01-01T00:00:40\n'
        'b,"c""",0.00,2026-01-02T01:01:01\n'
    )
    with pytest.raises(CommandError, match="no table of drawn transfers"):
        read_transfers(path, NAMES[1:], DAY)


def test_edges_of_graphml_have_total_and_first_time(tmp_path):
    write_graph_files(graph_of(transfers()), tmp_path, 0, ["graphml"])
    read = nx.read_graphml(tmp_path / "synthetic-0.graphml")
    assert {frozenset(ends): values for *ends, values in read.edges(data=True)} == {
        frozenset(["a, b", "b"]): {"amount": TOTAL[0, 1], "first_time": "2026-01-01T00:00:40"},
        frozenset(["b", 'c"']): {"amount": 0.0, "first_time": "2026-01-02T01:01:01"},
        frozenset(['c"', "d"]): {"amount": 0.0},
    }


def test_a_release_hands_them_to_pandas_and_networkx():
    class Bank(BTER):
        def sample(self, generator):
            return graph_of(transfers())

    release = Release(Bank(), {})
    table = release.transfers(seed=1)
    assert isinstance(table, pd.DataFrame)
    assert table["source"].tolist() == ["a, b", "b", "b", "b"]
    assert table["amount"].tolist() == [10.5, 3.0, 999_999_999.99, 0.0]
    assert table["time"].iloc[3] == pd.Timestamp("2026-01-02 01:01:01")
    edges = release.to_networkx().edges
    assert edges["a, b", "b"] == {"amount": TOTAL[0, 1], "first_time": "2026-01-01T00:00:40"}
    assert edges['c"', "d"] == {"amount": 0.0}

    class Plain(BTER):
        def sample(self, generator):
            return make_graph(torch.tensor([[0, 1]]), 2)

    with pytest.raises(CommandError, match="draws no transfers"):
        Release(Plain(), {}).transfers()
