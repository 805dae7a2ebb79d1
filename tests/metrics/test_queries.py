"""Answers to the queries equal networkx and scikit-learn, node for node."""

import math
import re
import statistics
from collections import Counter
from functools import cache
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph, narrow, undirected_edges
from lightning_dpg.graph.pair_space import pair_space, without_directions
from lightning_dpg.metrics import communities, functional, queries
from lightning_dpg.metrics.alignment import align
from lightning_dpg.metrics.communities import (
    adjusted_mutual_information,
    normalized_mutual_information,
)
from lightning_dpg.metrics.functional import STATISTICS, eigenvector_centrality
from lightning_dpg.metrics.paths import distances
from lightning_dpg.metrics.queries import (
    HIGHER_IS_BETTER,
    QUERIES,
    compare,
    distance_divergence,
    extended,
    profile,
)
from lightning_dpg.metrics.sampled import line_on_sampling

ENDINGS = ("_kl", "_nmi", "_mae", "_overlap", "_ami", "_f1", "_cosine")
ABOUT_BOTH = {name for name in QUERIES if name.endswith(ENDINGS)}


def plain(graph):
    """Numbered nodes and sorted edges without weights, which Louvain would use."""
    graph = nx.convert_node_labels_to_integers(graph)
    copy = nx.empty_graph(len(graph))
    copy.add_edges_from(sorted(tuple(sorted(edge)) for edge in graph.edges()))
    return copy


KARATE = plain(nx.karate_club_graph())
CAST = nx.les_miserables_graph()
LES_MISERABLES = plain(CAST.subgraph([*CAST][:50]))  # motifs of all take three seconds to count
# Several components and nodes without an edge
SPARSE = plain(nx.gnm_random_graph(50, 45, seed=0))
REWIRED = nx.double_edge_swap(KARATE.copy(), nswap=30, max_tries=1000, seed=0)
PAIRS = {
    "sizes differ": (KARATE, LES_MISERABLES),
    "sizes differ, reversed": (LES_MISERABLES, KARATE),
    "lonely nodes": (LES_MISERABLES, SPARSE),
    "rewired": (KARATE, REWIRED),
}


def partition(graph):
    """Communities of the nodes with an edge, which lonely nodes must not change; then these."""
    lonely = [{node} for node in nx.isolates(graph)]
    linked = sorted(set(graph) - set().union(*lonely))
    found = nx.community.louvain_communities(plain(graph.subgraph(linked)), seed=0)
    return [{linked[node] for node in part} for part in found] + lonely


@cache
def padded(graph, size):
    """A copy with nodes up to a size."""
    copy = nx.empty_graph(size)
    copy.add_edges_from(graph.edges())
    return copy


def labels(graph):
    number = {node: i for i, part in enumerate(partition(graph)) for node in part}
    return [number[node] for node in range(len(graph))]


def lengths(graph):
    return [n for _, found in nx.all_pairs_shortest_path_length(graph) for n in found.values()]


def divergence(first, second):
    p, q = Counter(first), Counter(second)
    floor = 2.0**-52
    return sum(
        count / p.total() * math.log(count / p.total() / max(q[value] / q.total(), floor))
        for value, count in p.items()
    )


def about_one(graph):
    """Answers about a single graph; those of NetGAN's statistics are tested beside them."""
    degrees = [degree for _, degree in graph.degree()]
    paths = [length for length in lengths(graph) if length]
    parts = [graph.subgraph(nodes) for nodes in nx.connected_components(graph)]
    return {
        "num_nodes": len(graph),
        "num_edges": graph.number_of_edges(),
        "triangles": sum(nx.triangles(graph).values()) / 3,
        "avg_degree": 2 * graph.number_of_edges() / len(graph),
        "degree_variance": len(graph) / (len(graph) - 1) * np.var(degrees),
        "diameter": max(nx.diameter(part) for part in parts),
        "avg_path_length": sum(paths) / len(paths),
        "global_clustering": nx.transitivity(graph),
        "avg_clustering": nx.average_clustering(graph),
        "modularity": nx.community.modularity(graph, partition(graph)),
        "assortativity": nx.degree_assortativity_coefficient(graph),
    } | {name: STATISTICS[name](from_networkx(graph)) for name in QUERIES[15:-5]}


