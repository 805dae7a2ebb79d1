"""``audit`` on sets places canaries in graphs, measures epsilon and detects mistakes."""

import itertools
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.stats import norm

from lightning_dpg.apps.audit.canaries import find_sites, spread_non_edges
from lightning_dpg.apps.audit.scores.attackers import black_box_score
from lightning_dpg.apps.audit.scores.rows import (
    clipped_gradients,
    edge_gradient_score,
    mean_clipped_gradients,
    sums_score,
)
from lightning_dpg.datamodules import SubgraphDataModule
from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.methods import DPGVAE, ErdosRenyiSet
from lightning_dpg.papers.yang2021.networks import CONTEXT_DIM
from lightning_dpg.privacy import mechanisms
from tests import entries
from tests.apps.audit.test_audit import audit
from tests.scoring import observed, scored

__all__ = ["audit"]

# A few steps are enough for all that is released once.
SHORT = ["--trainer.max_epochs", "2", "--model.sample_rate", "0.5"]
SUBGRAPHS = ("--data", "SubgraphDataModule", "--data.name", "les_miserables")


# Canaries


def module(graphs):
    data = GraphSetDataModule(graphs)
    data.setup("fit")
    return data


def drawn(data, count, seed=0):
    return spread_non_edges(find_sites(data), count, torch.Generator().manual_seed(seed))


def test_canaries_are_spread_over_graphs_and_nodes():
    graphs = [nx.path_graph(8), nx.complete_graph(6), nx.path_graph(2), nx.star_graph(8)]
    data = module([*graphs, nx.empty_graph(10)])
    sites = find_sites(data)
    pairs = drawn(data, 3)
    # The first pair of each graph that has room, whatever the size of the graph.
    graphs_of = data.graph_of[pairs]
    assert torch.equal(graphs_of[:, 0], graphs_of[:, 1])
    pairs = drawn(data, 30, seed=1)
    union = {tuple(edge) for edge in data.edges.tolist()}
    assert len({tuple(pair) for pair in pairs.tolist()} - union) == 30
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert torch.equal(data.graph_of[pairs[:, 0]], data.graph_of[pairs[:, 1]])
    # 21 of 28, none of 15, none of 1, 28 of 36 and 45 of 45 pairs are free.
    with pytest.raises(CommandError, match="half of the 94 pairs"):
        spread_non_edges(sites, 48, torch.Generator())
    assert len(drawn(data, 47)) == 47


def test_each_graph_has_a_canary_before_any_has_two():
    data = module([nx.empty_graph(30), nx.path_graph(4), *[nx.empty_graph(9)] * 6])
    for seed in range(20):
        assert sorted(data.graph_of[drawn(data, 7, seed)[:, 0]].tolist()) in (
            list(range(8))[:missing] + list(range(8))[missing + 1 :] for missing in range(8)
        )
        # Matchings: four pairs per graph touch no node twice.
        pairs = drawn(data, 8, seed)
        assert len(set(pairs.flatten().tolist())) == 16


def test_inserted_canaries_are_in_the_edges_and_in_the_graphs():
    graphs = [nx.path_graph(5), nx.empty_graph(3), nx.cycle_graph(4)]
    data = module(graphs)
    pairs = torch.tensor([[0, 4], [5, 7], [8, 10]])
    find_sites(data).insert(pairs)
    for graph, pair in zip(graphs, ((0, 4), (0, 2), (0, 2)), strict=True):
        graph.add_edge(*pair)
    union = nx.disjoint_union_all(graphs)
    assert {tuple(edge) for edge in data.edges.tolist()} == {tuple(sorted(e)) for e in union.edges}
    for graph, expected in zip(data.graphs, graphs, strict=True):
        assert {tuple(e) for e in undirected_edges(graph).tolist()} == {
            tuple(sorted(edge)) for edge in expected.edges
        }


