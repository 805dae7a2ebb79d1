"""Set synthesizers draw one graph for each original, book the edge counts and restore them."""

import math

import networkx as nx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.datamodules.subgraph import SubgraphDataModule
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.graph_set.erdos_renyi_set import ErdosRenyiSet
from lightning_dpg.metrics.graph_sets import set_differences
from lightning_dpg.privacy.events import Pure
from tests.scoring import scored
from tests.training import quiet_trainer

GRAPHS = [nx.gnm_random_graph(12, 30, seed=1), nx.path_graph(9), nx.complete_graph(5)]


def fit(method, data, epsilon):
    quiet_trainer(PrivacyAccountant(epsilon, 0.0)).fit(method, data)


def test_without_noise_the_numbers_of_edges_are_right():
    method = ErdosRenyiSet()
    fit(method, GraphSetDataModule(GRAPHS), math.inf)
    drawn = method.sample_set(torch.Generator().manual_seed(0))
    assert [graph.num_edges // 2 for graph in drawn] == [30, 8, 10]
    assert [graph.num_nodes for graph in drawn] == [12, 9, 5]


def test_all_sets_of_pairs_are_equally_likely():
    method, generator = ErdosRenyiSet(), torch.Generator().manual_seed(0)
    seen = [str(method.draw(4, 2, generator).tolist()) for _ in range(1500)]
    counts = [seen.count(graph) for graph in set(seen)]
    assert len(counts) == 15  # pairs of the six pairs
    assert max(counts) < 150 and min(counts) > 60  # 100 each, sd 9.7


def test_edges_that_occur_often_cost_more_noise():
    method = ErdosRenyiSet()
    fit(method, SubgraphDataModule(size=40, max_occurrences=4), 3.0)
    assert [(e.sensitivity, e.event.epsilon) for e in method.ledger.entries] == [(4, 3.0)]


SIZES = [3, 1, 5, 4]


class Paths(GraphSetSynthesizer):
    """Draws a path of the given length, or one through all nodes."""

    def draw(self, size, num_edges, generator):
        count = size - 1 if num_edges is None else num_edges
        nodes = torch.arange(count)
        return torch.stack([nodes, nodes + 1], dim=1)

    def released_state(self):
        return dict(self.state_dict())

    def training_step(self, batch, batch_idx):
        read = self.num_edges_entry(math.inf)
        self.release_num_edges_per_graph(self.trainer.datamodule.edges, read)
        self.trainer.should_stop = True

    def configure_optimizers(self):
        return None


def paths(num_edges=()):
    method = Paths()
    method.sizes = torch.tensor(SIZES)
    method.num_edges = torch.tensor(num_edges, dtype=torch.long)
    return method


def trainer(folder):
    return quiet_trainer(PrivacyAccountant("inf"), default_root_dir=folder)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_set_has_a_graph_in_place_of_each():
    for method, expected in ((paths(), [2, 0, 4, 3]), (paths([1, 0, 2, 3]), [1, 0, 2, 3])):
        drawn = method.sample_set(generator())
        assert [graph.num_nodes for graph in drawn] == SIZES
        assert [graph.num_edges // 2 for graph in drawn] == expected


def test_a_sample_stands_for_any_graph():
    method, source = paths(), generator()
    sizes = [method.sample(source).num_nodes for _ in range(800)]
    assert all(140 < sizes.count(size) < 260 for size in SIZES)  # 200 each, sd 12
    assert torch.equal(method.sample_edges(generator(5)), method.sample_edges(generator(5)))


def test_nodes_belong_to_graphs():
    expected = [number for number, size in enumerate(SIZES) for _ in range(size)]
    assert paths().graph_of(torch.arange(13)).tolist() == expected


@given(st.integers(0, 2**31), st.floats(0.01, 20) | st.just(math.inf), st.integers(1, 3))
@settings(max_examples=40)
def test_numbers_of_edges_are_booked_and_possible(seed, epsilon, occurrences):
    graphs = [nx.gnp_random_graph(size, 0.6, seed=seed) for size in SIZES]
    edges = torch.tensor(list(nx.disjoint_union_all(graphs).edges)).view(-1, 2)
    method = paths()
    method.max_occurrences = occurrences
    method.release_num_edges_per_graph(edges, method.num_edges_entry(epsilon))
    (read,) = method.ledger.entries
    assert read.name == "number of edges of each graph"
    assert read.event == Pure(epsilon)
    assert read.sensitivity == occurrences
    assert all(0 <= m <= n * (n - 1) // 2 for m, n in zip(method.num_edges, SIZES, strict=True))
    if math.isinf(epsilon):
        assert method.num_edges.tolist() == [graph.number_of_edges() for graph in graphs]


def test_score_is_the_density_of_the_pairs_graph():
    pairs = torch.tensor([[0, 2], [4, 8], [0, 4], [9, 12]])
    assert paths([1, 0, 2, 3]).score(pairs).tolist() == pytest.approx([1 / 3, 2 / 10, 0, 3 / 6])
    assert paths().score(pairs).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("noisy", [-3, 0, 1, 2, 7])
def test_score_is_the_likelihood_ratio_of_the_noise(noisy):
    # The third graph has the edge {4, 5} for certain, and {6, 7} by a coin.
    known, pairs = make_graph(torch.tensor([[0, 1], [4, 5]]), 13), torch.tensor([[6, 7]])
    method = paths()
    method.release_num_edges_per_graph(torch.tensor([[0, 1]]), method.num_edges_entry(0.7))
    ratio = math.log(math.exp(-0.7 * abs(noisy - 2)) / math.exp(-0.7 * abs(noisy - 1)))
    released = torch.tensor([1, 0, noisy, 0])
    found = scored(method, "num_edges_per_graph", released, pairs, known)
    assert found.item() == pytest.approx(ratio)


def test_takes_over_what_is_public_and_logs_the_differences(tmp_path):
    graphs = [nx.path_graph(6), nx.complete_graph(4), nx.star_graph(5)]
    data = GraphSetDataModule(graphs)
    method, fit = Paths(), trainer(tmp_path)
    fit.fit(method, data)
    assert method.sizes.tolist() == [6, 4, 6] and method.assumptions == data.assumptions
    assert method.num_edges.tolist() == [5, 6, 5]
    method.num_edges.fill_(3)  # paths of three edges
    (values,) = fit.test(method, data, verbose=False)
    drawn = [make_graph(torch.tensor([[0, 1], [1, 2], [2, 3]]), n) for n in (6, 4, 6)]
    expected = set_differences(data.graphs, drawn)
    assert len(values) == len(expected)
    for name, mean in expected.items():
        logged = values[f"nonprivate/test_{name.replace(' ', '_')}_difference"]
        assert logged == pytest.approx(mean.value, rel=1e-6)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (EdgeListDataModule(), "Paths learns a set of graphs, and EdgeListDataModule"),
        (SubgraphDataModule(max_occurrences=2), "one can be 2 edges of this set"),
    ],
)
def test_refuses_data_of_another_kind(tmp_path, data, message):
    with pytest.raises(MisconfigurationException, match=message):
        trainer(tmp_path).fit(Paths(), data)
