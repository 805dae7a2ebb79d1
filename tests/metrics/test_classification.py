"""Graph classifiers find a class that is there, and none in noise."""

import networkx as nx
import torch

from lightning_dpg.formats.io import from_networkx
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics.classification import (
    GraphClassifier,
    _batch,
    classification_accuracies,
    gin_accuracy,
    majority_accuracy,
    size_accuracy,
)


def labeled(graphs, labels):
    converted = [from_networkx(graph) for graph in graphs]
    for graph, label in zip(converted, labels, strict=True):
        graph.y = torch.tensor([label])
    return converted


def stars_and_paths(count):
    """Two classes of equal numbers of nodes and edges."""
    stars = labeled([nx.star_graph(4 + k % 5) for k in range(count)], [0] * count)
    paths = labeled([nx.path_graph(5 + k % 5) for k in range(count)], [1] * count)
    return [graph for pair in zip(stars, paths, strict=True) for graph in pair]


def test_the_network_sees_structure_beyond_sizes():
    graphs = stars_and_paths(20)
    assert gin_accuracy(graphs[:20], graphs[20:], 2, steps=80) == 1
    assert size_accuracy(graphs[:20], graphs[20:]) <= 0.5
    assert majority_accuracy(graphs[:20], graphs[20:]) == 0.5


def test_sizes_classify_graphs_of_different_sizes():
    sizes = [4, 12, 5, 13, 6, 14, 7, 15]
    graphs = labeled([nx.cycle_graph(n) for n in sizes], [int(n > 9) for n in sizes])
    assert size_accuracy(graphs[:6], graphs[6:]) == 1


def test_accuracy_is_that_of_the_seed_and_leaves_the_global_one_alone():
    noise = [nx.gnp_random_graph(8, 0.4, seed=seed) for seed in range(40)]
    graphs = labeled(noise, [k % 3 for k in range(40)])
    before = torch.get_rng_state()
    # After three steps all seeds may classify alike, by the rounding of several threads.
    found = [gin_accuracy(graphs[:20], graphs[20:], 3, seed, steps=20) for seed in (0, 0, 1, 2, 3)]
    assert torch.equal(before, torch.get_rng_state())
    assert found[0] == found[1]
    assert len(set(found)) > 1


def test_graphs_of_a_batch_do_not_mix():
    torch.manual_seed(0)
    model = GraphClassifier(3).eval()
    graphs = labeled([nx.star_graph(5), nx.path_graph(2), nx.complete_graph(4)], [0, 1, 2])
    nothing = make_graph(torch.empty(0, 2, dtype=torch.long), 3)
    nothing.y = torch.tensor([0])
    graphs = [nothing, *graphs, nothing]
    alone = torch.cat([model(_batch([graph])) for graph in graphs])
    torch.testing.assert_close(model(_batch(graphs)), alone)
    assert not torch.allclose(alone[1], alone[3])


def test_each_fold_learns_from_graphs_in_place_of_those_not_tested():
    real = stars_and_paths(10)
    for graph in real:
        graph.y = 3 * graph.y - 1  # labels may be any numbers
    # In place of each graph stands one of the other class.
    synthetic = [real[k ^ 1].clone() for k in range(20)]
    for graph in synthetic:
        graph.y = None
    found = classification_accuracies(real, synthetic, folds=2, steps=60)
    assert found["gin_real"] == 1
    assert found["gin"] == 0
    assert found["majority"] == 0.5
    assert found["size"] == found["size_real"] <= 0.5