def mean_f1(first, second):
    """Average F1 of two partitions by its definition: precision and recall of sets."""

    def f1(one, two):
        precision, recall = len(one & two) / len(one), len(one & two) / len(two)
        return 2 * precision * recall / (precision + recall) if one & two else 0

    best = [max(f1(one, two) for two in second) for one in first]
    other = [max(f1(one, two) for one in first) for two in second]
    return (sum(best) / len(best) + sum(other) / len(other)) / 2


@cache
def motif_counter(graph):
    """Connected induced subgraphs of 3 to 5 nodes, by growing sets of nodes one by one.

    They are told apart by their degrees and triangles, in which no two motifs agree.
    """
    counts = Counter()
    linked = nx.to_numpy_array(graph)
    sets = {frozenset(edge) for edge in graph.edges()}
    for _ in range(3):
        sets = {s | {w} for s in sets for v in s for w in graph[v] if w not in s}
        nodes = np.array([tuple(s) for s in sets])
        matrices = linked[nodes[:, :, None], nodes[:, None, :]]
        degrees = np.sort(matrices.sum(axis=1), axis=1)
        closed = np.trace(matrices @ matrices @ matrices, axis1=1, axis2=2)
        kinds, times = np.unique(np.column_stack([degrees, closed]), axis=0, return_counts=True)
        counts.update(dict(zip(map(tuple, kinds), times, strict=True)))
    return counts


def cosine(first, second):
    keys = list(first | second)
    ours, theirs = (np.array([counts[key] for key in keys]) for counts in (first, second))
    return ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs)


def about_both(real, synthetic):
    """Answers to the queries about two graphs with the same nodes."""
    central = [
        np.abs(np.linalg.eigh(nx.to_numpy_array(graph))[1][:, -1]).max()
        for graph in (real, synthetic)
    ]
    degrees = [[degree for _, degree in graph.degree()] for graph in (real, synthetic)]
    shared = sum(synthetic.has_edge(*edge) for edge in real.edges())
    return {
        "degree_distribution_kl": divergence(*degrees),
        "distance_distribution_kl": divergence(lengths(real), lengths(synthetic)),
        "community_nmi": normalized_mutual_info_score(labels(real), labels(synthetic)),
        "eigenvector_centrality_mae": abs(central[0] - central[1]),  # 1 % of the nodes is one
        "edge_overlap": shared / real.number_of_edges(),
        "community_ami": adjusted_mutual_info_score(labels(real), labels(synthetic)),
        "community_f1": mean_f1(partition(real), partition(synthetic)),
        # No node has a degree of more than 50.
        "degree_cosine": cosine(*(Counter(d for d in found if d) for found in degrees)),
        "motif_cosine": cosine(motif_counter(real), motif_counter(synthetic)),
    }


@pytest.mark.parametrize("name", PAIRS)
def test_matches_networkx_and_sklearn(name):
    real, synthetic = PAIRS[name]
    answers = compare(profile(from_networkx(real)), from_networkx(synthetic))
    assert tuple(answers) == QUERIES
    real, synthetic = (padded(graph, max(len(real), len(synthetic))) for graph in (real, synthetic))
    ours, theirs = about_one(real), about_one(synthetic)
    both = about_both(real, synthetic)
    assert set(both) == ABOUT_BOTH == set(QUERIES) - set(ours)
    for query, answer in answers.items():
        if query in both:
            assert math.isnan(answer.real) and math.isnan(answer.synthetic), query
            assert answer.score == pytest.approx(both[query], abs=1e-9, nan_ok=True), query
        else:
            assert answer.real == pytest.approx(ours[query]), query
            assert answer.synthetic == pytest.approx(theirs[query]), query
            error = abs(ours[query] - theirs[query]) / abs(ours[query])
            assert answer.score == pytest.approx(error, abs=1e-9), query


def test_names_and_order():
    assert " ".join(QUERIES[:15]) == (
        "num_nodes num_edges triangles avg_degree degree_variance degree_distribution_kl diameter "
        "avg_path_length distance_distribution_kl global_clustering avg_clustering community_nmi "
        "modularity assortativity eigenvector_centrality_mae"
    )
    assert " ".join(QUERIES[15:]) == (
        "max_degree power_law_exponent cluster largest_component_size num_components wedges claws "
        "gini relative_edge_distribution_entropy edge_overlap community_ami community_f1 "
        "degree_cosine motif_cosine"
    )
    assert set(QUERIES) > HIGHER_IS_BETTER


