"""Rows that follow links: directions of planted edges, noise alone, and the variance of entries."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from lightning_dpg.nn.linked_rows import _true_variance, link_metric

ROWS = torch.from_numpy(np.linalg.qr(np.random.default_rng(0).normal(size=(50, 3)))[0])


@pytest.mark.parametrize("sign", [1, -1], ids=["alike", "opposite"])
def test_directions_of_links_keep_their_length(sign):
    """The Gram matrix of the rows is the identity, so that correlations are those of the moment."""
    moment = torch.diag(torch.tensor([0.0, sign * 4.0, 1.0], dtype=torch.double))
    mapped = ROWS @ link_metric(moment, ROWS, 0.0)
    lengths = (mapped.T @ mapped).diagonal().sort().values
    # Shrinkage without noise is none, and squared lengths are the correlations over the largest.
    torch.testing.assert_close(lengths, torch.tensor([0.0, 0.25, 1.0], dtype=torch.double))


def test_noise_alone_and_no_edges_change_no_distance():
    source = torch.Generator().manual_seed(0)
    noise = torch.randn(3, 3, generator=source, dtype=torch.double)
    for moment, scale in ((0 * noise, 0.0), (noise + noise.T, 1e6)):
        metric = link_metric(moment, ROWS, scale)
        torch.testing.assert_close(metric @ metric.T, torch.eye(3, dtype=torch.double))


def test_links_by_chance_change_distances_less_than_links_of_alike_ends():
    """Ends are drawn independently, or next to each other in one direction; the noise is none."""
    source = np.random.default_rng(0)
    rows = torch.from_numpy(source.normal(size=(2000, 8)) / 8**0.5)
    order = np.argsort(rows[:, 0].numpy())
    by_chance = source.integers(2000, size=(2, 8000))
    places = source.integers(1990, size=8000)
    alike = np.stack([order[places], order[places + source.integers(1, 10, 8000)]])
    ratios = []
    for first, second in (by_chance, alike):
        product = rows[first].T @ rows[second]
        lengths = torch.linalg.svdvals(link_metric((product + product.T) / 2, rows, 0.0, 8.0))
        ratios.append(float(lengths[1] / lengths[0]))
    assert ratios[0] > 0.95
    assert ratios[1] < 0.5


def test_the_variance_of_entries_has_the_largest_likelihood():
    source = np.random.default_rng(1)
    variances = source.uniform(0.1, 3, 400)
    entries = source.normal(size=400) * np.sqrt(variances + 0.7)

    def loss(true):
        return float((np.log(variances + true) + entries**2 / (variances + true)).sum())

    best = minimize_scalar(loss, bounds=(0, 10), method="bounded", options={"xatol": 1e-9}).x
    found = _true_variance(torch.from_numpy(entries), torch.from_numpy(variances))
    assert found == pytest.approx(best, rel=1e-5)
