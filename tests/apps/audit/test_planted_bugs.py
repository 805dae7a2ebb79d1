"""Audits detect mistakes planted in the noise of every private method.

Each row states what is audited: the view is ``white_box``, the epsilon is that of the whole method,
and a fit has so many canaries. A halved sensitivity is halved noise, since noise is in proportion to
it. Rows whose bug no audit of this size can find are in ``BEYOND``, each with the reason. The rows of
methods for attributes are in ``test_planted_attribute_bugs.py``, those of methods for sets of graphs in
``test_planted_set_bugs.py``, those of classifiers and of half of Gaussian noise in
``test_planted_vote_bugs.py``.
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


def stars(leaves):
    """Two stars with so many leaves each; their centers are the nodes 0 and ``leaves + 1``."""
    return nx.disjoint_union(nx.star_graph(leaves), nx.star_graph(leaves))


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


centers = [[0, 21]]
star_20, star_80 = (data_of(stars(leaves)) for leaves in (20, 80))
star_200, leaves_200 = data_of(stars(200)), [[i, 201] for i in range(1, 101)]

NODE_DEGREES = partial(NodeDegrees, max_degree=1)
free_nodes = data_of(nx.disjoint_union(nx.path_graph(4), nx.empty_graph(26)))
free_pair = [[10, 20]]

ROWS = {
    "ErdosRenyi off": Row(ErdosRenyi, 2, 1, 60, off()),
    "ErdosRenyi half": Row(ErdosRenyi, 2, 1, 300, half()),
    "ChungLu off": Row(ChungLu, 2, 16, 10, off()),
    "ChungLu half": Row(ChungLu, 2, 16, 80, half()),
    "ChungLu ordered off": Row(ChungLu, 2, 8, 20, off("ordered_degrees")),
    "ChungLu ordered half": Row(ChungLu, 2, 4, 900, half("ordered_degrees")),
    "ChungLu by node half": Row(partial(ChungLu, sequence_share=0.05), 2, 16, 80, half("degrees")),
    "BTER off": Row(BTER, 2, 16, 10, off()),
    "BTER half": Row(BTER, 2, 16, 200, half("degrees")),
    "BTER mixing off": Row(BTER, 2, 8, 20, off("degree_mixing")),
    "BTER mixing half": Row(
        partial(
            BTER, mixing_share=0.85, clustering_share=0.05, count_share=0.02, sequence_share=0.03
        ),
        *(2, 4, 150, half("degree_mixing")),
    ),
    "BTER wedges off": Row(BTER, 2, 6, 150, off("wedges")),
    # At D = 1 an edge between two free nodes changes as much as all edges of a node may change.
    "NodeDegrees off": Row(NODE_DEGREES, 2, free_pair, 60, off(), read=free_nodes),
    "NodeDegrees half": Row(NODE_DEGREES, 2, free_pair, 300, half(), read=free_nodes),
    "PrivGraph off": Row(PrivGraph, 2, 16, 10, off()),
    "PrivGraph half": Row(
        partial(PrivGraph, degree_share=0.88, class_share=0.01), 2, 16, 240, half("degrees")
    ),
    "PrivGraph choices off": Row(PrivGraph, 2, 16, 90, off("communities")),
    "PrivGraph choices half": Row(
        partial(PrivGraph, num_communities=2, degree_share=0.08, block_share=0.02, resolution=0.0),
        *(2, leaves_200, 20, half("communities")),
        read=star_200,
    ),
    "PrivGraph blocks off": Row(PrivGraph, 2, 8, 20, off("community_links")),
    "PrivGraph blocks half": Row(
        partial(PrivGraph, degree_share=0.1, block_share=0.83, class_share=0.01),
        *(2, 4, 150, half("community_links")),
    ),
    "PrivGraph wedges off": Row(PrivGraph, 2, 6, 150, off("community_wedges")),
    "PrivGraph classes off": Row(PrivGraph, 2, 8, 20, off("class_links")),
    "PrivGraph classes half": Row(
        partial(PrivGraph, degree_share=0.1, class_share=0.78), 2, 4, 150, half("class_links")
    ),
    "DK2 off": Row(DK2, 2, 16, 10, off()),
    "DK2 half": Row(partial(DK2, degree_share=0.9), 2, 16, 240, half("degrees")),
    "DK2 joint off": Row(DK2, 2, 8, 20, off("joint_degrees")),
    "DK2 joint half": Row(
        partial(DK2, degree_share=0.1), 2, centers, 600, half("joint_degrees"), read=star_20
    ),
    "RandomizedResponse off": Row(RandomizedResponse, 2, 32, 10, off()),
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
    "PrivCom reports off": Row(RandomizedResponsePrivCom, 2, 32, 8, off("edge_reports")),
    "PrivCom reports half": Row(RandomizedResponsePrivCom, 2, 32, 25, half("edge_reports")),
}

# Few edges beside the canaries, whose coins of the sampling would hide one.
FEW = nx.disjoint_union(nx.path_graph(4), nx.empty_graph(26))
OFTEN = data_of(FEW)
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
        read=OFTEN,
        epochs=3,
    ),
}

GAUSSIAN = (
    "Gaussian noise of (epsilon, delta) loses epsilon with a chance of about delta only: of 1,000 "
    "canaries that do not share anything, the best attacker proves less than epsilon. All guesses of "
    "a hundred fits with canaries of the whole sensitivity show it; random pairs move less."
)
BEYOND = {
    "HRG gaussian branches half": GAUSSIAN,
    "PrivCom products and eigenvalues half": GAUSSIAN,
    "AttributeEncoder steps half": GAUSSIAN,
    "DPNetGAN degrees and steps half": GAUSSIAN,
    "DPGVAE and DPGGAN sums and steps half": GAUSSIAN,
    "CentralGromovWasserstein sums half": GAUSSIAN,
    "BTER wedges half": (
        "The sensitivity of 8 is a loose bound: a canary changes the counts by 4 at most, so that "
        "half of the noise is still enough for it."
    ),
    "PrivGraph wedges half": (
        "A canary changes the counts by 2 at most in 98 of 100 cases, half of the sensitivity of 4, which "
        "takes a wedge of another community at each end."
    ),
    "HRG dendrogram half": (
        "The sensitivity of the likelihood is that of a branch with half of all pairs: a canary "
        "changes it by less than half of that, and the other canaries of its branch hide it."
    ),
    "DK2 uniform joint degrees half": (
        "The noise is that of 2 T + 1, where T exceeds the two largest degrees by what delta asks "
        "for, and a canary moves as many edges as its own ends have."
    ),
    "DPNetGAN rate": (
        "The gradients of edges are nearly parallel: with epsilon 1 booked for a tenth of the rate, "
        "49 of 60 guesses were right, which takes about 300 fits to refute."
    ),
    "DPGVAE and DPGGAN steps off, clipping off, rate": (
        "The gradients of the edges of a set are nearly parallel, and one per graph hides the "
        "canaries of a step from the score; the releases before the steps are tried above."
    ),
    "PrivateGraphKernel graphlets half": (
        "The sensitivity holds for the densest graphs of max_degree; a canary closes a few of the "
        "graphlets that it counts."
    ),
    "LDPGromovWasserstein reports off and half, updates half": (
        "The claim is for the exchange of the whole graph of a client, and one edge of it moves "
        "its rows, or its update, by a small part of their range. Signs are random without noise, "
        "too: they round."
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
