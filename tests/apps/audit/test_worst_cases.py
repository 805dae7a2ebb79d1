"""Canaries of classifiers move noiseless moments and sums by the whole sensitivity."""

import pytest
import pytorch_lightning as pl
import torch
from torch.nn.functional import normalize

from lightning_dpg.apps.audit.canaries import Star, find_sites, make_twins, plant_stars, star_of
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.edge_statistics import neighbor_sums
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods import (
    NeighborVotes,
    NodeNeighborVotes,
    neighbor_votes,
)
from lightning_dpg.privacy.ledger import Budget
from tests.attributed import classified_groups
from tests.training import quiet_trainer

BUDGET = Budget(float("inf"), 1e-5)
FINITE = Budget(1.0, 1e-5)


def exact(method, data, released=None):
    """Values that a method reads, of which ``released`` ones are published in place of others."""
    seen = {}

    def publish(key, value):
        seen[key] = value
        return value if released is None else released[key]

    method.ledger.publish = publish
    quiet_trainer(PrivacyAccountant(*BUDGET)).fit(method, data)
    return seen


def moved(make, data, edges):
    """Distances of what a method reads with some more edges, over the proved sensitivities.

    A sensitivity is a bound for equal earlier releases, so the second run publishes those of the first.
    """
    pl.seed_everything(0, verbose=False)
    before, bounds = exact(make(), data), {read.key: read for read in make().plan(FINITE, 1)}
    find_sites(data).insert(edges)
    pl.seed_everything(0, verbose=False)
    after = exact(make(), data, before)
    return {
        key: float((after[key] - value).double().norm()) / bounds[key].sensitivity
        for key, value in before.items()
    }


def test_an_edge_between_twins_moves_all_reads_by_their_sensitivities():
    data, pairs = classified_groups(), torch.tensor([[3, 40], [21, 55]])
    given = data.graph.x.clone(), data.graph.y.clone()
    assert not set(map(tuple, pairs.tolist())) & set(map(tuple, data.edges.tolist()))
    make_twins(data, pairs)
    far = moved(lambda: NeighborVotes(rank=8, rounds=2), data, pairs[:1])
    # A millionth of a sensitivity is for rounding, and rows have 32 bits.
    assert len(far) == 5
    assert all(part == pytest.approx(1, rel=1e-5) for part in far.values())
    assert torch.equal(data.graph.x, given[0])  # the source stays
    assert torch.equal(data.graph.y, given[1])
    x, y = data.train_graph.x, data.train_graph.y
    assert torch.equal(x[pairs[:, 0]], x[pairs[:, 1]])
    assert y[pairs].tolist() == [[0, 0], [0, 0]]  # the class of the end that has one


def test_beliefs_that_are_not_released_move_votes_by_more_than_their_sensitivity(monkeypatch):
    data, pair = classified_groups(), torch.tensor([[3, 40]])
    honest = moved(lambda: NeighborVotes(rank=8, rounds=1), data, pair)
    assert max(honest.values()) < 1 + 1e-5  # nodes of other attributes
    data, belief_rows = classified_groups(), neighbor_votes.belief_rows

    def of_raw_edges(beliefs):
        """Directions of beliefs that follow from edges which nobody has paid for."""
        rows = belief_rows(beliefs)
        return normalize(rows + neighbor_sums(data.edges, rows))

    monkeypatch.setattr(neighbor_votes, "belief_rows", of_raw_edges)
    assert moved(lambda: NeighborVotes(rank=8, rounds=1), data, pair)["neighbor_votes_1"] > 1.05


def test_a_star_moves_the_clipped_moments_by_their_sensitivities():
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
    assert far["clipped_vote_moment"] == pytest.approx(1, rel=1e-5)
    # Directions of classes add up to 0. Attributes of other nodes need not be opposite to a row, and
    # without them the votes of the center turn from 0: 7 / 8 of the sensitivity.
    assert 7 / 8 < far["clipped_attribute_moment"] < 1


def test_stars_that_have_no_place_are_refused():
    data, source = classified_groups(), torch.Generator()
    with pytest.raises(CommandError, match="max_edges"):
        plant_stars(data, Star(50, 10), None, source)
    data.train_graph.y = None
    with pytest.raises(CommandError, match="no classes"):
        plant_stars(data, Star(2, 0), None, source)
