"""Sampling of adjacency rows has the law that training fits."""

import itertools

import pytest
import torch
from scipy.stats import chisquare

from lightning_dpg.papers.yang2021.graphrnn import EdgeMLP, EdgeRNN, RowRNN

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
def test_the_loss_is_the_likelihood_of_what_is_drawn(name):
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