def test_same_graph_in_another_order_has_no_error():
    graph = nx.les_miserables_graph()
    names = np.random.default_rng(0).permutation(list(graph)).tolist()
    shuffled = nx.Graph()
    shuffled.add_nodes_from(names)
    shuffled.add_edges_from(graph.edges())
    answers = compare(profile(from_networkx(graph)), from_networkx(shuffled))
    best = dict.fromkeys(HIGHER_IS_BETTER, 1.0)
    errors = {name: answer.score for name, answer in answers.items()}
    assert errors == pytest.approx({name: best.get(name, 0.0) for name in QUERIES}, abs=1e-9)


def test_nodes_are_those_of_either_graph():
    reference = make_graph(torch.tensor([[0, 1], [1, 2], [2, 3]]), 4, ["a", "b", "c", "d"])
    graph = make_graph(torch.tensor([[0, 1], [1, 2], [2, 3]]), 5, ["b", "x", "a", "c", "y"])
    aligned = align(graph, reference)
    # The edges b-x, x-a and a-c beside a-b, b-c and c-d
    assert aligned.reference.node_names == ["a", "b", "c", "d", "x", "y"]
    assert undirected_edges(aligned.reference).tolist() == [[0, 1], [1, 2], [2, 3]]
    assert undirected_edges(aligned.graph).tolist() == [[0, 2], [0, 4], [1, 4]]
    answers = compare(profile(reference), graph)
    assert answers["edge_overlap"].score == 0
    assert answers["num_components"][:2] == (3, 3)  # d and y, or x and y, and the rest
    assert answers["avg_degree"][:2] == (1, 1)
    note = "nodes without an edge added: 2 to the real graph and 1 to the synthetic graph"
    assert {name for name, answer in answers.items() if answer.note == note} == {
        *("num_nodes", "edge_overlap", "community_nmi", "community_ami", "community_f1")
    }


def without_lonely_nodes(graph):
    """The graph of an edge list, in which other nodes have no line."""
    kept = graph.edge_index[0].unique()
    place = torch.full((graph.num_nodes,), -1)
    place[kept] = torch.arange(len(kept))
    names = [graph.node_names[node] for node in kept]
    return make_graph(place[undirected_edges(graph)], len(kept), names)


PAIRS_OF_NODES = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] != pair[1]),
    min_size=1,
)


@settings(max_examples=25)
@given(PAIRS_OF_NODES, PAIRS_OF_NODES, st.permutations("abcdefghi"))
def test_a_list_of_edges_is_compared_as_the_whole_graph(ours, theirs, order):
    names = list("abcdefghi")
    real = make_graph(torch.tensor(ours), 9, names)
    number = torch.tensor([order.index(name) for name in names])
    synthetic = make_graph(number[torch.tensor(theirs)], 9, order)
    expected = compare(profile(real), synthetic)
    lists = [without_lonely_nodes(graph) for graph in (real, synthetic)]
    for pair in ((lists[0], synthetic), (real, lists[1])):
        answers = compare(profile(pair[0]), pair[1])
        for query, answer in answers.items():
            assert answer[:3] == pytest.approx(expected[query][:3], nan_ok=True, abs=1e-9), query


def test_added_nodes_change_measurements_as_a_new_measurement_would(monkeypatch):
    monkeypatch.setattr(functional, "EXACT_PATHS", 10)  # triangles are sampled
    graph = from_networkx(KARATE)
    whole = make_graph(undirected_edges(graph), 68)  # twice as many: no rounding
    assert repr(extended(profile(graph), whole)) == repr(profile(whole))


def test_nodes_are_not_matched_where_no_name_is_in_both_graphs():
    reference = make_graph(torch.tensor([[0, 1], [1, 2]]), 3)
    graph = make_graph(torch.tensor([[0, 1], [0, 2]]), 3, ["a", "b", "c"])
    answer = compare(profile(reference), graph)["edge_overlap"]
    assert math.isnan(answer.score)
    assert answer.note == "no node has a name in both graphs"


