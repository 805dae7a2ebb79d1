import math

import networkx as nx
import pytest
import torch

from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.io import from_networkx
from lightning_dpg.metrics import set_queries
from lightning_dpg.metrics.graph_sets import set_differences, set_means, set_similarities
from lightning_dpg.metrics.mmd import DESCRIPTORS, graph_mmd
from lightning_dpg.metrics.set_queries import (
    SET_HIGHER_IS_BETTER,
    SET_QUERIES,
    compare_sets,
    profile_set,
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
    means = set_means(real), set_means(drawn)
    for name, difference in set_differences(real, drawn).items():
        answer = answers[name]
        assert answer.score == pytest.approx(difference.value)
        assert (answer.real, answer.synthetic) == (means[0][name].value, means[1][name].value)
        said = "undefined for 1 of 6 graphs" if difference.undefined else ""
        assert answer.note == said
    for name, similarity in set_similarities(real, drawn).items():
        assert answers[name].score == pytest.approx(similarity.value)
        assert name in SET_HIGHER_IS_BETTER
    for name, descriptor in DESCRIPTORS.items():
        assert answers[f"{name}_mmd"].score == pytest.approx(graph_mmd(real, drawn, descriptor))
        assert math.isnan(answers[f"{name}_mmd"].real)


def test_labelled_sets_are_classified_if_wanted(sets, monkeypatch):
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
