"""What is known of classes: Bayes' rule by loops, and the likelihood of reports."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from lightning_dpg.nn.class_student import (
    ClassEvidence,
    column_student,
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
    others = rows[:, :1] * torch.arange(CLASSES)
    found = [confidence(rows, each, others) for each in (clamped, almost)]
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    first, second = (self_trained(rows, each, 2.0) for each in (clamped, almost))
    torch.testing.assert_close(first(rows), second(rows))


def words_of(rows, count=200):
    """Rare words, each of one class more than of others, and the classes; rows do not show them."""
    source = np.random.default_rng(1)
    classes = torch.from_numpy(source.integers(CLASSES, size=len(rows)))
    likely = np.arange(count) % CLASSES == classes.numpy()[:, None]
    words = source.random(likely.shape) < np.where(likely, 0.06, 0.02)
    return torch.from_numpy(words).double(), classes


def test_words_that_rows_lack_count_and_a_known_class_has_no_effect_on_its_own_node():
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(400, 2)))
    words, classes = words_of(rows)
    evidence = known_classes(torch.arange(300), classes[:300], CLASSES)
    student, logs = column_student(words.to_sparse(), evidence)
    right = (logs.argmax(1) == classes).double()
    assert right[300:].mean() > 0.7 and confidence(rows, evidence, logs)[1] > 0.5
    assert right[:300].mean() < 0.9 < (student(words).argmax(1) == classes)[:300].double().mean()
    # Words that belong to nobody in particular count for little.
    mixed = words[torch.randperm(400, generator=torch.Generator().manual_seed(0))]
    _, logs = column_student(mixed.to_sparse(), evidence)
    assert confidence(rows, evidence, logs)[1] < 0.2


def test_a_student_of_sparse_columns_is_the_regression_of_another_library():
    words, classes = words_of(torch.zeros(400, 2))
    student = known_student(
        words.to_sparse(), known_classes(torch.arange(400), classes, CLASSES), 0.25
    )
    other = LogisticRegression(C=4, tol=1e-8, max_iter=1000).fit(words.numpy(), classes)
    np.testing.assert_allclose(student(words).exp(), other.predict_proba(words.numpy()), atol=1e-3)
