"""Scores of noisy values equal independent likelihood ratios and gradients."""

import math
from types import SimpleNamespace

import pytest
import torch

from lightning_dpg.apps.audit.scores.attackers import black_box_score
from lightning_dpg.apps.audit.scores.counts import degrees_score
from lightning_dpg.apps.audit.scores.gradients import _clipped_gradients, critic_gradient_score
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import ErdosRenyi, PrivGraph, RandomizedResponse
from lightning_dpg.papers.zheng2021.walk_lstm import WalkCritic
from lightning_dpg.privacy.dpsgd import ghost_clipped_gradient_sum
from lightning_dpg.privacy.events import Pure
from lightning_dpg.privacy.ledger import Budget, LedgerEntry
from lightning_dpg.privacy.sensitivity.degrees import degree_l1_sensitivity
from lightning_dpg.privacy.sensitivity.neighbor_sums import earlier_neighbor_sensitivity
from lightning_dpg.privacy.sensitivity.subgraph_counts import label_wedge_sensitivity
from tests.entries import entry
from tests.scoring import observed, scored
from tests.training import release_edges

KNOWN = make_graph(torch.tensor([[0, 1], [1, 2], [2, 3], [4, 5]]), 6)
PAIRS = torch.tensor([[0, 3], [1, 4]])


def test_degrees_weigh_as_the_likelihood_ratio_of_their_noise():
    noisy = torch.tensor([5, 1, 0, 3, 2, 9])
    epsilon, known = 0.8, torch.tensor([1, 2, 2, 1, 1, 1])
    read = LedgerEntry.proved("degrees", "degrees", Pure(epsilon), degree_l1_sensitivity)
    edge = torch.zeros(6, dtype=torch.long)
    for k, pair in enumerate(PAIRS):
        edge.zero_()[pair] = 1
        log_ratio = -epsilon / 2 * ((noisy - known - edge).abs() - (noisy - known).abs()).sum()
        found = degrees_score(observed(noisy, PAIRS, KNOWN, read))[k]
        assert float(found) == pytest.approx(float(log_ratio))


def test_a_number_of_edges_says_the_same_of_all_pairs():
    method, seen = ErdosRenyi(6), {}
    method.ledger.budget = Budget(0.8, 0.0)
    method.ledger.observer = lambda key, noisy: seen.update({key: noisy})
    release_edges(method, torch.tensor([[0, 1], [0, 3], [1, 2], [2, 3], [4, 5]]))
    noisy = seen["num_edges"]
    scores = scored(method, "num_edges", noisy, PAIRS, KNOWN)
    # Four edges are known, and the other canary is one more, or not.
    chances = [sum(math.exp(-0.8 * abs(int(noisy) - 4 - k - j)) for j in (0, 1)) for k in (0, 1)]
    assert scores.tolist() == pytest.approx([math.log(chances[1] / chances[0])] * 2)
    if int(noisy) >= 0:
        torch.testing.assert_close(black_box_score(method, None, PAIRS, KNOWN), scores)


@pytest.mark.parametrize("degree_share", [0.0, 0.5])
def test_reports_weigh_their_epsilon(degree_share):
    method = RandomizedResponse(6, "spectral", degree_share=degree_share, rank=2)
    method.ledger.budget, seen = Budget(200.0, 0.0), {}
    method.ledger.observer = lambda key, noisy: seen.update(
        {key: scored(method, key, noisy, PAIRS, KNOWN)}
    )
    edges = torch.tensor([[0, 1], [0, 3], [1, 2], [2, 3], [4, 5]])
    release_edges(method, edges)  # so much that nothing is wrong but once in 10 ** 4 runs
    weight = min((0.95 - degree_share) * 200, 100.0)  # which is taken for certain
    torch.testing.assert_close(seen["edge_reports"], torch.tensor([weight, -weight]))
    assert ("degrees" in seen) == bool(degree_share)
    inside, outside = black_box_score(method, None, PAIRS, KNOWN).tolist()
    assert inside >= weight > -weight >= outside


def test_a_choice_weighs_as_the_likelihood_ratio_of_two_candidates():
    """Node 2 chooses between the communities of nodes 0 and 1, to which it may have an edge."""
    method, rate = PrivGraph(3, num_communities=2, resolution=0.0), 1.2
    method.ledger.budget = Budget(10.0, 0.0)
    method.ledger.spend(
        entry("pure", name="communities", proof="earlier_neighbor_sensitivity", epsilon=rate)
    )
    method.degrees = torch.tensor([3, 2, 1])
    nothing = make_graph(torch.empty(0, 2, dtype=torch.long), 3)
    pair = torch.tensor([[0, 2]])

    def score(choice):
        chosen = torch.tensor([0, 1, choice])
        return float(scored(method, "communities", chosen, pair, nothing))

    # Two equal candidates are chosen alike; softmax stands for the law of the choices.
    with_edge = math.exp(rate) / (1 + math.exp(rate))
    assert score(0) == pytest.approx(math.log(with_edge / 0.5))
    assert score(1) == pytest.approx(math.log((1 - with_edge) / 0.5))
    first = torch.tensor([[0, 1]])  # nodes that choose nothing
    assert float(scored(method, "communities", torch.tensor([0, 1, 0]), first, nothing)) == 0


