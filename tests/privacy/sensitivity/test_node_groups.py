import itertools
import math

import numpy as np
import pytest

from lightning_dpg.graph.stubs import count_links
from lightning_dpg.privacy.sensitivity import (
    node_label_utility_sensitivity,
    node_pair_bit_sensitivity,
    node_partition_sensitivity,
)

SIZE = 5
PAIRS = np.array(list(itertools.combinations(range(SIZE), 2)))
GRAPHS = np.array(list(itertools.product([False, True], repeat=len(PAIRS))))
LABELS = np.array(list(itertools.product([0, 1], repeat=SIZE)))
WEIGHTS = np.array([0.6, 1.0, 1.4, 2.0, 3.0])


def neighbors(node, max_changes):
    """Indices of all graphs, and of those that differ in so many pairs of the node at most."""
    places = np.flatnonzero((PAIRS == node).any(axis=1))
    numbers = np.arange(len(GRAPHS))
    for size in range(1, max_changes + 1):
        for changed in itertools.combinations(places, size):
            flips = sum(2 ** (len(PAIRS) - 1 - int(place)) for place in changed)
            yield numbers, numbers ^ flips


@pytest.mark.parametrize("max_degree", [1, 2, 3])
def test_all_edges_of_a_node_cost_as_many_edges(max_degree):
    """All graphs of five nodes, and all changes of up to D pairs of a node, as behind a guard."""
    rate = 0.7
    within = (LABELS[:, PAIRS[:, 0]] == LABELS[:, PAIRS[:, 1]]).astype(float)
    totals = np.stack([(LABELS == k) @ WEIGHTS for k in (0, 1)])
    prior = -6 * np.log(WEIGHTS.sum() ** 2 + math.expm1(rate) * (totals**2).sum(axis=0))
    weights = rate * GRAPHS @ within.T + prior  # the law that GroupedLabels states
    laws = weights - np.logaddexp.reduce(weights, axis=1, keepdims=True)
    groups = np.array([0, 0, 1, 1, 1])
    links = np.array([count_links(groups, PAIRS[graph])[np.tril_indices(2)] for graph in GRAPHS])
    loss, moved, bits = 0.0, 0, 0
    for node in range(SIZE):
        for one, other in neighbors(node, max_degree):
            loss = max(loss, float(np.abs(laws[one] - laws[other]).max()))
            moved = max(moved, int(np.abs(links[one] - links[other]).sum(axis=1).max()))
            bits = max(bits, int((GRAPHS[one] != GRAPHS[other]).sum(axis=1).max()))
    claimed = rate * node_label_utility_sensitivity(max_degree)
    assert 0.6 * claimed < loss <= claimed + 1e-9
    assert moved == node_partition_sensitivity(max_degree)
    assert bits == node_pair_bit_sensitivity(max_degree)
    assert math.isfinite(loss)
