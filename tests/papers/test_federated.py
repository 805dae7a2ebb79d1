"""Clients partition the graphs, and their updates equal those of Adam, with and without FedProx."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import parameters_to_vector

from lightning_dpg.papers.jin2022.clients import client_update, clipped, dirichlet_clients


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
    st.integers(1, 12),
    st.floats(0.05, 100),
    st.integers(0, 100),
)
def test_clients_share_the_graphs(labels, num_clients, concentration, seed):
    labels = torch.tensor(labels)
    clients = dirichlet_clients(labels, num_clients, concentration, seed)
    assert len(clients) == num_clients
    assert torch.cat(clients).sort().values.tolist() == list(range(len(labels)))
    again = dirichlet_clients(labels, num_clients, concentration, seed)
    assert all(torch.equal(*pair) for pair in zip(clients, again, strict=True))


def test_concentration_decides_how_alike_clients_are():
    labels = torch.tensor([0, 1]).repeat(2000)

    def spread(concentration):
        clients = dirichlet_clients(labels, 10, concentration, 0)
        return torch.tensor([float(labels[c].float().mean()) for c in clients if len(c)]).std()

    assert spread(0.1) > 0.2
    assert spread(1000) < 0.03


def test_bad_clients():
    with pytest.raises(ValueError, match="must be positive: 0"):
        dirichlet_clients(torch.tensor([0]), 0, 1.0, 0)


def regression(seed=0):
    torch.manual_seed(seed)
    x, y = torch.randn(20, 3), torch.randn(20, 1)
    return nn.Linear(3, 1), lambda net: (net(x) - y).square().mean()


def test_an_update_is_what_adam_does_and_the_model_stays():
    model, loss_fn = regression()
    before = parameters_to_vector(model.parameters()).clone()
    update = client_update(model, loss_fn, epochs=5, learning_rate=0.05)
    assert torch.equal(parameters_to_vector(model.parameters()), before)
    # Adam by hand.
    weights = before.detach().clone().requires_grad_()
    first, second = torch.zeros(4), torch.zeros(4)
    for step in range(1, 6):
        net = nn.Linear(3, 1)
        nn.utils.vector_to_parameters(weights.detach(), net.parameters())
        gradient = parameters_to_vector(torch.autograd.grad(loss_fn(net), list(net.parameters())))
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        moved = first / (1 - 0.9**step) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
        weights = weights - 0.05 * moved
    torch.testing.assert_close(update, weights.detach() - before, rtol=1e-4, atol=1e-6)


def test_the_proximal_term_holds_a_client_back():
    model, loss_fn = regression()
    norms = [
        float(client_update(model, loss_fn, epochs=300, learning_rate=0.01, proximal=mu).norm())
        for mu in (0.0, 1.0, 10.0)
    ]
    assert norms[0] > norms[1] > norms[2] > 0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), st.floats(1e-3, 1e3))
def test_clipping(update, max_norm):
    update = torch.tensor(update, dtype=torch.float64)
    found = clipped(update, max_norm)
    expected = update if update.norm() <= max_norm else update / update.norm() * max_norm
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_an_update_that_is_no_number_counts_as_none(bad):
    assert clipped(torch.tensor([1.0, bad]), 1.0).tolist() == [0.0, 0.0]
