"""Clipped sums of networks against loops over single examples, and what they refuse."""

import copy
import pickle
from functools import partial

import pytest
import torch
from opacus.layers import DPLSTM, DPMultiheadAttention
from torch import nn
from torch.nn.functional import cross_entropy, linear

from lightning_dpg.errors import Refusal
from lightning_dpg.methods.private_training import PrivateTraining
from lightning_dpg.privacy import dpsgd
from lightning_dpg.privacy.dpsgd import ROUNDING, network_sum, trained_parameters
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity.fitting import edge_gradient_sensitivity

CLASSES, TOKENS, BOUND = 3, 7, 0.5


class Tagger(nn.Module):
    """Embedding, a layer of sequences, and classes by the mean, or by the last state."""

    def __init__(self, layer, width=5, last=False):
        super().__init__()
        self.embedding, self.layer = nn.Embedding(TOKENS, 4), layer
        self.out, self.last = nn.Linear(width, CLASSES), last

    def forward(self, tokens):
        inputs = self.embedding(tokens)
        if isinstance(self.layer, DPMultiheadAttention | nn.MultiheadAttention):
            states = self.layer(inputs, inputs, inputs)[0]
        else:
            states = self.layer(inputs)[0]
        return self.out(states[:, -1] if self.last else states.mean(1))


class Tied(nn.Module):
    """A table that is the output map as well, and a map that is used twice."""

    def __init__(self):
        super().__init__()
        self.embedding, self.map = nn.Embedding(TOKENS, 4), nn.Linear(4, 4)
        self.out = nn.Linear(4, TOKENS, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, tokens):
        return self.out(self.map(torch.tanh(self.map(self.embedding(tokens).mean(1)))))


class Heads(nn.Module):
    """One head is in no loss, and another one is frozen."""

    def __init__(self):
        super().__init__()
        self.body, self.unused = nn.Linear(3, 4), nn.Linear(4, 2)
        self.frozen, self.out = nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, CLASSES)

    def forward(self, x):
        hidden = torch.tanh(self.body(x))
        self.unused(hidden)
        return self.out(self.frozen(hidden))


def conv(norm):
    layers = nn.Conv2d(1, 4, 3), norm, nn.Tanh(), nn.AvgPool2d(2), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(16, CLASSES))


def loss(network, inputs, classes):
    return cross_entropy(network(inputs), classes, reduction="none")


def images(count):
    return torch.randn(count, 1, 6, 6), torch.randint(CLASSES, (count,))


def tokens(count):
    return torch.randint(TOKENS, (count, 4)), torch.randint(CLASSES, (count,))


def vectors(count):
    return torch.randn(count, 3), torch.randint(CLASSES, (count,))


class Apply(nn.Module):
    """A layer and a function of it, or of its outputs."""

    def __init__(self, function, layer=None):
        super().__init__()
        self.layer, self.function = layer or nn.Linear(3, CLASSES), function

    def forward(self, x):
        return self.function(self.layer, x)


