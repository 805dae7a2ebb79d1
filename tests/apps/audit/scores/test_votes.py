"""Scores of votes are likelihood ratios, and a release gives as much away as its noisy values.

All but one of them: of the moment of attributes it holds the metric alone.
"""

import pytest
import torch

from lightning_dpg.apps.audit.canaries import Star, find_sites, make_twins, plant_stars
from lightning_dpg.apps.audit.scores.attackers import black_box_score
from lightning_dpg.apps.audit.scores.rows import vote_moment_score
from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.graph.edge_statistics import neighbor_sums
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import AggregationPerturbation, NeighborVotes, NodeNeighborVotes
from lightning_dpg.methods.neighbor_votes import clipped
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.meaning import CLIP
from tests.attributed import classified_groups
from tests.entries import entry
from tests.scoring import observed, scored
from tests.small_methods import short_fits  # noqa: F401  # a fixture
from tests.training import quiet_trainer

METHODS = {
    "mean of tables": (lambda: NeighborVotes(rank=8), 1.0),
    "tables": (lambda: NeighborVotes(rank=8, rounds=2), 30.0),  # clear votes: beliefs of their own
    "node": (lambda: NodeNeighborVotes(6, rank=8), 8.0),
    "sums": (lambda: AggregationPerturbation(encoder_steps=2, classifier_steps=2), 1.0),
}
ATTRIBUTE_MOMENTS = {"attribute_moment", "clipped_attribute_moment"}


def both_scores(method, epsilon):
    """Scores by each noisy value and by the release of three canaries, of which two are in."""
    data, pairs = classified_groups(), torch.tensor([[0, 41], [25, 48], [7, 56]])
    if isinstance(method, NodeNeighborVotes):
        pairs = plant_stars(data, Star(6, 1), 3, torch.Generator().manual_seed(0))
    else:
        make_twins(data, pairs)
    sites, scores, noisy_values = find_sites(data), {}, {}
    sites.insert(pairs[:2].view(-1, 2))

    def observe(key, noisy):
        found = scored(method, key, noisy, pairs, sites.known_graph, data, noisy_values)
        scores[key], noisy_values[key] = found, noisy

    method.ledger.observer = observe
    quiet_trainer(PrivacyAccountant(epsilon, 1e-5)).fit(method, data)
    method.ledger.observer = None
    with torch.no_grad():
        return scores, black_box_score(method.eval(), data, pairs, sites.known_graph)


@pytest.mark.parametrize("name", METHODS)
def test_a_release_holds_all_noisy_values_but_the_moment_of_attributes(name):
    make, epsilon = METHODS[name]
    scores, found = both_scores(make(), epsilon)
    expected = sum(score for key, score in scores.items() if key not in ATTRIBUTE_MOMENTS)
    # The sums of hops are released in single precision.
    torch.testing.assert_close(found, expected.double(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_without_noise_each_value_and_the_release_tell_all_canaries(name):
    """The rows and beliefs of a score are those of its release, and not of a later one."""
    scores, found = both_scores(METHODS[name][0](), float("inf"))
    scores.pop("num_edges", None)  # of all canaries together
    assert len(scores) >= 2
    for key, score in {**scores, "release": found}.items():
        assert (score > 0).tolist() == [True, True, False], key


@pytest.mark.parametrize("clip", [torch.inf, 1.0])
def test_a_moment_weighs_as_the_likelihood_ratio_of_its_noise(clip):
    source = torch.Generator().manual_seed(0)
    rows, beliefs = torch.randn(2, 9, 3, generator=source, dtype=torch.double)
    known = torch.tensor([[0, 4], [4, 7], [1, 8], [2, 3]])
    canaries = torch.tensor([[[0, 1], [0, 2]]])
    read = entry(
        key="clipped_vote_moment",
        name="moment",
        relation=Relation.EDGES_OF_NODE,
        sensitivity=3.0,
        proof="node_vote_moment_sensitivity",
        public={CLIP: clip},
        noise_multiplier=40.0,
    )

    def moment(edges):
        return rows.T @ clipped(neighbor_sums(edges, beliefs), clip)

    without, with_star = moment(known), moment(torch.cat([known, canaries[0]]))
    noisy = torch.randn(3, 3, generator=source, dtype=torch.double)
    squares = [(noisy - mean).square().sum() for mean in (without, with_star)]
    found = vote_moment_score(observed(noisy, canaries, make_graph(known, 9), read), rows, beliefs)
    expected = float(squares[0] - squares[1]) / 2 / read.scale**2
    # The estimate is linear: exact up to the square of the change over the variance.
    assert float(found) == pytest.approx(expected, rel=1e-2)