def test_a_pair_of_two_subgraphs_is_one_canary_at_most():
    whole = nx.gnp_random_graph(14, 0.3, seed=0)
    data = SubgraphDataModule(whole, num_subgraphs=6, size=9)
    data.setup("fit")
    names = [name for graph in data.graphs for name in graph.node_names]
    for seed in range(10):
        pairs = drawn(data, 25, seed)
        ends = {frozenset(int(names[node]) for node in pair) for pair in pairs.tolist()}
        assert len(ends) == 25
        assert not any(whole.has_edge(*pair) for pair in ends)
    find_sites(data).insert(pairs)
    records = data.train_dataloader().dataset
    assert records.counts.tolist() == [1] * len(data.edges)
    # Half of the pairs of all subgraphs are more than there are pairs of nodes.
    with pytest.raises(CommandError, match="set --canaries to"):
        drawn(data, find_sites(data).full_graph.num_nodes * 9 // 6)


# Evidence

KNOWN = make_graph(torch.tensor([[0, 1], [1, 2], [4, 5], [5, 6]]), 9)
SIZES = torch.tensor([4, 5])


def entry(name, **values):
    return entries.entry(name=name, **({"noise_multiplier": 1.0} | values))


def worlds(pairs, known, likelihood):
    """Log likelihood ratio of each pair, the mean taken over the coins of all other pairs."""
    total = {(k, bit): [] for k in range(len(pairs)) for bit in (0, 1)}
    for coins in itertools.product((0, 1), repeat=len(pairs)):
        adjacency = nx.to_numpy_array(nx.Graph(known), nodelist=range(9))
        for coin, (i, j) in zip(coins, pairs, strict=True):
            adjacency[i, j] = adjacency[j, i] = coin
        value = likelihood(adjacency)
        for k, coin in enumerate(coins):
            total[k, coin].append(value)
    logsum = np.logaddexp.reduce
    return [logsum(total[k, 1]) - logsum(total[k, 0]) for k in range(len(pairs))]


def known_graph():
    graph = nx.empty_graph(9)
    graph.add_edges_from(undirected_edges(KNOWN).tolist())
    return graph


@pytest.mark.parametrize("noisy", [[2, 2], [5, 1], [3, 9], [-4, 4]])
def test_counts_weigh_as_their_likelihood_ratio_also_where_canaries_share_a_graph(noisy):
    pairs, epsilon = [(0, 2), (0, 3), (2, 3), (4, 7)], 0.7
    method = ErdosRenyiSet()
    method.sizes = SIZES
    method.ledger.spend(
        entry(
            "number of edges of each graph",
            key="num_edges_per_graph",
            mechanism="pure",
            epsilon=epsilon,
            noise_multiplier=0.0,
        )
    )
    found = scored(method, "num_edges_per_graph", torch.tensor(noisy), torch.tensor(pairs), KNOWN)

    def likelihood(adjacency):
        counts = adjacency[:4, :4].sum() / 2, adjacency[4:, 4:].sum() / 2
        return -epsilon * sum(abs(x - count) for x, count in zip(noisy, counts, strict=True))

    assert found.tolist() == pytest.approx(worlds(pairs, known_graph(), likelihood))
    method.num_edges = torch.tensor(noisy)
    assert torch.equal(black_box_score(method, None, torch.tensor(pairs), KNOWN), found)


def test_sums_over_neighbors_weigh_as_their_likelihood_ratio():
    pairs, source = [(0, 3), (4, 6), (7, 8)], torch.Generator().manual_seed(0)
    features = torch.randn(9, 3, generator=source) * 5
    noisy = torch.randn(9, 3, generator=source).double() * 2
    booked = entry("sums over neighbors, hop 1", sensitivity=2**0.5, noise_multiplier=1.3)
    found = sums_score(observed(noisy, torch.tensor(pairs), KNOWN, booked), features)
    rows = features.double().numpy()
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)

    def likelihood(adjacency):
        return norm.logpdf(noisy.numpy(), adjacency @ rows, 1.3 * 2**0.5).sum()

    assert found.tolist() == pytest.approx(worlds(pairs, known_graph(), likelihood))


def test_the_second_hop_sums_up_what_the_first_one_released():
    method, pairs = DPGVAE(feature_dim=3), torch.tensor([[0, 3], [4, 6]])
    source = torch.Generator().manual_seed(0)
    method.features = torch.randn(9, 3, generator=source)
    hops = torch.randn(2, 9, 3, generator=source).double()
    for number, summed in ((1, method.features), (2, hops[0])):
        method.ledger.spend(entry("sums", key=f"neighbor_sums_{number}"))
        noisy = hops[number - 1]
        earlier = {"neighbor_sums_1": hops[0]}
        key = f"neighbor_sums_{number}"
        found = scored(method, key, noisy, pairs, KNOWN, earlier=earlier)
        expected = sums_score(observed(noisy, pairs, KNOWN, method.ledger.entries[-1]), summed)
        assert torch.equal(found, expected)
    method.ledger.spend(entry("another"))
    assert scored(method, "another", hops[0], pairs, KNOWN).tolist() == [0, 0]


