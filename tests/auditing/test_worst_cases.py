"""Canaries of classifiers move noiseless moments and tables by the whole sensitivity."""

import pytest
import torch

from lightning_dpg.auditing.canaries import find_sites
from lightning_dpg.auditing.worst_cases import Star, make_twins, plant_stars, star_of
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods import NeighborVotes, NodeNeighborVotes
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.sensitivity import (
    node_vote_moment_sensitivity,
    vote_moment_sensitivity,
    vote_sensitivity,
)
from tests.attributed import classified_groups
from tests.training import quiet_trainer

BUDGET = Budget(float("inf"), 1e-5)


def exact(method, data):
    """Values that a method reads, without noise, and the rows of which the last one has sums."""
    seen = {}
    method.ledger.observer = lambda key, value: seen.setdefault(key, value)
    quiet_trainer(PrivacyAccountant(*BUDGET)).fit(method, data)
    return seen


def moved(make, data, edges):
    """Distances of what a method reads with some more edges from what it reads without them."""
    before = exact(make(), data)
    find_sites(data).insert(edges)
    after = exact(make(), data)
    return {key: float((after[key] - before[key]).double().norm()) for key in before}


def test_an_edge_between_twins_moves_the_moment_by_its_sensitivity():
    data, pairs = classified_groups(), torch.tensor([[3, 40], [21, 55]])
    given = data.graph.x.clone(), data.graph.y.clone()
    assert not set(map(tuple, pairs.tolist())) & set(map(tuple, data.edges.tolist()))
    make_twins(data, pairs)
    far = moved(lambda: NeighborVotes(rank=8, rounds=1), data, pairs[:1])
    # Public rows are single numbers of 32 bits, so that their lengths are 1 but for that.
    assert far["vote_moment"] == pytest.approx(vote_moment_sensitivity(), rel=1e-5)
    assert far["num_edges"] == 1
    assert torch.equal(data.graph.x, given[0])  # the source stays
    assert torch.equal(data.graph.y, given[1])
    x, y = data.train_graph.x, data.train_graph.y
    assert torch.equal(x[pairs[:, 0]], x[pairs[:, 1]])
    assert y[pairs].tolist() == [[0, 0], [0, 0]]  # the class of the end that has one


def test_an_edge_moves_a_table_by_its_sensitivity():
    """Beliefs of a table follow from the moment, which is given here."""
    data, method = classified_groups(), NeighborVotes(rank=8, rounds=1)
    exact(method, data)
    first, second = method.summed[[3, 40]].square().sum(1)
    assert float((first + second).sqrt()) == pytest.approx(vote_sensitivity(), rel=1e-5)


def test_a_star_moves_the_clipped_moment_by_its_sensitivity():
    data, most = classified_groups(), 13
    star = star_of(NodeNeighborVotes(most, rank=8), BUDGET)
    assert star == Star(most, -(-most // 6))
    stars = plant_stars(data, star, 2, torch.Generator().manual_seed(0))
    assert stars.shape == (2, most, 2)
    edges = undirected_edges(data.train_graph)
    center = int(stars[0].flatten().mode().values)
    leaves = [node for node in stars[0].unique().tolist() if node != center]
    assert not torch.isin(edges, torch.tensor(leaves)).any()
    # One vote of each of two other classes, so often that they outweigh the clip.
    assert (edges == center).sum() == 2 * star.others
    far = moved(lambda: NodeNeighborVotes(most, rank=8), data, stars[0])
    bound = node_vote_moment_sensitivity(most, most / 6)
    assert far["clipped_vote_moment"] == pytest.approx(bound, rel=1e-5)
    assert bound > most + most / 6  # as if the node had no other neighbor


def test_stars_that_have_no_place_are_refused():
    data, source = classified_groups(), torch.Generator()
    with pytest.raises(CommandError, match="max_edges"):
        plant_stars(data, Star(50, 10), None, source)
    data.train_graph.y = None
    with pytest.raises(CommandError, match="no classes"):
        plant_stars(data, Star(2, 0), None, source)
