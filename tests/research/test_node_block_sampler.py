import math

import networkx as nx
import pytest
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods import NodeBlockSampler
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.release.card.reads import read_of
from lightning_dpg.release.statement import privacy_statement
from lightning_dpg.research import label_groups
from lightning_dpg.research.label_groups import label_law
from tests.scoring import scored
from tests.training import quiet_trainer, release_edges

PLANTED = from_networkx(nx.planted_partition_graph(2, 60, 0.4, 0.02, seed=0))


def released(graph, epsilon, **settings):
    method = NodeBlockSampler(**settings, num_nodes=graph.num_nodes)
    method._noise = NoiseSource(unsafe_seed=0)
    method.ledger.budget = Budget(epsilon, 0.0)
    release_edges(method, undirected_edges(graph))
    return method


def test_labels_are_drawn_at_the_cost_of_one_edge(monkeypatch):
    rates = []

    def law(edges, degrees, num_labels, num_edges, rate):
        rates.append(rate)
        return label_law(edges, degrees, num_labels, num_edges, rate)

    monkeypatch.setattr(label_groups, "label_law", law)
    method = released(PLANTED, 10.0, max_degree=40, sweeps=2)
    assert rates == pytest.approx([0.94 * 10 / 40])
    assert {entry.record for entry in method.ledger.entries} == {"edges of a node"}
    assert {entry.relation for entry in method.ledger.entries} == {"node"}
    assert [entry.sensitivity for entry in method.ledger.entries] == [40, 40, 40]


def test_both_conditions_are_stated():
    method = released(PLANTED, 10.0, max_degree=40, sweeps=2)
    method._noise = NoiseSource()
    guarantee = privacy_statement(method)["guarantee"]
    assert "no node has more than 40 edges" in guarantee
    assert "and the Markov chain over labels has come to its stationary law" in guarantee
    assert "node-level (320, 0)-DP only" in guarantee
    (labels,) = [e for e in privacy_statement(method)["entries"] if e["key"] == "block_labels"]
    assert labels["public"]["epsilon without the chain, by the guard"] == 320
    # The budget book has no number without the bound on degrees.
    assert method.epsilon_in_any_case() is None
    # A guard that is as good for 40 edges as the budget leaves the bound on the degrees.
    free = released(PLANTED, 10.0, max_degree=40, sweeps=2, guard_epsilon=0.25)
    assert free.condition() == "no node has more than 40 edges, in this graph and its neighbors"
    (guard,) = free.ledger.entries
    assert (guard.key, guard.event.epsilon, guard.sensitivity) == ("edge_reports", 10.0, 40)
    assert free.plan(Budget(10.0, 0.0), 1) == [guard]
    free._noise = NoiseSource()
    (read,) = [read_of(entry) for entry in privacy_statement(free)["entries"]]
    assert "a report is wrong with probability 0.438" in read["description"]  # 1 / (1 + e^.25)
    pairs, answers = torch.tensor([[0, 1], [0, 2]]), torch.tensor([0])
    scores = scored(free, "edge_reports", answers, pairs, PLANTED)
    assert scores.tolist() == pytest.approx([0.25, -0.25])
    bare = released(PLANTED, 10.0, max_degree=40, sweeps=2, guard_epsilon=math.inf)
    assert "nothing is guaranteed without the chain" in bare.condition()


def test_a_larger_degree_is_refused_before_anything_is_spent():
    method = NodeBlockSampler(3, 51)
    with pytest.raises(MisconfigurationException, match="max_degree 3 is assumed"):
        quiet_trainer(PrivacyAccountant(8.0, 0.0)).fit(
            method, EdgeListDataModule(from_networkx(nx.star_graph(50)))
        )
    assert not method.ledger.entries
    with pytest.raises(ValueError, match="max_degree"):
        NodeBlockSampler(0, 51)


def test_planted_groups_are_found_and_drawn():
    method = released(PLANTED, 30.0, max_degree=40, sweeps=30)
    halves = method.communities.view(2, 60).double().mean(dim=1)
    assert abs(float(halves[0] - halves[1])) > 0.9
    degrees = method.degrees
    assert int(degrees.max() - degrees.min()) <= 1
    assert int(degrees.sum()) == 2 * int(method.num_edges)
    drawn = method.sample_edges(torch.Generator().manual_seed(0))
    assert float(((drawn[:, 0] < 60) == (drawn[:, 1] < 60)).double().mean()) > 0.85