def test_undefined_numbers_are_nan():
    cycle, star = from_networkx(nx.cycle_graph(6)), from_networkx(nx.star_graph(5))
    answers = compare(profile(cycle), star)
    assert math.isnan(answers["assortativity"].real)
    assert math.isnan(answers["assortativity"].score)
    assert answers["triangles"] == (0, 0, 0, "")
    assert answers["claws"].real == 0 < answers["claws"].synthetic
    assert math.isnan(answers["claws"].score)


def test_adjusted_information_is_what_exceeds_that_of_all_permutations():
    first, second = np.array([0, 0, 0, 1, 1, 2, 3]), np.array([0, 0, 1, 1, 1, 2, 3])

    def information(ours, theirs):
        table = Counter(zip(ours.tolist(), theirs.tolist(), strict=True))
        rows, columns = Counter(ours.tolist()), Counter(theirs.tolist())
        shares = {pair: count / len(ours) for pair, count in table.items()}
        return sum(
            share * math.log(share * len(ours) ** 2 / rows[i] / columns[j])
            for (i, j), share in shares.items()
        )

    every = permutations(second.tolist())
    expected = statistics.fmean(information(first, np.array(order)) for order in every)
    alone = (information(first, first) + information(second, second)) / 2
    adjusted = (information(first, second) - expected) / (alone - expected)
    assert adjusted_mutual_information(first, second) == pytest.approx(adjusted)
    assert adjusted < 0.7 * normalized_mutual_information(first, second)
    assert adjusted_mutual_information(first, first) == pytest.approx(1)
    lonely = np.arange(50_000)  # of 2.5 billion pairs of parts, with one size
    assert adjusted_mutual_information(lonely, lonely[::-1]) == 1


def test_single_parts_agree():
    one, two = np.zeros(4, dtype=np.int64), np.array([0, 0, 1, 1])
    assert communities.normalized_mutual_information(one, one) == 1
    assert communities.normalized_mutual_information(one, two) == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(3, 9)), min_size=1))
def test_average_f1_equals_its_definition(pairs):
    partitions = [
        [{node for node, label in enumerate(labels) if label == part} for part in set(labels)]
        for labels in zip(*pairs, strict=True)
    ]
    first, second = np.array(pairs).T
    assert communities.average_f1(first, second) == pytest.approx(mean_f1(*partitions))
    assert communities.average_f1(first, first) == pytest.approx(1)


def test_degrees_beyond_50_share_a_bin():
    # One node of degree 60 or 80, and as many of degree 1 or 0, of which the last have no bin
    hub, larger = np.zeros(61), np.zeros(81)
    hub[[0, 1, 60]] = 7, 3, 1
    larger[[1, 50, 80]] = 3, 0.5, 0.5
    assert queries.degree_cosine(hub, larger) == pytest.approx(1)
    hub[49] = 2
    assert queries.degree_cosine(hub, larger) == pytest.approx(10 / math.sqrt(14 * 10))
    assert math.isnan(queries.degree_cosine(hub, np.array([5.0])))


@pytest.mark.parametrize("kind", ["undirected", "directed", "bipartite"])
def test_node_numbers_of_32_bits_change_no_answer(kind):
    # N ** 2 is beyond 32 bits.
    space, ends = pair_space(kind, 50_000, 49_970), torch.tensor([49_900, 49_970])
    wide = []
    for seed in (0, 1):
        pairs = torch.randint(30, (60, 2), generator=torch.Generator().manual_seed(seed))
        edges = torch.unique(pairs[pairs[:, 0] != pairs[:, 1]] + ends, dim=0)
        wide.append(space.graph(edges))
    answers = [
        compare(profile(without_directions(real)), without_directions(drawn))
        | queries.compare_kinds(real, drawn)
        for real, drawn in (wide, map(narrow, wide))
    ]
    assert narrow(wide[0]).edge_index.dtype == torch.int32
    assert str(answers[0]) == str(answers[1])


def test_fewer_passes_find_the_same_communities_where_there_are_any(monkeypatch):
    planted = from_networkx(nx.planted_partition_graph(5, 60, 0.3, 0.01, seed=0))
    monkeypatch.setattr(communities, "MANY_NODES", 0)  # by networkit
    expected = communities.louvain(planted)
    monkeypatch.setattr(communities, "MANY_EDGES", 0)
    np.testing.assert_array_equal(communities.louvain(planted), expected)
    assert len(np.unique(expected)) == 5