@pytest.mark.parametrize("max_grad_norm", [0.01, 100.0])
def test_clipped_gradients_add_up_to_the_sum_of_the_training(max_grad_norm):
    torch.manual_seed(0)
    method = DPGVAE(feature_dim=3, hidden_dim=6, latent_dim=4)
    inputs, normal = torch.randn(5, 2, 3 + CONTEXT_DIM), torch.randn(5, 2, 4)
    total = method.clipped_sum(inputs, normal, max_grad_norm)
    flat = torch.cat([total[name].flatten() for name, _ in method.networks.named_parameters()])
    found = clipped_gradients(method.networks, inputs, normal, max_grad_norm)
    torch.testing.assert_close(-found.double().sum(0), flat, rtol=1e-3, atol=1e-4)


def test_a_noisy_gradient_speaks_for_the_canary_that_it_holds():
    torch.manual_seed(0)
    method, pairs = (
        DPGVAE(feature_dim=3, hidden_dim=6, latent_dim=4),
        torch.tensor([[0, 3], [4, 6]]),
    )
    rows = torch.randn(9, 3 + CONTEXT_DIM)
    booked = entry("", noise_multiplier=0.01, sample_rate=0.5)
    networks = method.networks
    observer = SimpleNamespace(networks=networks, inputs=lambda _: rows)
    known = mean_clipped_gradients(networks, rows[undirected_edges(KNOWN)], 1.0).sum(0)
    directions = mean_clipped_gradients(networks, rows[pairs], 1.0)
    for likelier, direction in enumerate(directions):
        # Known edges are expected with half their sum, and are in with it.
        noisy = known / 2 + direction
        scores = edge_gradient_score(observed(noisy, pairs, KNOWN, booked, observer))
        assert int(scores.argmax()) == likelier
        assert float(scores[likelier]) > 0 > float(scores[1 - likelier])


# The command


@pytest.mark.parametrize("view", ["black_box", "white_box"])
@pytest.mark.parametrize("config", ["erdos_renyi_set", "dpgvae", "dpggan"])
def test_no_method_loses_more_than_it_claims(audit, capsys, config, view):
    # A confidence at which one test in a thousand fails of itself.
    options = ("--view", view, "--confidence", "0.999", "--privacy.epsilon", "1")
    steps = ("--trainer.max_epochs", "1") if config != "erdos_renyi_set" else ()
    code, result = audit("--config", config, *options, *steps)
    assert code == 0
    assert 0.9 < result["claimed_epsilon"] <= 1
    assert result["epsilon_lower_bound"] <= result["claimed_epsilon"]
    assert (result["canaries"], result["guesses"]) == (200, 100)  # one for each graph
    assert "verdict: not refuted" in capsys.readouterr().out


def test_missing_noise_of_the_counts_is_caught_by_the_release(audit, monkeypatch):
    monkeypatch.setattr(
        mechanisms, "_draw_discrete_laplace", lambda noise, rates: np.zeros(len(rates), np.int64)
    )
    code, result = audit("--config", "erdos_renyi_set", "--privacy.epsilon", "1")
    assert code == 1
    assert (result["correct"], result["view"]) == (100, "black_box")
    assert result["epsilon_lower_bound"] > 3 > result["claimed_epsilon"]


@pytest.mark.parametrize(
    "args",
    [
        ("gvae", *SHORT),
        ("dpgvae", "--model", "DPGVAEAsPublished", *SHORT),
    ],
)
def test_without_a_claim_there_is_nothing_to_refute(audit, capsys, args):
    code, result = audit("--config", *args, "--privacy.epsilon", ".inf")
    assert code == 0
    assert result["claimed_epsilon"] == "inf"
    assert result["correct"] == result["guesses"] == 100  # exact numbers of edges
    assert "nothing is claimed that could be refuted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            (*SUBGRAPHS, "--data.max_occurrences", "2"),
            "set data.init_args.max_occurrences to 1",
        ),
        (("--canaries", "30000"), "set --canaries to "),
    ],
)
def test_mistakes(fails, options, said):
    assert said in fails("audit", "--config", "erdos_renyi_set", *options)
