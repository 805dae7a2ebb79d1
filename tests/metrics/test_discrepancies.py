"""Nearest-neighbor accuracy equals scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from lightning_dpg.metrics.kernel_svm import neighbor_accuracy


@settings(max_examples=20)
@given(st.integers(6, 25), st.integers(1, 5), st.integers(0, 1000))
def test_accuracy_of_neighbors_is_that_of_scikit_learn(size, neighbors, seed):
    rng = np.random.default_rng(seed)
    points, labels = rng.normal(size=(size, 2)), rng.integers(3, 6, size=size)
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    classifier = KNeighborsClassifier(neighbors, metric="precomputed")
    expected = cross_val_score(classifier, distances, labels, cv=LeaveOneOut()).mean()
    assert neighbor_accuracy(distances, labels, neighbors) == pytest.approx(expected)


def test_too_many_neighbors():
    with pytest.raises(ValueError, match="between 1 and 2, got 3"):
        neighbor_accuracy(np.zeros((3, 3)), [0, 1, 0], 3)