def test_the_last_choice_of_a_hub_weighs_a_third_of_that_of_another_node():
    """Hub 2 and node 3 choose between the communities of hubs 0 and 1, to which they may have an edge."""
    method, rate = PrivGraph(5, num_communities=2, resolution=0.0), 1.2
    method.ledger.budget = Budget(10.0, 0.0)
    method.ledger.spend(
        LedgerEntry.proved("communities", "c", Pure(rate), earlier_neighbor_sensitivity, 3)
    )
    method.degrees = torch.tensor([4, 3, 3, 1, 1])
    nothing = make_graph(torch.empty(0, 2, dtype=torch.long), 5)
    chosen, pairs = torch.tensor([0, 1, 1, 1, 0]), torch.tensor([[1, 2], [1, 3], [0, 3]])
    # Of 12 ends of edges 10 are at hubs: hub 2 expects 2.5 edges to them, and prefers its community.
    before = 1 / (1 + math.exp(-rate / 3 * 0.3 * 2.5))
    grown = [before / (before + (1 - before) * math.exp(-rate / 3)) / before]
    grown += [2 / (1 + math.exp(-rate)), 2 / (1 + math.exp(rate))]
    found = scored(method, "communities", chosen, pairs, nothing)
    assert found.tolist() == pytest.approx([math.log(ratio) for ratio in grown])


def test_wedges_weigh_as_their_likelihood_ratio():
    """Node 3 has the neighbors 0, 1, 2 and one slot or two; a canary at it changes their wedges."""
    method, rate = PrivGraph(6), 0.9
    method.ledger.budget = Budget(20.0, 0.0)
    method.ledger.spend(
        LedgerEntry.proved("community_wedges", "w", Pure(4 * rate), label_wedge_sensitivity)
    )
    method.degrees, method.communities = torch.tensor([2, 2, 2, 5, 2, 2]), torch.arange(6) % 2
    known, noisy = torch.tensor([[0, 3], [1, 3], [2, 3], [4, 5]]), torch.tensor([2, 0])
    without, changed = method.wedges_by_labels(known.numpy()), 0
    for pair in ([3, 4], [3, 5], [0, 1], [0, 4]):
        given = method.wedges_by_labels(torch.cat([known, torch.tensor([pair])]).numpy())
        away = [int(abs(noisy.numpy() - counts).sum()) for counts in (without, given)]
        found = scored(
            method, "community_wedges", noisy, torch.tensor([pair]), make_graph(known, 6)
        )
        assert float(found) == pytest.approx(rate * (away[0] - away[1]))
        changed += (without != given).any()
    assert changed


def test_clipped_gradients_add_up_to_the_ghost_sum():
    torch.manual_seed(0)
    critic = WalkCritic(6, 5, 4, frozen=True)
    pairs = torch.tensor([[0, 1], [2, 5], [1, 4]])
    both = critic.embed(torch.cat([pairs, pairs.flip(1)]))
    for norm in (0.01, 100.0):
        sums = ghost_clipped_gradient_sum(critic, lambda x: -critic(x), both, norm)
        flat = torch.cat([sums[n].flatten() for n, _ in critic.named_parameters()])
        added = 2 * _clipped_gradients(critic, pairs, norm).sum(0)
        torch.testing.assert_close(added.double(), flat, rtol=1e-5, atol=1e-6)


def test_a_noisy_gradient_speaks_for_the_canary_that_it_holds():
    torch.manual_seed(0)
    critic = WalkCritic(6, 12, 8, frozen=True)
    method = SimpleNamespace(critic=critic)
    read = entry(
        name="critic gradient",
        proof="edge_gradient_sensitivity",
        noise_multiplier=0.01,
        sample_rate=0.5,
    )
    # Known edges are expected with half their sum, and are in with it.
    known = _clipped_gradients(critic, torch.tensor([[0, 1], [1, 2], [2, 3], [4, 5]]), 1.0).sum(0)
    first, second = _clipped_gradients(critic, PAIRS, 1.0)
    for direction, likelier in ((first, 0), (second, 1)):
        scores = critic_gradient_score(observed(known / 2 + direction, PAIRS, KNOWN, read, method))
        assert int(scores.argmax()) == likelier
        assert float(scores[likelier]) > 0 > float(scores[1 - likelier])
