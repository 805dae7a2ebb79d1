"""GraphRNN draws from the law it trains, learns a set, and states that nothing is private."""

import itertools

import networkx as nx
import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from scipy.stats import chisquare

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.graph_set import GraphSetDataModule
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.metrics.functional import triangles
from lightning_dpg.papers.yang2021 import graphrnn
from lightning_dpg.papers.yang2021.graphrnn import EdgeMLP, EdgeRNN, GraphRNN, RowRNN
from tests.training import quiet_trainer

MODELS = {"rnn": lambda: EdgeRNN(4, 3, 5, 2), "mlp": lambda: EdgeMLP(4, 6, 3)}


def sharpened(model):
    """Larger weights, so that the links depend on one another and on the state."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 3
    return model


def test_states_of_packed_sequences_are_those_of_single_steps():
    torch.manual_seed(0)
    model = RowRNN(3, 2, 6, 7, 2)
    lengths = torch.tensor([2, 4, 1])
    rows = torch.rand(3, 4, 5)
    states = model(rows, lengths)
    for graph, length in enumerate(lengths.tolist()):
        memory = None
        for place in range(length):
            state, memory = model.step(rows[graph, place][None], memory)
            torch.testing.assert_close(states[graph, place], state[0])


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_of_an_edge_model_is_the_likelihood_of_what_it_draws(name):
    torch.manual_seed(0)
    model = sharpened(MODELS[name]())
    state = torch.randn(1, 4)
    rows = torch.tensor(list(itertools.product([0.0, 1.0], repeat=3)))
    width = torch.tensor([3])
    with torch.no_grad():
        likelihood = torch.stack([(-3 * model.loss(state, r[None], width)).exp() for r in rows])
        drawn = model.sample(state.expand(8000, 4), torch.rand(8000, 3))
    assert float(likelihood.sum()) == pytest.approx(1, abs=1e-5)
    assert float(likelihood.max()) > 0.2
    counts = torch.bincount((drawn @ torch.tensor([4.0, 2.0, 1.0])).long(), minlength=8)
    expected = likelihood.double() / likelihood.double().sum() * 8000
    assert chisquare(counts.numpy(), expected.numpy()).pvalue > 0.001


@pytest.mark.parametrize("name", MODELS)
def test_only_possible_links_count(name):
    torch.manual_seed(1)
    model = sharpened(MODELS[name]())
    states, widths = torch.randn(4, 4), torch.tensor([1, 3, 2, 3])
    rows = torch.randint(0, 2, (4, 3)).float()
    each = torch.stack(
        [
            model.loss(states[k][None], rows[k, :width][None], width[None])
            if name == "rnn"
            else model.loss(states[k][None], rows[k][None], width[None])
            for k, width in enumerate(widths)
        ]
    )
    expected = (each * widths).sum() / widths.sum()
    torch.testing.assert_close(model.loss(states, rows, widths), expected)


SMALL = {"embedding_dim": 16, "hidden_dim": 32, "batch_size": 20, "learning_rate": 0.01}
PAIRS = torch.tensor([[0, 1], [0, 2], [1, 2]])


def fit(module, data, epsilon=float("inf"), delta=None, steps=1):
    trainer = quiet_trainer(PrivacyAccountant(epsilon, delta), max_steps=steps)
    trainer.fit(module, data)
    return trainer


def cliques_and_cycles():
    """Two kinds of graphs with different numbers of nodes and edges."""
    sizes = [5 + k % 4 for k in range(40)]
    return [nx.complete_graph(n) if k < 20 else nx.cycle_graph(n) for k, n in enumerate(sizes)]


@pytest.fixture
def in_order(monkeypatch):
    """Sequences in the order of the nodes' numbers."""
    monkeypatch.setattr(
        graphrnn,
        "bfs_positions",
        lambda edges, sizes, generator: torch.cat([torch.arange(n) for n in sizes.tolist()]),
    )


