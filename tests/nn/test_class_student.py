"""What is known of classes: Bayes' rule by loops, and the likelihood of reports."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from lightning_dpg.nn.class_student import (
    ClassEvidence,
    confidence,
    known_classes,
    known_student,
    self_trained,
)

CLASSES = 3


def reported(seed=0, count=40, keep=0.6):
    """Rows of nodes, and reports of the classes that the first number of a row tells."""
    source = np.random.default_rng(seed)
    rows = torch.from_numpy(source.normal(size=(count, 2)))
    law = np.full((CLASSES, CLASSES), (1 - keep) / (CLASSES - 1))
    np.fill_diagonal(law, keep)
    classes = (rows[:, 0] > -0.5).long() + (rows[:, 0] > 0.5).long()
    reports = [source.choice(CLASSES, p=law[label]) for label in classes.tolist()]
    return rows, law, reports


def test_evidence_is_added_by_the_rule_of_bayes():
    _, law, reports = reported()
    logs = torch.log_softmax(torch.arange(15.0).view(5, 3).double().cos(), 1)
    nodes = torch.tensor([3, 1])
    evidence = ClassEvidence(nodes, torch.from_numpy(np.log(law))[reports[:2]])
    found = torch.softmax(evidence.added_to(logs), 1)
    for node in range(5):
        prior = [math.exp(x) for x in logs[node].tolist()]
        if node in (3, 1):
            report = reports[0 if node == 3 else 1]
            prior = [p * law[label][report] for label, p in enumerate(prior)]
        expected = [p / sum(prior) for p in prior]
        np.testing.assert_allclose(found[node], expected, rtol=1e-12)
    known = known_classes(nodes, torch.tensor([2, 0]), CLASSES).added_to(logs)
    assert torch.softmax(known, 1)[nodes].tolist() == [[0, 0, 1], [1, 0, 0]]


def test_a_student_maximizes_the_likelihood_of_reports():
    """The likelihood by sums over the classes that a node may have, maximized by another library."""
    rows, law, reports = reported()
    evidence = ClassEvidence(torch.arange(40), torch.from_numpy(np.log(law))[reports])
    student = known_student(rows, evidence)

    def loss(flat):
        weight, bias = flat[:6].reshape(2, 3), flat[6:]
        total = 0.5 * (weight**2).sum()
        for row, report in zip(rows.numpy(), reports, strict=True):
            scores = np.exp(row @ weight + bias)
            chances = scores / scores.sum()
            total -= math.log(sum(chances[y] * law[y, report] for y in range(CLASSES)))
        return total

    found = np.concatenate([student.weight.flatten(), student.bias])
    best = minimize(loss, np.zeros(9), method="BFGS")
    assert loss(found) == pytest.approx(best.fun, rel=1e-6)


def test_known_classes_are_reports_that_are_never_wrong():
    rows, _, reports = reported()
    nodes = torch.arange(30)
    clamped = known_classes(nodes, torch.tensor(reports)[nodes], CLASSES)
    almost = clamped._replace(log_likelihoods=clamped.log_likelihoods.clamp(min=-60.0))
    assert confidence(rows, clamped) == confidence(rows, almost)
    first, second = (self_trained(rows, each, 2.0) for each in (clamped, almost))
    torch.testing.assert_close(first(rows), second(rows))
