"""PrivGraph sensitivities and laws hold by enumeration, and it finds planted communities."""

import itertools
import math
from functools import cache

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.formats.io import from_networkx, read_graph
from lightning_dpg.graph.communities import (
    HUB_PASSES,
    Turns,
    count_neighbors,
    earlier_first,
    sharpened_links,
    turn_stops,
)
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.graph.pair_space import UndirectedPairs
from lightning_dpg.graph.stubs import count_links
from lightning_dpg.methods.single_graph import privgraph
from lightning_dpg.methods.single_graph.privgraph import PrivGraph
from lightning_dpg.metrics.communities import louvain, modularity, normalized_mutual_information
from lightning_dpg.metrics.functional import degrees, triangles
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity.degrees import edge_partition_sensitivity
from lightning_dpg.privacy.sensitivity.neighbor_sums import earlier_neighbor_sensitivity
from tests.flip_law import flip_law
from tests.planting import plant
from tests.training import release_edges

PAIRS = list(itertools.combinations(range(4), 2))


def fitted(graph, epsilon, seed=0, **settings):
    method = PrivGraph(graph.num_nodes, **settings)
    method._noise = NoiseSource(unsafe_seed=seed)
    method.ledger.budget = Budget(epsilon, 0.0)
    release_edges(method, undirected_edges(graph))
    return method


def planted(sizes, inside, outside, seed=0):
    probabilities = np.full((len(sizes), len(sizes)), outside) + np.diag(
        [inside - outside] * len(sizes)
    )
    return from_networkx(nx.stochastic_block_model(sizes, probabilities, seed=seed))


GRAPHS = [
    edges for count in range(len(PAIRS) + 1) for edges in itertools.combinations(PAIRS, count)
]
# All graphs of 4 nodes, by number, with all graphs that lack one of their edges.
NEIGHBORS = [
    (GRAPHS.index(edges), GRAPHS.index(tuple(edge for edge in edges if edge != gone)))
    for edges in GRAPHS
    for gone in edges
]


def as_edges(pairs):
    return torch.tensor(pairs, dtype=torch.long).view(-1, 2)


def turns(edges, communities, order, first, count):
    """The counts of all turns, each given the communities of the earlier ones."""
    ends = earlier_first(as_edges(edges), order)
    stops = [first, *turn_stops(first, len(order), 2.0)]
    return [count_neighbors(ends, communities[:a], b, count) for a, b in itertools.pairwise(stops)]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 3, 1]])
def test_one_edge_moves_counts_by_at_most_their_sensitivities(order):
    changes, links = set(), set()
    for labels in itertools.product(range(2), repeat=4):
        communities = torch.tensor(labels)
        tables = [
            torch.cat(turns(edges, communities, torch.tensor(order), 1, 2)) for edges in GRAPHS
        ]
        counts = [count_links(np.array(labels), as_edges(edges).numpy()) for edges in GRAPHS]
        changes |= {int((tables[a] - tables[b]).abs().sum()) for a, b in NEIGHBORS}
        links |= {int(np.abs(counts[a] - counts[b]).sum()) for a, b in NEIGHBORS}
    assert changes == {0, earlier_neighbor_sensitivity()}  # 0 where both ends have one turn
    assert links == {edge_partition_sensitivity()}


@pytest.mark.parametrize("rate", [0.3, 1.5])
def test_laws_of_communities_and_links_are_within_epsilon_of_neighbours(rate):
    link_rate, losses, totals = 0.2, [], np.zeros(len(GRAPHS))
    for labels in itertools.product([0], range(2), range(2), range(2)):
        communities = torch.tensor(labels)
        logs, counts = [], []
        for edges in GRAPHS:
            rows = torch.cat(turns(edges, communities, torch.arange(4), 1, 2)).tolist()
            laws = [flip_law(row, rate)[c] for row, c in zip(rows, labels[1:], strict=True)]
            logs.append(np.log(laws).sum())
            counts.append(count_links(np.array(labels), as_edges(edges).numpy()))
        totals += np.exp(logs)
        # Discrete Laplace noise turns a change by k into a log ratio of k times its rate at most.
        losses += [
            abs(logs[a] - logs[b]) + link_rate * np.abs(counts[a] - counts[b]).sum()
            for a, b in NEIGHBORS
        ]
    assert totals == pytest.approx(1)  # all communities were seen
    assert 0.5 * rate < max(losses) <= rate + link_rate + 1e-9


# All graphs of 5 nodes, a row each. The first three pairs are those of the hubs 0, 1 and 2.
PAIRS_OF_5 = sorted(itertools.combinations(range(5), 2), key=lambda pair: pair[1] > 2)
ALL_OF_5 = np.array(list(itertools.product([0, 1], repeat=10)), dtype=bool)