class Scaled(nn.Module):
    """A layer with two inputs, of which opacus knows the first."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x, by=1.0):
        return x * self.weight * by


def outside(layer, x):
    return linear(x, layer.weight)


def two_inputs(layer, x):
    return layer(x, x)


def last_by_hand(layer, x):
    states = [layer(x[:, :1].expand(-1, 3)), layer(x[:, 1:2].expand(-1, 3))]
    return states[0]


SUPPORTED = {
    "convolution, group norm": (lambda: conv(nn.GroupNorm(2, 4)), images),
    "convolution, instance norm": (lambda: conv(nn.InstanceNorm2d(4, affine=True)), images),
    "embedding, LSTM": (lambda: Tagger(DPLSTM(4, 5, batch_first=True)), tokens),
    "both directions": (
        lambda: Tagger(DPLSTM(4, 5, batch_first=True, bidirectional=True), 10, last=True),
        tokens,
    ),
    "attention": (lambda: Tagger(DPMultiheadAttention(4, 2, batch_first=True), 4), tokens),
    "layer norm": (lambda: nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)), vectors),
    "tied, used twice": (Tied, tokens),
    "unused and frozen": (Heads, vectors),
    "attention of torch": (
        lambda: Tagger(nn.MultiheadAttention(4, 2, batch_first=True), 4),
        tokens,
    ),
    "weights outside of their layer": (
        lambda: Apply(outside),
        vectors,
    ),
    "a layer of two inputs": (lambda: Apply(two_inputs, Scaled()), vectors),
    "a layer that is not in the loss": (lambda: Apply(last_by_hand), vectors),
    "in evaluation mode": (lambda: conv(nn.BatchNorm2d(4)).eval(), images),
}
supported = pytest.mark.parametrize(("make", "draw"), SUPPORTED.values(), ids=SUPPORTED)


def made(make, seed=0):
    torch.manual_seed(seed)
    return make()


def gradients_one_by_one(network, examples):
    """Gradients of single examples by autograd, in double precision."""
    network = copy.deepcopy(network).double()
    trained = {name: p for name, p in network.named_parameters() if p.requires_grad}
    for i in range(len(examples[0])):
        inputs, classes = (tensor[i : i + 1] for tensor in examples)
        inputs = inputs.double() if inputs.is_floating_point() else inputs
        value = loss(network, inputs, classes).sum()
        found = torch.autograd.grad(value, list(trained.values()), materialize_grads=True)
        yield dict(zip(trained, found, strict=True))


def norm_of(gradients):
    return float(torch.cat([gradient.flatten() for gradient in gradients.values()]).norm())


@supported
def test_sums_are_those_of_a_loop_and_leave_the_network_as_it_was(make, draw, monkeypatch):
    network, examples = made(make), draw(5)
    state, kept = copy.deepcopy(network.state_dict()), pickle.dumps(network)
    names = list(trained_parameters(network))
    size = sum(p.numel() for p in trained_parameters(network).values())
    monkeypatch.setattr(dpsgd, "_CHUNK_NUMBERS", 4 * size + 1)
    counted = partial(network_sum, network, loss)
    total = counted(examples, BOUND)
    expected = dict.fromkeys(names, 0.0)
    clipped = 0
    for gradients in gradients_one_by_one(network, examples):
        clipped += norm_of(gradients) > BOUND
        factor = min(1.0, BOUND / norm_of(gradients))
        expected = {name: expected[name] + factor * g for name, g in gradients.items()}
    assert clipped and total.keys() == expected.keys()
    for name, gradient in total.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-9, atol=1e-12)
    for i in range(5):  # one record moves the sum by at most C
        others = counted(tuple(torch.cat([t[:i], t[i + 1 :]]) for t in examples), BOUND)
        moved = {name: gradient - others[name] for name, gradient in total.items()}
        assert norm_of(moved) <= BOUND * (1 + ROUNDING)
    empty = counted(tuple(tensor[:0] for tensor in examples), BOUND)
    assert all(not g.any() and g.dtype == torch.double for g in empty.values())
    assert pickle.dumps(network) == kept
    assert all(torch.equal(state[name], value) for name, value in network.state_dict().items())


two_kinds = pytest.mark.parametrize(
    ("make", "draw"), [SUPPORTED[kind] for kind in ("convolution, group norm", "embedding, LSTM")]
)


def test_an_example_that_cannot_be_clipped_is_left_out():
    network, examples = made(lambda: nn.Linear(3, CLASSES)), vectors(4)
    examples[0][2] = torch.inf
    kept = torch.tensor([0, 1, 3])
    total = network_sum(network, loss, examples, BOUND)
    others = network_sum(network, loss, tuple(t[kept] for t in examples), BOUND)
    for name, gradient in total.items():
        torch.testing.assert_close(gradient, others[name])


def frozen_layer():
    return Apply(lambda layer, x: layer(x)).requires_grad_(False)


@pytest.mark.parametrize(
    ("make", "draw", "message"),
    [
        (lambda: conv(nn.BatchNorm2d(4)), images, r"1 \(BatchNorm2d\) fails in a clip"),
        (lambda: conv(nn.BatchNorm2d(4, affine=False)), images, r"1 \(BatchNorm2d\) fails"),
        (lambda: conv(nn.Dropout(0.2)), images, r"1 \(Dropout\) fails.*\n.*random"),
        (lambda: conv(nn.InstanceNorm2d(4, track_running_stats=True)), images, r"InstanceNorm2d"),
        (lambda: Tagger(nn.LSTM(4, 5, batch_first=True)), tokens, r"layer \(LSTM\)[\s\S]*DPLSTM"),
        (lambda: Tagger(nn.RNN(4, 5, batch_first=True)), tokens, r"layer \(RNN\)[\s\S]*DPRNN"),
        (frozen_layer, vectors, "no parameter to train"),
    ],
)
def test_networks_that_it_cannot_sum_are_refused_before_anything_is_booked(make, draw, message):
    network, examples = made(make), draw(4)
    with pytest.raises(Refusal, match=message) as refused:
        step(network, loss, examples)
    assert len(str(refused.value).splitlines()) <= 5


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda network, x, y: loss(network, x, y).mean(), r"has the shape \(\), and not \(1,\)"),
        (lambda network, x, y: x.sum(1), "does not use the network that it is given"),
        (
            lambda network, x, y: (network(x) - network(x).mean(0)).sum(1),
            "only compares examples with each other",
        ),
    ],
)
def test_losses_that_it_cannot_sum_are_refused(wrong, message):
    with pytest.raises(Refusal, match=message):
        step(made(lambda: nn.Linear(3, CLASSES)), wrong, vectors(4))


def private_steps(sigma):
    training = PrivateTraining(
        "gradient",
        "gradient of records",
        edge_gradient_sensitivity,
        noise_multiplier=sigma,
        max_grad_norm=BOUND,
    )
    training.noise_multiplier.fill_(sigma)
    return training


def step(network, per_example_loss, examples, sigma=1.0):
    """One booked step; the ledger of a refused one stays empty."""
    ledger = PrivacyLedger(Relation.EDGE)
    try:
        private_steps(sigma).backward_network(
            network,
            per_example_loss,
            examples,
            ledger=ledger,
            noise=NoiseSource(),
            expected_size=7.0,
        )
    except Refusal:
        assert not ledger.entries
        assert all(p.grad is None for p in network.parameters())
        raise
    return ledger


def test_an_empty_batch_is_noised_over_all_trained_parameters_and_charged():
    network = nn.Sequential(nn.Linear(70, 70), nn.Linear(70, CLASSES))
    network[0].bias.requires_grad_(False)
    empty = torch.zeros(0, 70), torch.zeros(0).long()
    (entry,) = step(network, loss, empty, sigma=2.0).entries
    assert (entry.sensitivity, entry.event.noise_multiplier, entry.steps) == (BOUND, 2.0, 1)
    assert network[0].bias.grad is None
    flat = torch.cat([p.grad.flatten() for p in network.parameters() if p.requires_grad])
    # Standard deviation sigma * C / B_0; its estimate has a relative error of 1 / sqrt(2 n).
    assert float(flat.std()) == pytest.approx(2 * BOUND / 7, rel=4 / (2 * flat.numel()) ** 0.5)


@two_kinds
def test_networks_learn(make, draw):
    network, (inputs, _) = made(make), draw(24)
    classes = (inputs.flatten(1)[:, 0] > inputs.flatten(1).double().mean()).long()
    training, ledger = private_steps(0.01), PrivacyLedger(Relation.EDGE)
    optimizer = torch.optim.Adam(network.parameters(), 0.1)
    before = loss(network, inputs, classes).mean().item()
    for _ in range(10):
        optimizer.zero_grad()
        training.backward_network(
            network,
            loss,
            (inputs, classes),
            ledger=ledger,
            noise=NoiseSource(),
            expected_size=24.0,
        )
        optimizer.step()
    assert loss(network, inputs, classes).mean().item() < 0.6 * before
    assert [(entry.key, entry.steps) for entry in ledger.entries] == [("gradient", 10)]
