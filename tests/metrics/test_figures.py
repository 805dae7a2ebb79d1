"""Figures show the degrees, the communities and the hubs of graphs, and their tables."""

from datetime import datetime

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.errors import CommandError
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics.figures import MOST_BARS, Axis, Chart, Series, draw, plot
from lightning_dpg.metrics.pictures import (
    KINDS,
    MAX_SHOWN_NODES,
    GraphTransfers,
    community_order,
    pictures_of,
    row_pictures,
    transfer_pictures,
)

ORIGINAL = from_networkx(nx.karate_club_graph())
DOMAINS = {"age": ["young", "old"], "code $x_1$": [str(value) for value in range(MOST_BARS + 4)]}
ROWS = np.stack([np.arange(34) % 2, np.arange(34) % 20], axis=1)
DAY = 86_400


def test_adjacency_shows_communities_as_blocks_and_both_graphs_in_one_order():
    names = np.random.default_rng(0).permutation(12).tolist()
    cliques = nx.disjoint_union(nx.complete_graph(7), nx.complete_graph(5))
    edges = torch.tensor([[names[i], names[j]] for i, j in cliques.edges()])
    graph = make_graph(edges, 12)
    order = community_order(graph, seed=0)
    assert set(order[:7]) == set(names[:7])
    real, synthetic = pictures_of(graph, make_graph(edges[:1], 12))["adjacency"]()
    blocks = {(i, j) for i in range(12) for j in range(12) if i != j and (i < 7) == (j < 7)}
    assert {*map(tuple, np.argwhere(synthetic.pixels[..., 3]))} == blocks
    place = np.argsort(order)[edges[0]]
    assert {*map(tuple, np.argwhere(real.pixels[..., 3]))} == {tuple(place), tuple(place[::-1])}


def test_large_graphs_are_shown_by_their_hubs():
    count = MAX_SHOWN_NODES + 500
    path = torch.stack([torch.arange(count - 1), torch.arange(1, count)], dim=1)
    hub = torch.stack([torch.full((50,), count - 1), torch.arange(50)], dim=1)
    order = community_order(make_graph(torch.cat([path, hub]), count), seed=0)
    assert len(order) == len(set(order)) == MAX_SHOWN_NODES
    assert count - 1 in order


def test_figures_of_a_graph_without_edges(tmp_path):
    found = pictures_of(make_graph(torch.empty(0, 2, dtype=torch.long), 5))
    draw([each for pictures in found.values() for each in pictures()]).savefig(tmp_path / "a.png")


def test_columns_are_shares_of_nodes_and_the_rarest_of_many_values_are_left_out():
    bars = row_pictures(DOMAINS, {"real": ROWS, "synthetic": ROWS[:17]})["columns"]()
    assert [point[1] for point in bars[0].series[1].points] == pytest.approx([9 / 17, 8 / 17])
    figure = draw(bars)
    assert len(figure.axes[1].patches) == 2 * MOST_BARS
    assert "4 rarer" in figure.axes[1].get_xlabel() or "8 rarer" in figure.axes[1].get_xlabel()


def test_the_pairs_of_columns_that_depend_most_on_each_other_come_first():
    domains = {name: ["0", "1"] for name in "abc"}
    rows = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1]])
    titles = [each.title for each in row_pictures(domains, {"synthetic": rows})["pairs"]()]
    assert titles[0] == "a by c, synthetic" and len(titles) == 3


@pytest.mark.parametrize(("days", "points"), [(30, 30), (70, 10)])
def test_transfers_are_counted_by_day_or_by_week_by_hour_and_by_gap(days, points):
    times = np.arange(days) * DAY + 3600
    sent = GraphTransfers(np.tile([0, 1], (days, 1)), np.full(days, 250), times)
    found = transfer_pictures({"synthetic": sent}, "directed", 3, datetime(2026, 1, 1))
    assert [*found] == ["amounts", "days", "hours", "gaps"]
    amounts, money = found["amounts"]()
    assert amounts.series[0].points == [(2.5, days)] and money.series[0].points == [(2.5 * days, 2)]
    by_day, pairs = found["days"]()
    assert [count for _, count in by_day.series[0].points] == [days // points] * points
    assert sum(count for _, count in pairs.series[0].points) == 1
    (hours,) = found["hours"]()
    assert sum(count for _, count in hours.series[0].points) == days
    assert hours.series[0].points[1][1] > 0  # Monday at 1
    (gaps,) = found["gaps"]()
    assert gaps.series[0].points == [(2**16 / DAY, 1.0)]
    assert {*found} < {*KINDS}
    alone = GraphTransfers(sent.pairs, None, None)
    assert not transfer_pictures({"synthetic": alone}, "directed", 3, None)


def test_a_kind_that_is_not_there_is_refused_and_figures_have_no_ground():
    chart = Chart("t", Axis("x"), Axis("y"), [Series("a", [(1, 1), (2, 3)])])
    for found, why in (({"a": lambda: [chart]}, "it holds no b: plot a"), ({}, "no pictures")):
        with pytest.raises(CommandError, match=why):
            plot(found, "b", "it")
    assert plot({"a": lambda: [chart]}, None, "it").get_facecolor()[3] == 0
