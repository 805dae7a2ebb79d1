"""Answers about sets equal the statistics, cosines and discrepancies of their graphs."""

import math

import networkx as nx
import numpy as np
import pytest
import torch

from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics import set_queries
from lightning_dpg.metrics.graph_sets import SET_STATISTICS, set_differences
from lightning_dpg.metrics.set_queries import (
    DESCRIPTORS,
    SET_HIGHER_IS_BETTER,
    SET_QUERIES,
    compare_sets,
    profile_set,
    squared_mmd,
)

EDGELESS = make_graph(torch.empty(0, 2, dtype=torch.long), 7)


@pytest.fixture
def sets():
    """Six graphs and others in their place, one of which has no edge."""
    real = [from_networkx(nx.gnm_random_graph(7 + k, 12, seed=k)) for k in range(6)]
    drawn = [EDGELESS, *(from_networkx(nx.gnm_random_graph(7 + k, 9, seed=k)) for k in range(1, 6))]
    return real, drawn


def test_answers_are_those_of_the_functions_of_two_sets(sets):
    real, drawn = sets
    answers = compare_sets(profile_set(real), drawn)
    accuracies = 3
    assert tuple(answers) == SET_QUERIES[:-accuracies]
    for name, difference in set_differences(real, drawn).items():
        answer = answers[name]
        assert answer.score == pytest.approx(difference.value)
        means = [np.nanmean([*map(SET_STATISTICS[name], graphs)]) for graphs in (real, drawn)]
        assert [answer.real, answer.synthetic] == pytest.approx(means)
        said = "undefined for 1 of 6 graphs" if difference.undefined else ""
        assert answer.note == said
    for name, descriptor in DESCRIPTORS.items():
        vectors = [[descriptor.describe(graph) for graph in graphs] for graphs in (real, drawn)]
        expected = squared_mmd(*vectors, descriptor.bandwidth)
        assert answers[f"{name}_mmd"].score == pytest.approx(expected)
        assert math.isnan(answers[f"{name}_mmd"].real)


def test_similarities_are_means_of_cosines():
    # Stars of 4 and 3 leaves share a bin of degree 1; they hold 6, 4, 1 and 3, 1, 0 stars.
    star, small, path = (
        from_networkx(g) for g in (nx.star_graph(4), nx.star_graph(3), nx.path_graph(2))
    )
    answers = compare_sets(profile_set([star, star, star]), [small, star, path])
    degree = 4 * 3 / math.sqrt((16 + 1) * (9 + 1))
    expected = (degree + 1 + 4 / math.sqrt(17)) / 3
    assert answers["degree_cosine"].score == pytest.approx(expected)
    motif = (6 * 3 + 4) / math.sqrt((36 + 16 + 1) * (9 + 1))
    assert answers["motif_cosine"].score == pytest.approx((motif + 1) / 2)
    assert answers["motif_cosine"].note == "undefined for 1 of 3 graphs"
    assert {"degree_cosine", "motif_cosine"} < SET_HIGHER_IS_BETTER


def test_labeled_sets_are_classified_if_wanted(sets, monkeypatch):
    real, drawn = sets
    for k, graph in enumerate(real):
        graph.y = torch.tensor([k % 2])
    accuracies = {"gin": 0.5, "size": 0.6, "gin_real": 0.7, "size_real": 0.8, "majority": 0.9}
    monkeypatch.setattr(set_queries, "classification_accuracies", lambda *_: accuracies)
    measured = profile_set(real)
    answers = compare_sets(measured, drawn)
    assert tuple(answers) == SET_QUERIES
    assert answers["gin_accuracy"][:3] == (0.7, 0.5, 0.5)
    assert answers["size_accuracy"][:3] == (0.8, 0.6, 0.6)
    assert answers["majority_accuracy"][:3] == (0.9, 0.9, 0.9)
    assert tuple(compare_sets(measured, drawn, classify=False)) == SET_QUERIES[:-3]


def test_refuses_sets_of_other_sizes(sets):
    with pytest.raises(ValueError, match="equal sizes, got 6, 5"):
        compare_sets(profile_set(sets[0]), sets[1][:5])