def test_top_values_are_one_percent_of_the_real_graph():
    real, synthetic = np.linspace(0, 1, 250), np.linspace(0, 0.5, 101)
    expected = (abs(1 - 0.5) + abs(248 / 249 - 0.495)) / 2
    assert queries.top_error(real, synthetic) == pytest.approx(expected)


def test_tied_components_share_the_centrality():
    # Power iteration from equal values gives all triangles the same weight, and a path none.
    parts = [*[nx.complete_graph(3)] * 2, nx.path_graph(4), nx.complete_graph(3)]
    expected = np.repeat([1 / 3, 0, 1 / 3], [6, 4, 3])
    found = eigenvector_centrality(from_networkx(nx.disjoint_union_all(parts)))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    large = nx.circulant_graph(20, [1])  # two cycles tie beyond the size of dense matrices, too
    found = eigenvector_centrality(from_networkx(nx.disjoint_union(large, large)))
    np.testing.assert_allclose(found, np.full(40, 40**-0.5), atol=1e-9)


def test_centrality_of_a_long_path_needs_many_basis_vectors():
    found = eigenvector_centrality(from_networkx(nx.path_graph(800)))
    expected = np.sin(np.pi * np.arange(1, 801) / 801)
    assert found == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)


def test_centrality_is_the_leading_eigenvector(monkeypatch):
    monkeypatch.setattr(functional, "_COLUMNS", 9)  # seven blocks, the last one of six columns
    graph = nx.disjoint_union(nx.barabasi_albert_graph(60, 2, seed=0), nx.star_graph(8))
    vector = np.linalg.eigh(nx.to_numpy_array(graph))[1][:, -1]
    found = eigenvector_centrality(from_networkx(graph))
    np.testing.assert_allclose(found, np.abs(vector), atol=1e-9)


def test_sampled_distances_estimate_the_exact_ones():
    graph = from_networkx(nx.disjoint_union(nx.barabasi_albert_graph(900, 2, seed=0), SPARSE))
    exact, sampled = distances(graph), distances(graph, 320)
    assert (exact.num_sources, sampled.num_sources) == (None, 320)
    assert sampled.counts[0] == exact.counts[0] == graph.num_nodes
    assert len(sampled.counts) <= len(exact.counts)
    assert queries.kl_divergence(sampled.counts, exact.counts) < 1e-3
    assert sampled.counts.sum() == pytest.approx(exact.counts.sum(), rel=0.05)


def test_sampled_answers_say_so():
    leaves = 20_500
    star = torch.stack([torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)], dim=1)
    names = [f"node {number}" for number in range(leaves + 1)]
    answers = compare(profile(from_networkx(KARATE)), make_graph(star, leaves + 1, names))
    noted = {name for name, answer in answers.items() if "sampled" in answer.note}
    assert noted == {"diameter", "avg_path_length", "distance_distribution_kl", "motif_cosine"}
    assert "lower bound" in answers["diameter"].note
    noted = {name for name, answer in answers.items() if "networkit" in answer.note}
    assert noted == {"modularity", "community_nmi", "community_ami", "community_f1"}
    assert answers["community_nmi"].note.startswith("no node has a name in both")
    assert answers["motif_cosine"].note.startswith("synthetic: motifs of 5 nodes sampled, standard")
    assert answers["diameter"].synthetic == 2
    # All groups of sources see the same distances, but those of the group with the center.
    assert answers["avg_path_length"].note.startswith(
        "synthetic: 512 nodes sampled, standard error"
    )


def test_the_error_of_sampled_divergences_is_their_spread():
    parts = [nx.barabasi_albert_graph(400, 2, seed=0), nx.cycle_graph(60)]
    graph = from_networkx(nx.disjoint_union_all(parts))
    other = distances(from_networkx(nx.disjoint_union_all([parts[0], nx.cycle_graph(70)])))
    exact = distances(graph)
    assert distance_divergence(exact, other) == (
        queries.kl_divergence(exact.counts, other.counts),
        0,
    )
    for ordered in (lambda pair: pair, lambda pair: pair[::-1]):
        found = np.array(
            [
                distance_divergence(*ordered((distances(graph, 128, seed), other)))
                for seed in range(100)
            ]
        )
        assert found[:, 1].mean() == pytest.approx(found[:, 0].std(), rel=0.3)


