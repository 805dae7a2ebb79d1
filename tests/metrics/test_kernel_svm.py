"""Cross-validated machines learn what is there, and choose without the test fold."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import PredefinedSplit, RepeatedStratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from lightning_dpg.formats.io import from_networkx
from lightning_dpg.metrics import kernel_svm
from lightning_dpg.metrics.curves import label_metrics
from lightning_dpg.metrics.kernel_svm import (
    clip_spectrum,
    cross_validated_predictions,
    feature_kernels,
    gin_cross_validated,
    predicted_labels,
)

COSTS = [0.001, 0.01, 0.1, 1, 10, 100, 1000]


def blobs(count=40, classes=2, spread=1.5, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    return labels[:, None] * 2 + rng.normal(scale=spread, size=(count, 3)), labels


def accuracy_by_hand(grams, labels, folds, seed):
    """The protocol fold by fold, written with scikit-learn's own cross-validation."""
    grams = [gram / np.diag(gram).mean() for gram in grams]
    dealer = RepeatedStratifiedKFold(n_splits=folds, n_repeats=1, random_state=seed)
    fold_of = np.empty(len(labels), dtype=int)
    for number, (_, tested) in enumerate(dealer.split(labels, labels)):
        fold_of[tested] = number
    found = []
    for tested in range(folds):
        best, chosen = -1.0, None
        for gram in grams:
            for cost in COSTS:
                machine = SVC(C=cost, kernel="precomputed")
                right = 0.0
                for held in ((tested - 1) % folds, (tested + 1) % folds):
                    known = np.flatnonzero(fold_of != tested)
                    split = PredefinedSplit(np.where(fold_of[known] == held, 0, -1))
                    part = gram[np.ix_(known, known)]
                    right += cross_val_score(machine, part, labels[known], cv=split)[0]
                if right > best + 1e-9:
                    best, chosen = right, (gram, machine)
        gram, machine = chosen
        split = PredefinedSplit(np.where(fold_of == tested, 0, -1))
        found.append(cross_val_score(clone(machine), gram, labels, cv=split)[0])
    return np.mean(found)


def accuracy(grams, labels, **settings):
    return cross_validated_predictions(grams, labels, **settings).accuracy(labels)


@pytest.mark.parametrize(("folds", "classes"), [(3, 2), (4, 3)])
def test_protocol_is_that_written_out(folds, classes):
    x, labels = blobs(48, classes)
    grams = [x @ x.T, rbf_kernel(x, gamma=0.3)]
    found = accuracy(grams, labels, folds=folds, repetitions=1, seed=3)
    assert found.mean == pytest.approx(accuracy_by_hand(grams, labels, folds, 3))
    assert 0.5 < found.mean < 1
    assert np.isnan(found.sd)


def test_figures_of_batches_are_those_of_all_graphs():
    """Folds of unequal sizes, graphs in unequal batches, one of them empty."""
    x, labels = blobs(43, 3, spread=2)
    found = cross_validated_predictions([x @ x.T], labels, folds=4, repetitions=3)
    expected = found.accuracy(labels)
    metrics = label_metrics(3, 4, 3)
    order = torch.randperm(43, generator=torch.Generator().manual_seed(0))
    predicted, folds = (torch.from_numpy(each) for each in found)
    for batch in order.split([5, 0, 38]):
        target = torch.from_numpy(labels)[batch].expand(3, -1)
        metrics.update(preds=predicted[:, batch], target=target, folds=folds[:, batch])
    values = metrics.compute()
    assert float(values["test_accuracy"]) == pytest.approx(expected.mean, abs=1e-12)
    assert float(values["test_accuracy_sd"]) == pytest.approx(expected.sd, abs=1e-12)
    macro = f1_score(np.tile(labels, 3), found.labels.flatten(), average="macro")
    assert float(values["test_macro_f1"]) == pytest.approx(macro)


def test_takes_the_kernel_that_predicts_the_labels():
    x, labels = blobs(40, spread=0.1)
    noise = np.random.default_rng(0).normal(size=(40, 60))
    useless, useful = noise @ noise.T, x @ x.T
    assert accuracy([useless], labels, folds=4, repetitions=1).mean < 0.8
    assert accuracy([useless, useful], labels, folds=4, repetitions=1).mean == 1