@cache
def turns_of_5():
    """For each turn: choices before it, what each pair counts, and what is added to the counts."""
    turns = Turns(UndirectedPairs(5), torch.tensor([4, 3, 3, 1, 1]), 2, 1.0)
    assert turns.num_hubs == 3 and turns.order.tolist() == [0, 1, 2, 3, 4]
    assert turns.stops == [3, *range(4, 12)]  # two founders, three passes of three hubs, two others
    everything = turns.utilities(as_edges(PAIRS_OF_5), 0.5)
    of_pairs = [turns.utilities(as_edges([pair]), 0.5) for pair in PAIRS_OF_5]
    found = []
    for stop in turns.stops:
        for choices in itertools.product([0, 1], repeat=stop - 3):
            chosen = torch.tensor([0, 1, *choices])
            whole, offsets = everything(chosen, stop)
            counts = torch.cat([count(chosen, stop)[0] for count in of_pairs])
            assert counts.sum(dim=0).tolist() == whole[0].tolist()  # edges are counted one by one
            found.append((choices, counts.numpy(), offsets.numpy()))
    return found


def losses_of_choices(epsilon, factor=1):
    """Largest loss by an edge between hubs, and by another, of all choices of two communities, exactly.

    ``factor`` multiplies what is counted in the passes over hubs, as a mistake would.
    """
    logs, rate = {(): np.zeros(len(ALL_OF_5))}, epsilon / earlier_neighbor_sensitivity(HUB_PASSES)
    for choices, counts, offsets in turns_of_5():
        is_of_hub = 2 + len(choices) < 3 * HUB_PASSES
        lead = np.diff(ALL_OF_5 @ (counts * (factor if is_of_hub else 1)) + offsets)[:, 0]
        behind = 0.5 * np.exp(-rate * np.abs(lead))  # permute and flip between two
        first, log = np.where(lead > 0, behind, 1 - behind), logs.pop(choices)
        logs[*choices, 0], logs[*choices, 1] = log + np.log(first), log + np.log1p(-first)
    table = np.array(list(logs.values()))
    assert len(table) == 2**9 and np.exp(table).sum(axis=0) == pytest.approx(1)
    # With the pair and without it, graphs have all other pairs in one order.
    most = [np.abs(table[:, has] - table[:, ~has]).max() for has in ALL_OF_5.T]
    return max(most[:3]), max(most[3:])


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_choices_of_hubs_in_passes_and_of_others_cost_epsilon_each(epsilon):
    """Parallel composition: an edge between hubs costs a third in each pass, any other all at once."""
    of_hubs, of_others = losses_of_choices(epsilon)
    assert 0.5 * epsilon < of_hubs <= epsilon + 1e-9
    assert of_others == pytest.approx(epsilon)


def test_a_pass_over_hubs_at_the_whole_budget_is_seen():
    of_hubs, of_others = losses_of_choices(0.3, factor=HUB_PASSES)
    assert of_hubs > 1.5 * 0.3 and of_others == pytest.approx(0.3)


def class_noise(monkeypatch):
    """What is added to links of classes in six fits, and the scale that the ledger books for it."""
    graph, given, samples = from_networkx(nx.karate_club_graph()), [], []
    ratios = privgraph.class_ratios
    with monkeypatch.context() as patch:
        patch.setattr(
            privgraph, "class_ratios", lambda *args: given.append(args[:2]) or ratios(*args)
        )
        for seed in range(6):
            method = fitted(graph, 2.0, seed)
            counts = method.links_by_classes(undirected_edges(graph).numpy())
            is_counted = np.tril(np.ones_like(counts)) > 0
            samples.append((given[-1][0] - counts)[is_counted])
    read = method.ledger.entries[-1]
    assert read.key == "class_links" and given[-1][1] == read.scale == pytest.approx(10)
    return np.concatenate(samples)


@pytest.mark.parametrize("factor", [None, 0, 0.5, 2])
def test_links_of_classes_have_the_noise_that_the_ledger_books(factor, monkeypatch):
    """The mean size of discrete Laplace noise of scale b is 1 / sinh(1 / b); noise that is off shows."""
    if factor is not None:
        plant(monkeypatch, factor, ("class_links",))
    noise = class_noise(monkeypatch)
    assert len(noise) > 150
    # Within four standard deviations, which is less than a third.
    near = pytest.approx(1 / math.sinh(0.1), rel=4 / math.sqrt(len(noise)))
    assert (np.abs(noise).mean() == near) == (factor is None)