def test_sampled_figures_have_their_standard_errors_and_one_line(monkeypatch):
    monkeypatch.setattr(functional, "EXACT_PATHS", 400)  # karate has fewer, the other has more
    dense = from_networkx(nx.gnm_random_graph(34, 200, seed=0))
    exact = compare(profile(from_networkx(KARATE)), from_networkx(KARATE))
    answers = compare(profile(from_networkx(KARATE)), dense)
    sampled = [name for name, answer in answers.items() if answer.how == "sampled"]
    closed = ["triangles", "global_clustering", "avg_clustering", "cluster"]
    assert [name for name in sampled if name != "motif_cosine"] == closed
    triangles = sum(nx.triangles(nx.gnm_random_graph(34, 200, seed=0)).values()) / 3
    note = answers["triangles"].note
    said = re.fullmatch(
        r"synthetic: 2,000,000 wedges sampled, standard error (\S+); of the error (\S+)", note
    )
    assert said, note
    spread, relative = map(float, said.groups())
    assert abs(answers["triangles"].synthetic - triangles) < 4 * spread < triangles / 10
    assert relative == pytest.approx(spread / exact["triangles"].real, rel=0.1)
    line = line_on_sampling({name: each.note for name, each in answers.items()})
    assert line == f"sampled (standard errors in the notes): {', '.join(sampled)}"


@pytest.mark.parametrize(
    ("limits", "has_networkit", "why"),
    [
        (["MANY_EDGES"], False, "Louvain beyond 77 edges needs networkit: pip install"),
        (
            ["MANY_EDGES", "MOST_EDGES"],
            True,
            "Louvain beyond 77 edges would take most of the memory",
        ),
    ],
    ids=["networkx would take hours", "networkit would take the memory"],
)
def test_communities_are_left_out_of_huge_graphs(limits, has_networkit, why, monkeypatch):
    for limit in limits:
        monkeypatch.setattr(communities, limit, KARATE.number_of_edges() - 1)
    monkeypatch.setattr(communities, "find_spec", lambda name: has_networkit or None)
    monkeypatch.setattr(communities.nx.community, "louvain_communities", None)  # not called
    answers = compare(profile(from_networkx(KARATE)), from_networkx(REWIRED))
    left_out = {name for name, answer in answers.items() if answer.how == "left out"}
    assert left_out == {"modularity", "community_nmi", "community_ami", "community_f1"}
    for name in left_out:
        assert math.isnan(answers[name].score)
        assert answers[name].note.startswith(f"left out: {why}")
    assert f"left out ({why}" in line_on_sampling(
        {name: each.note for name, each in answers.items()}
    )
    assert not communities.louvain(from_networkx(KARATE), networkx_edges=10).size
    assert answers["edge_overlap"].score > 0


@pytest.mark.parametrize(
    "graph",
    [
        nx.barabasi_albert_graph(600, 3, seed=0),
        nx.gnm_random_graph(600, 1200, seed=0),  # of several components, some of one node
        nx.planted_partition_graph(15, 30, 0.3, 0.005, seed=0),
        nx.disjoint_union_all([nx.complete_graph(6)] * 4 + [nx.empty_graph(2)]),
    ],
    ids=["hubs", "random", "planted", "cliques"],
)
def test_louvain_of_large_graphs_is_as_good_as_that_of_small_ones(graph, monkeypatch):
    graph = plain(graph)
    small = communities.louvain(from_networkx(graph))
    monkeypatch.setattr(communities, "MANY_NODES", 20)
    monkeypatch.setattr(communities.nx.community, "louvain_communities", None)
    large = communities.louvain(from_networkx(graph))
    reached, theirs = (
        nx.community.modularity(graph, [set(np.flatnonzero(labels == i)) for i in set(labels)])
        for labels in (large, small)
    )
    assert reached > theirs - 0.015
    assert np.array_equal(large, communities.louvain(from_networkx(graph)))


def test_exact_motifs_say_so():
    answers = compare(profile(from_networkx(KARATE)), from_networkx(REWIRED))
    assert answers["motif_cosine"].note == "all motifs counted"