def test_repetitions_and_their_spread():
    x, labels = blobs()
    found = accuracy([x @ x.T], labels, folds=4, repetitions=3)
    assert len(set(found.per_repetition)) > 1
    assert found.mean == pytest.approx(sum(found.per_repetition) / 3)
    assert found.sd**2 == pytest.approx(((found.per_repetition - found.mean) ** 2).sum() / 2)
    again = accuracy([1000 * x @ x.T], labels + 7, folds=4, repetitions=3)
    assert np.array_equal(again.per_repetition, found.per_repetition)


def test_refuses_what_cannot_be_validated():
    x, labels = blobs(12)
    gram = x @ x.T
    with pytest.raises(ValueError, match="at least 3"):
        accuracy([gram], labels, folds=2)
    with pytest.raises(ValueError, match="smallest class has 6 graphs"):
        accuracy([gram], labels)
    with pytest.raises(ValueError, match=r"shape \(12, 12\), got shape \(11, 12\)"):
        accuracy([gram[:11]], labels, folds=3)
    with pytest.raises(ValueError, match="finite"):
        accuracy([gram * np.inf], labels, folds=3)


def test_new_graphs_get_the_labels_of_their_like():
    x, labels = blobs(50, classes=3, spread=0.1)
    order = np.r_[np.arange(40), np.arange(49, 39, -1)]
    found = predicted_labels(feature_kernels(x[order]), labels[:40] - 5, folds=5)
    assert np.array_equal(found, labels[order[40:]] - 5)


def test_kernels_of_features_are_those_of_scikit_learn():
    x, _ = blobs(10)
    with_constant = np.c_[x, np.full(10, 7.0)]
    z = StandardScaler().fit_transform(x)
    expected = [z @ z.T / 3, *(rbf_kernel(z, gamma=width / 3) for width in (0.1, 1, 10))]
    np.testing.assert_allclose(feature_kernels(with_constant), expected, atol=1e-12)


def test_constant_features_leave_the_majority():
    labels = np.arange(30) % 3 == 0
    kernels = feature_kernels(np.full((30, 2), 4.0))
    found = accuracy(kernels, labels, folds=3, repetitions=2)
    np.testing.assert_allclose(found.per_repetition, 2 / 3)


def test_refuses_features_that_are_no_matrix_or_too_many(monkeypatch):
    with pytest.raises(ValueError, match="finite"):
        feature_kernels([[1.0, np.nan]])
    with pytest.raises(ValueError, match=r"got shape \(3,\)"):
        feature_kernels([1.0, 2.0, 3.0])
    monkeypatch.setattr(kernel_svm, "MAX_GRAPHS", 4)
    with pytest.raises(ValueError, match="5 graphs, more than the 4"):
        feature_kernels(np.eye(5))


@settings(max_examples=20)
@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_clipped_spectrum_is_the_nearest_kernel(size, seed):
    rng = np.random.default_rng(seed)
    similarity = rng.normal(size=(size, size))
    similarity += similarity.T
    clipped = clip_spectrum(similarity)
    assert np.linalg.eigvalsh(clipped).min() > -1e-9
    # A projection on a cone: the rest is orthogonal to it, and at an obtuse angle to all kernels.
    rest = similarity - clipped
    assert abs((rest * clipped).sum()) < 1e-8
    other = rng.normal(size=(size, size))
    assert (rest * (other @ other.T)).sum() < 1e-8


def test_network_is_tested_in_the_folds_of_the_machines(monkeypatch):
    graphs = [from_networkx(nx.path_graph(2 + i)) for i in range(12)]
    labels = np.arange(12) % 3 * 2 - 2
    seen = []

    def recorded(train, test, num_classes, seed, steps):
        sizes = [[graph.num_nodes - 2 for graph in part] for part in (train, test)]
        ours = [graph.y.item() for part in (train, test) for graph in part]
        assert ours == [i % 3 for part in sizes for i in part]
        assert (num_classes, seed, steps) == (3, 5, 20)
        seen.append(sizes)
        return len(seen) / 8

    monkeypatch.setattr(kernel_svm, "gin_accuracy", recorded)
    found = gin_cross_validated(graphs, labels, folds=4, repetitions=2, seed=5, steps=20)
    np.testing.assert_allclose(found.per_repetition, [2.5 / 8, 6.5 / 8])
    dealer = RepeatedStratifiedKFold(n_splits=4, n_repeats=2, random_state=5)
    for (train, test), (_, expected) in zip(seen, dealer.split(labels, labels), strict=True):
        assert test == expected.tolist()
        assert sorted(train + test) == list(range(12))
