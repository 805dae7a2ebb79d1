"""Audits detect mistakes planted in the noise of every private method.

Each row states what is audited: the view is ``white_box``, the epsilon is that of the whole method,
and a fit has so many canaries. A halved sensitivity is halved noise, since noise is in proportion to
it. Half of the noise of a read is harder to see than none: where it is caught, there is no row for the
latter, and a read that several methods share has one row. Rows whose bug no audit of this size can find
are below, each with the reason. The rows of methods for attributes are in
``test_planted_attribute_bugs.py``, those of methods for sets of graphs in ``test_planted_set_bugs.py``,
those of classifiers and of half of Gaussian noise in ``test_planted_vote_bugs.py``.

What no audit of this size finds:

* Half of Gaussian noise (products and eigenvalues of PrivCom, steps of AttributeEncoder, degrees and steps
  of DPNetGAN, sums and steps of DPGVAE and DPGGAN, sums of CentralGromovWasserstein): noise of (epsilon,
  delta) loses epsilon with a chance of about delta only. Of 1,000 canaries that do not share anything, the
  best attacker proves less than epsilon. All guesses of a hundred fits with canaries of the whole
  sensitivity show it; random pairs move less.
* Half of the wedges of BTER: the sensitivity of 8 is a loose bound. A canary changes the counts by 4 at
  most, so that half of the noise is still enough for it.
* Half of the wedges of PrivGraph: a canary changes the counts by 2 at most in 98 of 100 cases, half of the
  sensitivity of 4, which takes a wedge of another community at each end.
* Half of the dendrogram of HRG: the sensitivity of the likelihood is that of a branch with half of all
  pairs. A canary changes it by less than half of that, and other canaries of its branch hide it.
* Half of the joint degrees of DK2: it takes 600 fits with one canary between the centers of two stars. The
  scale of the noise is tried in ``tests/papers/test_dk2.py``.
* A wrong rate of DPNetGAN: the gradients of edges are nearly parallel. With epsilon 1 booked for a tenth of
  the rate, 49 of 60 guesses were right, which takes about 300 fits to refute.
* Steps off, clipping off and a wrong rate of DPGVAE and DPGGAN: the gradients of the edges of a set are
  nearly parallel, and one per graph hides the canaries of a step from the score. Their releases before the
  steps have rows.
* Half of the graphlets of PrivateGraphKernel: the sensitivity holds for the densest graphs of
  ``max_degree``; a canary closes a few of the graphlets that it counts.
* Reports off and half, and half of the updates of LDPGromovWasserstein: the claim is for the exchange of
  the whole graph of a client, and one edge of it moves its rows, or its update, by a small part of their
  range. Signs are random without noise, too: they round.
"""

from functools import partial
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.stats import norm

from lightning_dpg.apps.audit.bounds import epsilon_lower_bound
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.wedges import count_wedges
from lightning_dpg.methods import (
    BTER,
    DK2,
    HRG,
    ChungLu,
    DPNetGAN,
    ErdosRenyi,
    NodeDegrees,
    PrivCom,
    PrivGraph,
    RandomizedResponse,
    RandomizedResponsePrivCom,
)
from lightning_dpg.methods.single_graph.bter import degree_classes
from lightning_dpg.privacy.accounting import gdp_delta
from lightning_dpg.privacy.sensitivity.subgraph_counts import wedge_sensitivity
from tests.planting import audited, plant, plant_in_steps, plant_no_clipping

LES_MISERABLES = nx.convert_node_labels_to_integers(nx.les_miserables_graph())


def data_of(graph):
    """A data module that reads a graph quickly, as audits fit hundreds of times."""
    edges = torch.tensor([sorted(edge) for edge in graph.edges]).view(-1, 2)
    return partial(EdgeListDataModule, make_graph(edges, len(graph)))


