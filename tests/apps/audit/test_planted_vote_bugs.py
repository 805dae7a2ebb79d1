"""Audits detect mistakes planted in the methods that learn classes of nodes, and half of Gaussian noise.

One fit cannot show half of Gaussian noise, however many canaries it has. All guesses of many fits do,
see :func:`lightning_dpg.apps.audit.bounds.share_lower_bound`.
"""

from functools import partial

import pytest
import torch

from lightning_dpg.apps.audit.canaries import Star, plant_stars
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods import (
    AggregationPerturbation,
    AttributeMoments,
    NeighborVotes,
    NodeNeighborVotes,
    neighbor_votes,
)
from lightning_dpg.nn.class_student import column_student
from lightning_dpg.privacy import aggregation_perturbation
from tests.apps.audit.test_planted_bugs import Row, half, is_caught, off
from tests.attributed import classified, classified_twins, twins
from tests.planting import audited

COUNT, MOST = 32, 6
PAIRS = [[2 * pair, 2 * pair + 1] for pair in range(COUNT)]
TWINS = partial(classified_twins, COUNT)
VOTES = partial(NeighborVotes, rank=COUNT, rounds=2)
SUMS = partial(AggregationPerturbation, rank=COUNT, encoder_steps=1, classifier_steps=1)
NODES = partial(NodeNeighborVotes, MOST, rank=2 * COUNT)
TABLES = ("neighbor_votes_1", "neighbor_votes_2")


def strangers():
    """Nodes of two known classes, without an edge and with a word each; they have room for stars."""
    nodes = torch.arange(COUNT * (MOST + 2))
    graph = make_graph(torch.empty(0, 2, dtype=torch.long), len(nodes))
    return classified(graph, torch.eye(len(nodes)), nodes % 2)


def stars(data):
    """Plant stars of six edges, whose centers have one other neighbor."""
    return plant_stars(data, Star(MOST, 1), COUNT, torch.Generator().manual_seed(0))


def sensitivity_of_one(patch):
    """The sensitivity of a directed edge, as in code that counts each undirected edge once."""
    patch.setattr(neighbor_votes, "vote_moment_sensitivity", lambda: 1.0)


def noise_of_the_authors(patch):
    """The noise of GAP's code: the sensitivity of a directed edge in place of the root of 2."""
    patch.setattr(aggregation_perturbation, "aggregation_sensitivity", lambda: 1.0)


ROWS = {
    "NeighborVotes votes half": Row(
        partial(VOTES, moment_share=0.1), 4, PAIRS, 80, half(*TABLES), 1e-5, TWINS
    ),
    "NeighborVotes moment of sensitivity 1": Row(
        partial(VOTES, attribute_share=0.05, moment_share=0.9),
        *(4, PAIRS, 80, sensitivity_of_one, 1e-5, TWINS),
    ),
    "NeighborVotes attributes off": Row(VOTES, 1, PAIRS, 6, off("attribute_moment"), 1e-5, TWINS),
    "AggregationPerturbation with the authors' noise": Row(
        SUMS, 4, PAIRS, 120, noise_of_the_authors, 1e-5, TWINS
    ),
    "NodeNeighborVotes attributes off": Row(
        NODES, 1, stars, 6, off("clipped_attribute_moment"), 1e-5, strangers
    ),
    "NodeNeighborVotes half": Row(NODES, 4, stars, 40, half(), 1e-5, strangers),
    "AttributeMoments moment half": Row(
        partial(AttributeMoments, rank=COUNT, degree_share=0.02),
        *(4, PAIRS, 60, half("attribute_moment")),
        delta=1e-5,
        read=partial(twins, COUNT),
    ),
}


@pytest.fixture(autouse=True)
def _public_values_once(monkeypatch):
    """What methods find in public columns and classes is found once: all fits of a test have the same."""
    found = []

    def student_of_columns(*public):
        found.extend([] if found else column_student(*public))
        return found

    monkeypatch.setattr(neighbor_votes, "column_student", student_of_columns)
    # A factor of confidence that is not chosen takes half of the rest of the time.
    monkeypatch.setattr(neighbor_votes, "confidence", lambda *public: (4.0, 0.0))


@pytest.mark.parametrize("name", list(ROWS))
def test_a_planted_bug_is_caught(name):
    assert is_caught(ROWS[name])


def test_the_proved_epsilon_comes_near_the_claim_from_below():
    """Gaussian noise without sampling leaves an audit no room but that of chance."""
    audit = audited(SUMS, TWINS, (4.0, 1e-5), PAIRS, 200, confidence=0.999)
    assert not audit.refuting
    assert 0.6 * 4.0 < audit.together.all_guesses.gaussian_epsilon < 4.0