@pytest.mark.parametrize("edge_model", ["rnn", "mlp"])
def test_the_loss_is_the_likelihood_of_what_is_drawn(edge_model, in_order):
    torch.manual_seed(0)
    model = GraphRNN(edge_model, counts=False, look_back=2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 2.5
    generator, three = torch.Generator().manual_seed(0), torch.tensor([3])
    graphs = [PAIRS[[bool(code & 1 << k) for k in range(3)]] for code in range(8)]
    with torch.no_grad():
        losses = torch.stack([model.loss(edges, three, generator) for edges in graphs])
        # The loss of a union is the mean over its links, of which the graphs have as many.
        union = torch.cat([edges + 3 * k for k, edges in enumerate(graphs)])
        together = model.loss(union, three.repeat(8), generator)
    torch.testing.assert_close(together, losses.mean())
    likelihood = (-3 * losses.double()).exp()
    assert float(likelihood.sum()) == pytest.approx(1, abs=1e-5)
    drawn = model.draw_all(three.repeat(6000), torch.zeros(6000), generator)
    codes = [sum(2 ** (a + b - 1) for a, b in edges.tolist()) for edges in drawn]
    counts = torch.bincount(torch.tensor(codes), minlength=8)
    expected = likelihood / likelihood.sum() * 6000
    assert chisquare(counts.numpy(), expected.numpy()).pvalue > 0.001


def test_told_counts_are_the_same_in_training_and_drawing(in_order):
    torch.manual_seed(0)
    model, seen = GraphRNN("mlp", look_back=3), []
    model.rows.embed.register_forward_hook(lambda module, args, result: seen.append(args[0]))
    edges = torch.tensor([[0, 1], [1, 2], [1, 3], [2, 3], [3, 4]])
    with torch.no_grad():
        model.loss(edges, torch.tensor([5]), torch.Generator())
    told = seen.pop()[0, :, 3:]  # before each of the nodes 1 to 4
    # Pairs that end in them: 1 + 2 + 3 + 3
    expected = [(4, 5, 5 / 9), (3, 4, 4 / 8), (2, 3, 3 / 6), (1, 1, 1 / 3)]
    nodes, left, share = torch.tensor(expected).T
    torch.testing.assert_close(told, torch.stack([nodes.log(), left.log1p(), share], 1))
    # Drawing reads the remaining part of the given number.
    drawn = model.draw(5, 5, torch.Generator().manual_seed(0))
    for node, inputs in enumerate(seen, start=1):
        left = max(5 - int((drawn[:, 1] < node).sum()), 0)
        pairs = sum(min(k, 3) for k in range(node, 5))
        nodes = torch.tensor(5.0 - node).log()
        expected = torch.stack(
            [nodes, torch.tensor(float(left)).log1p(), torch.tensor(left / pairs)]
        )
        torch.testing.assert_close(inputs[0, 3:], expected)


def test_it_learns_a_set_and_says_that_nothing_is_private():
    pl.seed_everything(0)
    data = GraphSetDataModule(cliques_and_cycles(), steps_per_epoch=100)
    module = GraphRNN(**SMALL)
    trainer = fit(module, data, steps=100)
    assert trainer.global_step == 100
    assert module.ledger.reasons == ["training: GraphRNN adds no noise"]
    assert module.hparams["look_back"] == 7  # of a clique of 8 nodes
    drawn = module.sample_set(torch.Generator().manual_seed(0))
    assert [graph.num_nodes for graph in drawn] == data.sizes.tolist()
    equal = [
        (a.num_edges, triangles(a)) == (b.num_edges, triangles(b))
        for a, b in zip(drawn, data.graphs, strict=True)
    ]
    assert sum(equal) > 30  # 39 there
    fresh = GraphRNN(**module.hparams)
    fresh.load_released_state(module.released_state())
    again = fresh.sample_set(torch.Generator().manual_seed(0))
    for first, second in zip(drawn, again, strict=True):
        assert torch.equal(first.edge_index, second.edge_index)
    one = fresh.sample(torch.Generator().manual_seed(3))
    assert torch.equal(one.edge_index, module.sample(torch.Generator().manual_seed(3)).edge_index)


def test_graphs_of_all_sizes_and_without_edges_are_drawn():
    torch.manual_seed(0)
    model = GraphRNN(counts=False, look_back=2)
    sizes = torch.tensor([1, 7, 2, 1, 4])
    drawn = model.draw_all(sizes, torch.zeros(5), torch.Generator().manual_seed(0))
    for edges, size in zip(drawn, sizes.tolist(), strict=True):
        assert edges.shape[1] == 2
        assert not len(edges) or int(edges.max()) < size
        reach = edges[:, 1] - edges[:, 0]
        assert bool(((reach >= 1) & (reach <= 2)).all())
        assert len(edges) == len(edges.unique(dim=0))
    assert sum(len(edges) for edges in drawn) > 0


def test_single_nodes_are_not_learned_from():
    nothing = torch.empty(0, 2, dtype=torch.long)
    data = GraphSetDataModule("planted_sets")
    data.read_graphs = lambda: [
        make_graph(nothing, 1),
        make_graph(PAIRS, 4),
        make_graph(nothing, 1),
    ]
    fit(module := GraphRNN(), data)
    assert [g.num_nodes for g in module.sample_set(torch.Generator().manual_seed(0))] == [1, 4, 1]


def test_a_single_graph_and_missing_counts_are_refused():
    with pytest.raises(MisconfigurationException, match="EdgeListDataModule holds a single graph"):
        fit(GraphRNN(), EdgeListDataModule("karate"))
    with pytest.raises(ValueError, match="num_edges must be given"):
        GraphRNN(look_back=2).draw(4, None, torch.Generator())