class Row(NamedTuple):
    """A planted bug: the method, its audit, and the bug."""

    make: Any
    epsilon: float
    canaries: Any
    fits: int
    bug: Any
    delta: float = 0.0
    read: Any = data_of(LES_MISERABLES)
    epochs: int = 1


def off(*names):
    """No noise at all, of some releases or of all."""
    return partial(plant, factor=0, keys=names or None)


def half(*names):
    """Half of the noise, as of half the sensitivity, of some releases or of all."""
    return partial(plant, factor=0.5, keys=names or None)


# Two stars, whose centers are the nodes 0 and 201.
star_200 = data_of(nx.disjoint_union(nx.star_graph(200), nx.star_graph(200)))
leaves_200 = [[i, 201] for i in range(1, 101)]

NODE_DEGREES = partial(NodeDegrees, max_degree=1)
free_nodes = data_of(nx.disjoint_union(nx.path_graph(4), nx.empty_graph(26)))
free_pair = [[10, 20]]

ROWS = {
    "ErdosRenyi half": Row(ErdosRenyi, 2, 1, 300, half()),
    "ChungLu half": Row(ChungLu, 2, 16, 80, half()),
    "ChungLu ordered half": Row(ChungLu, 2, 4, 900, half("ordered_degrees")),
    "ChungLu by node half": Row(partial(ChungLu, sequence_share=0.05), 2, 16, 80, half("degrees")),
    "BTER mixing half": Row(
        partial(
            BTER, mixing_share=0.85, clustering_share=0.05, count_share=0.02, sequence_share=0.03
        ),
        *(2, 4, 150, half("degree_mixing")),
    ),
    "BTER wedges off": Row(BTER, 1, 6, 75, off("wedges")),
    # At D = 1 an edge between two free nodes changes as much as all edges of a node may change.
    "NodeDegrees half": Row(NODE_DEGREES, 2, free_pair, 300, half(), read=free_nodes),
    "PrivGraph choices half": Row(
        partial(PrivGraph, num_communities=2, degree_share=0.08, block_share=0.02, resolution=0.0),
        *(2, leaves_200, 20, half("communities")),
        read=star_200,
    ),
    "PrivGraph blocks half": Row(
        partial(PrivGraph, degree_share=0.1, block_share=0.83, class_share=0.01),
        *(2, 4, 150, half("community_links")),
    ),
    "PrivGraph wedges off": Row(PrivGraph, 1, 6, 75, off("community_wedges")),
    "PrivGraph classes half": Row(
        partial(PrivGraph, degree_share=0.1, class_share=0.78), 2, 4, 150, half("class_links")
    ),
    "DK2 joint off": Row(DK2, 2, 8, 20, off("joint_degrees")),
    "RandomizedResponse half": Row(RandomizedResponse, 2, 32, 100, half()),
    "RandomizedResponse spectral half": Row(
        partial(RandomizedResponse, denoise="spectral", rank=8), 2, 32, 15, half()
    ),
    "RandomizedResponse degrees half": Row(
        partial(RandomizedResponse, denoise="spectral", degree_share=0.6, rank=8),
        *(2, 16, 120, half()),
    ),
    "HRG off": Row(partial(HRG, steps_per_node=100), 2, 16, 25, off()),
    "HRG branches half": Row(
        partial(HRG, steps_per_node=100, dendrogram_share=0.1), 2, 4, 200, half("branch_edges")
    ),
    "PrivCom products off": Row(PrivCom, 2, 16, 12, off("products"), delta=1e-5),
    "PrivCom reports half": Row(RandomizedResponsePrivCom, 2, 32, 25, half("edge_reports")),
}

SMALL = {
    "batch_size": 16,
    "sample_rate": 0.9,
    "generator_dim": 8,
    "critic_dim": 16,
    "num_samples": 100,
}
NETGAN = partial(DPNetGAN, degree_share=0.0, count_epsilon=0.02, max_grad_norm=0.02, **SMALL)

