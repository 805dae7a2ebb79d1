"""Wedges show how many labels are right, and links of right labels follow from those of noisy ones."""

import networkx as nx
import numpy as np
import pytest

from lightning_dpg.graph.communities import right_share, sharpened_links
from lightning_dpg.graph.stubs import count_links
from lightning_dpg.graph.wedges import count_label_wedges, wedge_slots


def blocks(chance, size, seed):
    """Edges of a block model, and the blocks of its nodes."""
    graph = nx.stochastic_block_model([size] * len(chance), chance, seed=seed)
    return np.array(sorted(map(sorted, graph.edges))), np.repeat(np.arange(len(chance)), size)


def counted(edges, labels):
    slots = wedge_slots(np.bincount(edges.ravel(), minlength=len(labels)))
    return count_links(labels, edges), count_label_wedges(edges, slots, labels, 0)


CLOSE, FAR = 0.05, 0.005
CAMPS = np.full((4, 4), FAR)  # two pairs of blocks that are linked often
CAMPS[:2, :2] = CAMPS[2:, 2:] = CLOSE
CAMPS += 0.1 * np.eye(4)


@pytest.mark.parametrize("chance", [0.01 + 0.12 * np.eye(4), CAMPS], ids=["equal", "camps"])
@pytest.mark.parametrize("right", [0.9, 0.7])
def test_links_of_right_labels_are_estimated_from_wrong_ones(chance, right):
    edges, truth = blocks(chance, 400, 0)
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(len(truth)) < right, truth, rng.integers(0, 4, len(truth)))
    links, wedges = counted(edges, labels)
    share = right_share(links, wedges, 1.0)
    assert share == pytest.approx(right**2, abs=0.06)
    wanted = np.tril(count_links(truth, edges), -1)
    change = np.abs(np.tril(sharpened_links(links, share), -1) - wanted).sum()
    assert change < 0.25 * np.abs(np.tril(links, -1) - wanted).sum()


def test_right_labels_change_nothing():
    edges, truth = blocks(0.01 + 0.12 * np.eye(4), 400, 0)
    links, wedges = counted(edges, truth)
    assert right_share(links, wedges, 1.0) > 0.97


def test_wedges_within_their_noise_change_nothing():
    edges, truth = blocks(0.01 + 0.12 * np.eye(4), 400, 0)
    labels = np.where(np.random.default_rng(0).random(len(truth)) < 0.7, truth, 0)
    links, wedges = counted(edges, labels)
    shares = [right_share(links, wedges, scale) for scale in (0.0, 300.0, 600.0, 1e9)]
    assert shares == sorted(shares) and shares[0] < 0.7
    assert shares[-1] == 1 and sharpened_links(links, 1.0) is links


@pytest.mark.parametrize("wedges", [[0, 0], [-9, -2], [0, 50], [2**46, 0], [0, 2**46]])
@pytest.mark.parametrize("links", [np.zeros((3, 3)), np.tril(np.arange(9).reshape(3, 3))])
def test_any_noise_gives_a_share_and_possible_links(links, wedges):
    links = links.astype(np.int64)
    share = right_share(links, np.array(wedges), 4.0)
    assert 0 < share <= 1
    found = sharpened_links(links, share)
    assert (found >= 0).all() and not found[links == 0].any()
    assert 4 * np.tril(found, -1).sum() >= np.tril(links, -1).sum() - 4
