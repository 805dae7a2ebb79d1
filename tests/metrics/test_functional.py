"""Graph statistics equal networkx, published digits and counts by hand."""

import gzip
import math

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics import functional
from lightning_dpg.metrics.functional import STATISTICS, edge_overlap, statistics

# Table of single graphs, with as many digits as it prints
PUBLISHED = {
    "CORA-ML-TRAIN85": ("240", "-0.0754", "2814", "1.856", "0.0027", "5.61", "0.0829", "1", "2810"),
    "CITESEER-2120": ("99", "0.0075", "1084", "2.071", "0.0130", "9.33", "0.1252", "1", "2120"),
    "polblogs": ("351", "-0.2212", "101043", "1.415", "0.0048", "2.74", "0.2260", "2", "1222"),
}
COLUMNS = [*list(STATISTICS)[:6], "transitivity", "num_components", "largest_component_size"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_matches_published_digits(name, data_root):
    with gzip.open(data_root / "graphs" / f"{name}.edges.gz") as file:
        edges = np.loadtxt(file, dtype=np.int64)
    ours = statistics(make_graph(torch.from_numpy(edges), int(edges.max()) + 1))
    for column, printed in zip(COLUMNS, PUBLISHED[name], strict=True):
        decimals = len(printed.partition(".")[2])
        assert f"{ours[column]:.{decimals}f}" == printed, column


@pytest.mark.parametrize(
    "graph",
    [
        nx.karate_club_graph(),
        nx.les_miserables_graph(),
        nx.gnm_random_graph(300, 320, seed=0),  # several components, nodes without an edge
    ],
    ids=["karate", "les_miserables", "sparse"],
)
def test_matches_networkx(graph):
    degrees = [d for _, d in graph.degree()]
    linked = [d for d in degrees if d]
    wedge_count = sum(math.comb(d, 2) for d in degrees)
    claw_count = sum(math.comb(d, 3) for d in degrees)
    triangle_count = sum(nx.triangles(graph).values()) / 3
    lengths = [
        length
        for source, targets in nx.all_pairs_shortest_path_length(graph)
        for target, length in targets.items()
        if source != target
    ]
    differences = sum(abs(a - b) for a in degrees for b in degrees)
    expected = {
        "max_degree": max(degrees),
        "assortativity": nx.degree_assortativity_coefficient(graph),
        "triangles": triangle_count,
        "power_law_exponent": 1 + len(linked) / sum(math.log(d / min(linked)) for d in linked),
        "cluster": 3 * triangle_count / claw_count,
        "characteristic_path_length": sum(lengths) / len(lengths),
        "largest_component_size": max(map(len, nx.connected_components(graph))),
        "num_components": nx.number_connected_components(graph),
        "wedges": wedge_count,
        "claws": claw_count,
        "gini": differences / (2 * len(degrees) * sum(degrees)),
        "relative_edge_distribution_entropy": sum(
            d / sum(degrees) * math.log(sum(degrees) / d) for d in linked
        )
        / math.log(len(degrees)),
        "transitivity": nx.transitivity(graph),
    }
    assert statistics(from_networkx(graph)) == pytest.approx(expected)


@pytest.mark.parametrize("num_nodes", [0, 1, 5])
def test_graph_without_edges_has_no_values(num_nodes):
    values = statistics(make_graph(torch.empty(0, 2, dtype=torch.long), num_nodes))
    counts = {"triangles": 0, "wedges": 0, "claws": 0, "num_components": num_nodes}
    if num_nodes:
        counts |= {"max_degree": 0, "largest_component_size": 1}
    for name, value in values.items():
        assert value == counts[name] if name in counts else math.isnan(value), name


def test_regular_graph_has_no_correlation_and_no_exponent():
    graph = from_networkx(nx.cycle_graph(7))
    assert math.isnan(functional.assortativity(graph))
    assert math.isnan(functional.power_law_exponent(graph))
    assert functional.gini(graph) == pytest.approx(0)
    assert functional.relative_edge_distribution_entropy(graph) == pytest.approx(1)


def test_edge_overlap_is_the_share_of_the_reference():
    graph = make_graph(torch.tensor([[0, 1], [1, 2], [2, 3]]), 4)
    reference = make_graph(torch.tensor([[1, 0], [0, 3]]), 4)
    assert edge_overlap(graph, reference) == 0.5
    assert edge_overlap(reference, graph) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="got 4 and 3"):
        edge_overlap(graph, make_graph(torch.tensor([[0, 1]]), 3))


@pytest.mark.parametrize("at_once", [1, 40, 2**14])
def test_triangles_are_counted_at_their_nodes_in_blocks(at_once, monkeypatch):
    monkeypatch.setattr(functional, "_BLOCK_EDGES", at_once)
    linked = nx.gnm_random_graph(40, 250, seed=1)
    linked.add_node(40)
    graph = make_graph(torch.tensor(list(linked.edges)), 41)
    expected = nx.triangles(linked)
    assert functional.triangles_at_nodes(graph).tolist() == [expected[i] for i in range(41)]
    assert functional.triangles(graph) == sum(expected.values()) / 3