ROWS |= {
    "DPNetGAN degrees off": Row(
        partial(DPNetGAN, degree_share=0.5, **SMALL), 1, 16, 8, off("degrees"), delta=1e-5
    ),
    "DPNetGAN steps off": Row(
        *(NETGAN, 1, 8, 12, partial(plant_in_steps, factor=0)),
        delta=1e-5,
        epochs=3,
    ),
    # The smaller the norm, the farther unclipped gradients stand out from noise in proportion to it.
    "DPNetGAN clipping off": Row(
        partial(NETGAN, max_grad_norm=0.005),
        *(1, 8, 40, plant_no_clipping),
        delta=1e-5,
        read=free_nodes,  # coins of the sampling of many edges would hide a canary
        epochs=3,
    ),
}


def test_half_of_gaussian_noise_is_beyond_1000_canaries():
    count, delta = 1000, 1e-5
    for epsilon in (1, 2, 8):
        mu = 2 * brentq(lambda m: gdp_delta(m, epsilon) - delta, 1e-3, 20)  # noqa: B023
        for share in (0.5, 0.125, 0.03):
            # Scores ascend with the noisy value, of mean 0 or mu: both tails are alike.
            edge = brentq(lambda x: norm.sf(x) + norm.sf(x - mu) - share, -20, 20)  # noqa: B023
            right = norm.sf(edge - mu) / (norm.sf(edge - mu) + norm.sf(edge))
            guesses = int(count * share)
            proved = epsilon_lower_bound(count, guesses, round(guesses * right), delta)
            assert proved < epsilon


def test_a_canary_changes_the_wedges_by_half_of_their_sensitivity_at_most():
    edges = np.array([sorted(edge) for edge in LES_MISERABLES.edges])
    degrees = np.bincount(edges.ravel())
    slots, classes = np.where(degrees > 1, -(-degrees // 4), 0), degree_classes(degrees)
    counts = partial(count_wedges, slots=slots, classes=classes, closures_per_edge=2, seed=0)
    before, changes = counts(edges), []
    for pair in list(nx.non_edges(LES_MISERABLES))[::5]:
        both = np.concatenate([edges, [sorted(pair)]])
        changes.append(np.abs(counts(both) - before).sum())
    assert 2 * max(changes) <= wedge_sensitivity(2)
    assert np.mean(np.array(changes) > 0) > 0.4


def check(row, is_for_a_bug=False):
    with pytest.MonkeyPatch.context() as patch:
        if row.bug:
            row.bug(patch)
        budget, keys = (row.epsilon, row.delta), getattr(row.bug, "keywords", {}).get("keys")
        return audited(
            *(row.make, row.read, budget, row.canaries, row.fits, row.epochs, keys),
            is_for_a_bug=is_for_a_bug,
        )


def is_caught(row):
    """Whether one of up to three audits with fresh noise refutes the claim, maybe before its end.

    An audit that misses the bug with the chance p lets it escape three times with the chance p^3: a
    row that is caught in 95 of 100 audits fails by chance in about one of 10,000 runs. A method
    without a bug is refuted by one of three audits with a chance of at most 3 times 5.2 %: two looks before
    the end have .1 % each, see ``test_correct_noise_is_refuted_rarely``.
    """
    return any(check(row, is_for_a_bug=True).refuting for _ in range(3))


@pytest.mark.parametrize("name", list(ROWS))
def test_a_planted_bug_is_caught(name):
    assert is_caught(ROWS[name])


def test_correct_noise_is_refuted_rarely():
    """Of randomized response, whose canaries show all that it loses, 5 % of audits are wrong at most.

    More than 6 wrong ones of 20 have a chance of 4 in 100,000.
    """
    make = partial(RandomizedResponse, count_share=0.001)
    audits = [check(Row(make, 2, 32, 8, None)) for _ in range(20)]
    assert sum(bool(audit.refuting) for audit in audits) <= 6
    # Not by lack of power: what is proved is most of what is claimed.
    assert max(audit.together.epsilon_lower_bound for audit in audits) > 1.3