def test_without_noise_degrees_communities_and_links_are_those_of_the_graph():
    graph = planted([60, 50, 40], 0.4, 0.02)
    method = fitted(graph, math.inf, num_communities=6)
    assert method.degrees.tolist() == degrees(graph).tolist()
    communities = method.communities.numpy()
    links = count_links(communities, undirected_edges(graph).numpy())
    assert np.array_equal(method.links.numpy(), links)
    block = np.repeat(np.arange(3), [60, 50, 40])
    # Founders may share a block, which they then divide, but no community has two blocks.
    assert max(np.bincount(block[communities == c]).max() for c in np.unique(communities)) > 30
    assert modularity(graph, communities) > 0.3

    method.right_share.fill_(1)
    sample = method.sample(torch.Generator().manual_seed(0))
    assert degrees(sample).tolist() == degrees(graph).tolist()
    drawn = count_links(communities, undirected_edges(sample).numpy())
    assert np.abs(drawn - links).sum() <= 0.02 * links.sum()
    # The expected numbers of edges add up to the degrees, but for pairs of a node with itself.
    everything = torch.cartesian_prod(torch.arange(150), torch.arange(150))
    expected = method.score(everything).view(150, 150)
    assert expected.sum(dim=1).numpy() == pytest.approx(degrees(graph), rel=1e-3, abs=0.05)


def test_planted_communities_are_found_at_a_small_budget():
    graph = planted([150] * 4, 0.25, 0.005)
    block = np.repeat(np.arange(4), 150)
    method = fitted(graph, 2.0)
    assert normalized_mutual_information(method.communities.numpy(), block) > 0.5
    sample = method.sample(torch.Generator().manual_seed(0))
    assert normalized_mutual_information(louvain(sample), block) > 0.5
    uniform = from_networkx(nx.gnm_random_graph(600, sample.num_edges // 2, seed=0))
    assert triangles(sample) > 1.5 * triangles(uniform)
    inside, outside = torch.tensor([[0, 1], [200, 220]]), torch.tensor([[0, 200], [220, 500]])
    assert method.score(inside).sum() > 2 * method.score(outside).sum()


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 8.0])
def test_drawn_links_between_communities_are_the_released_ones(epsilon):
    method = fitted(planted([150] * 4, 0.25, 0.005), epsilon, num_communities=4)
    assert method.class_ratios.numel()
    released = sharpened_links(method.links.numpy(), float(method.right_share))
    communities, released_degrees = method.communities.numpy(), method.degrees.numpy()
    for seed in range(2):
        drawn = draw_edges(method, seed)
        assert np.bincount(drawn.ravel(), minlength=600).tolist() == released_degrees.tolist()
        change = np.abs(np.tril(count_links(communities, drawn) - released, -1))
        assert change.sum() <= 0.02 * len(drawn)


def draw_edges(method, seed=0):
    return method.sample_edges(torch.Generator().manual_seed(seed)).numpy()


def test_without_classes_links_between_communities_are_those_of_the_release():
    """As those of earlier releases, and of more communities than classes are counted for."""
    graph = planted([150] * 4, 0.25, 0.005)
    few, many = (fitted(graph, 4.0, num_communities=number) for number in (4, 65))
    assert [len(method.ledger.entries) for method in (few, many)] == [7, 6]
    assert few.ledger.epsilon(0.0) == pytest.approx(4.0) == many.ledger.epsilon(0.0)
    assert few.class_ratios.numel() and not many.class_ratios.numel()
    assert draw_edges(many).shape == (int(many.num_edges), 2)
    few.class_ratios = few.class_ratios[:, :0, :0]
    released = sharpened_links(few.links.numpy(), float(few.right_share))
    drawn = draw_edges(few)
    assert np.bincount(drawn.ravel(), minlength=600).tolist() == few.degrees.tolist()
    change = np.abs(np.tril(count_links(few.communities.numpy(), drawn) - released, -1))
    assert change.sum() <= 0.02 * len(drawn)


def test_hubs_are_linked_to_each_other_or_not_as_in_the_graph():
    """Two communities of hubs and leaves: in the one kind hubs form a clique, in the other they do not."""
    rng = np.random.default_rng(0)
    for has_clique in (True, False):
        edges = {
            (min(i, j), max(i, j))
            for start in (0, 200)
            for i in range(start, start + 20)
            for j in (
                *range(i + 1, start + 20 if has_clique else i + 1),
                *rng.choice(np.arange(start + 20, start + 200), 20 if has_clique else 40, False),
            )
        }
        edges |= {(20 + i, 220 + i) for i in range(60)}
        graph = from_networkx(nx.from_edgelist(sorted((int(i), int(j)) for i, j in edges)))
        hubs = degrees(graph) >= 32
        method = fitted(graph, 20.0, num_communities=2)
        drawn = draw_edges(method)
        wanted = hubs[undirected_edges(graph).numpy()].all(axis=1).sum()
        assert hubs[drawn].all(axis=1).sum() == pytest.approx(wanted, rel=0.25, abs=25)


def test_communities_of_facebook(data_root):
    graph = read_graph(data_root / "graphs" / "Facebook.edges.gz", keep_gaps=True)
    sample = fitted(graph, 1.0).sample(torch.Generator().manual_seed(0))
    assert sample.num_edges == pytest.approx(graph.num_edges, rel=0.003)
    found = normalized_mutual_information(louvain(graph), louvain(sample))
    assert found > 0.3  # PrivGraph's own code: 0.167
