"""Fusion of votes: one step against loops over classes and degrees, and known degrees and classes."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import lognorm, multivariate_normal

from lightning_dpg.nn import belief_mixture
from lightning_dpg.nn.belief_mixture import Votes, _step, agree, agreement, degree_law, fuse
from lightning_dpg.nn.class_student import known_classes

CLASSES, SIZE = 3, 2


def drawn(num_nodes, noise, seed=0, shift=1):
    """Votes of nodes whose neighbors are of the class ``shift`` further, and their classes."""
    source = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(CLASSES) / CLASSES
    rows = np.stack([np.cos(angles), np.sin(angles)], 1)
    classes, degrees = np.arange(num_nodes) % CLASSES, source.integers(1, 12, num_nodes)
    votes = degrees[:, None] * rows[(classes + shift) % CLASSES]
    votes = votes + noise * source.normal(size=votes.shape)
    return torch.from_numpy(votes), torch.from_numpy(classes)


def test_probabilities_means_and_likelihood_of_a_step_are_those_of_loops(monkeypatch):
    monkeypatch.setattr(belief_mixture, "_CHUNK", 1)  # nodes one by one
    votes, classes = drawn(7, 1.5)
    means = [torch.tensor([[0.5, 0.1], [-0.3, 0.4], [0.0, -0.8]], dtype=torch.double)]
    log_prior = torch.log_softmax(torch.arange(21.0).view(7, 3).double().sin(), 1)
    degrees, law = degree_law(5.0, 40)
    known = known_classes(torch.tensor([2]), classes[[2]], CLASSES)
    log_prior[4] += torch.tensor([0.7, 0.2, 0.1], dtype=torch.double).log()  # of a report
    with_known = known.added_to(log_prior)
    found, new, total = _step(Votes([votes], 1.5), with_known, means, degrees, law)
    expected, likelihood = np.zeros((7, 3)), 0.0
    pulls, weights = np.zeros((7, 3)), np.zeros((7, 3))
    for node in range(7):
        for label in range(CLASSES):
            mean = means[0][label].numpy()
            spread = (1 - mean @ mean) / SIZE
            d = degrees.numpy()
            variance = 1.5**2 + d * (1 + 0.3 * np.maximum(d - 1, 0)) * spread
            densities = law.numpy() * [
                multivariate_normal(one * mean, by).pdf(votes[node])
                for one, by in zip(d, variance, strict=True)
            ]
            density = densities.sum()
            expected[node, label] = math.exp(log_prior[node, label]) * density
            pulls[node, label] = densities @ (d / variance) / density
            weights[node, label] = densities @ (d**2 / variance) / density
            if node == 2 and label == classes[2]:
                likelihood += math.log(expected[node, label])
        likelihood += 0 if node == 2 else math.log(expected[node].sum())
    expected /= expected.sum(1, keepdims=True)
    expected[2] = np.eye(CLASSES)[classes[2]]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    regressed = (expected * pulls).T @ votes.numpy() / (expected * weights).sum(0)[:, None]
    regressed /= np.maximum(np.linalg.norm(regressed, axis=1, keepdims=True), 1)
    np.testing.assert_allclose(new[0], regressed, rtol=1e-9)
    constant = 7 * SIZE / 2 * math.log(2 * math.pi)
    assert total == pytest.approx(likelihood + constant)


def test_the_law_of_degrees_is_lognormal_with_the_given_mean():
    degrees, law = degree_law(7.0, 10_000)
    assert float(law.sum()) == pytest.approx(1)
    assert float((degrees * law).sum()) == pytest.approx(7.0, rel=0.05)
    bound = float((degrees[5] + degrees[6]) / 2)
    below = lognorm(1.2, scale=7 * math.exp(-(1.2**2) / 2)).cdf(bound)
    assert float(law[:6].sum()) == pytest.approx(below)


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_few_known_classes_tell_what_each_class_links_to(shift):
    votes, classes = drawn(300, 1.0, shift=shift)
    known = torch.arange(12)
    flat = torch.zeros(300, CLASSES, dtype=torch.double)
    prior = known_classes(known, classes[known], CLASSES).added_to(flat)
    one = fuse(Votes([votes], 1.0), prior, 6.0)
    several = fuse(Votes([votes], 1.0), prior, 6.0, restarts=3)
    right = (one.posteriors.argmax(1) == classes).double().mean()
    assert right > 0.9
    assert several.log_likelihood >= one.log_likelihood
    torch.testing.assert_close(one.posteriors.sum(1), torch.ones(300, dtype=torch.double))


@pytest.mark.parametrize("trust", [1.0, 0.5])
def test_agreement_is_what_loops_over_nodes_and_classes_find(trust):
    source = np.random.default_rng(0)
    prior = source.dirichlet([1, 2, 3], 6)
    likelihood = source.uniform(0.1, 1, (6, CLASSES))
    posteriors = prior * likelihood / (prior * likelihood).sum(1, keepdims=True)
    logs = np.log(prior)
    logs[2] = [0, -np.inf, -np.inf]  # a known class
    free = [node for node in range(6) if node != 2]
    mean = [sum(prior[i][y] for i in free) / 5 for y in range(CLASSES)]
    gain = most = 0.0
    for node in free:
        alone = [mean[y] * likelihood[node][y] ** trust for y in range(CLASSES)]
        for other in range(CLASSES):
            reported = [
                sum(prior[i][y] * prior[i][other] for i in free) / (5 * mean[y])
                for y in range(CLASSES)
            ]
            predicted = sum(a * r for a, r in zip(alone, reported, strict=True)) / sum(alone)
            gain += prior[node][other] * math.log(predicted / mean[other])
            most += sum(
                prior[node][y] * r * math.log(r / mean[other]) for y, r in enumerate(reported)
            )
    found = agreement(torch.from_numpy(posteriors), torch.from_numpy(logs), trust)
    assert found == pytest.approx((gain, most), rel=1e-9)


def test_votes_that_have_nothing_to_do_with_the_prior_are_left_out():
    """The votes have clear groups, which are the classes of the first prior only."""
    votes, classes = drawn(600, 1.0)
    source = torch.Generator().manual_seed(0)
    for labels, is_used in (
        (classes, True),
        (classes[torch.randperm(600, generator=source)], False),
    ):
        sure = 2.0 * torch.nn.functional.one_hot(labels, CLASSES).double()
        log_prior = torch.log_softmax(sure + torch.randn(600, CLASSES, generator=source), 1)
        found = fuse(Votes([votes], 1.0), log_prior, 6.0).posteriors
        assert torch.allclose(found, log_prior.exp()) is not is_used
        if is_used:
            assert (found.argmax(1) == classes).double().mean() > 0.95


def test_votes_that_are_too_sure_of_themselves_do_not_agree():
    """Their likelihoods are those of classes to the fifth power, so that half of it is far better."""
    source = np.random.default_rng(0)
    classes = np.arange(6000) % CLASSES
    right = np.eye(CLASSES)[classes]
    prior = 0.2 + 0.4 * np.eye(CLASSES)[np.where(source.random(6000) < 0.6, classes, classes - 1)]
    seen = 0.3 * right[source.permutation(6000)] + 0.2 * right + source.random((6000, CLASSES))
    for power, agrees in ((1.0, True), (12.0, False)):
        posteriors = prior * np.exp(power * seen)
        posteriors /= posteriors.sum(1, keepdims=True)
        assert agree(torch.from_numpy(posteriors), torch.from_numpy(np.log(prior)), 4) == agrees
