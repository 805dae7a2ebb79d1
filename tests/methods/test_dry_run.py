"""Faults of a clipped sum are found before a run books its first step, and leave no trace."""

import random
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.utils.parametrizations import spectral_norm

from lightning_dpg.errors import Refusal
from lightning_dpg.methods.private_training import PrivateTraining
from lightning_dpg.privacy.dpsgd import (
    clipped_gradient_sum,
    ghost_clipped_gradient_sum,
    network_sum,
)
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource
from lightning_dpg.privacy.sensitivity.fitting import edge_gradient_sensitivity


class Method(nn.Module):
    """A network, its private steps, and the ledger that they book."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        self.ledger = PrivacyLedger(Relation.EDGE)
        self.dpsgd = PrivateTraining(
            "gradient",
            "gradient of records",
            edge_gradient_sensitivity,
            noise_multiplier=1.0,
            max_grad_norm=0.5,
        )
        self.dpsgd.begin(self)

    def step(self, clipped_sum, examples, parameters=None, size=4.0):
        self.dpsgd.backward(
            clipped_sum,
            dict(self.network.named_parameters()) if parameters is None else parameters,
            examples,
            ledger=self.ledger,
            noise=NoiseSource(),
            expected_size=size,
        )


def two_layers(between):
    return nn.Sequential(nn.Linear(3, 4), between, nn.Linear(4, 1))


def by_vmap(network):
    def loss(parameters, x):
        return functional_call(network, dict(parameters), (x[None],))[0, 0]

    return partial(clipped_gradient_sum, loss, dict(network.named_parameters()))


def by_ghost_norms(network):
    return lambda examples, norm: ghost_clipped_gradient_sum(
        network, lambda x: network(x)[:, 0], examples[0], norm
    )


def reduced(network):
    return lambda examples, norm: ghost_clipped_gradient_sum(
        network, lambda x: network(x).mean(), examples[0], norm
    )


def backwards(network):
    def clipped_sum(examples, norm):
        network(examples[0]).sum().backward()
        return by_vmap(network)(examples, norm)

    return clipped_sum


def single(network):
    exact = by_vmap(network)
    return lambda examples, norm: {k: v.float() for k, v in exact(examples, norm).items()}


def coins(network):
    """Public random numbers of all three libraries."""
    exact = by_vmap(network)

    def clipped_sum(examples, norm):
        torch.rand(1), np.random.rand(), random.random()
        return exact(examples, norm)

    return clipped_sum


SPECTRAL = spectral_norm(nn.Linear(4, 4))
TRACKING = nn.Sequential(nn.Unflatten(1, (2, 2)), nn.InstanceNorm1d(2, track_running_stats=True))


class Remembers(nn.Module):
    """A layer of a user's own that keeps the mean of its inputs."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean = x.detach().mean(0).to(self.mean)
        return x


@pytest.mark.parametrize(
    ("between", "make", "message"),
    [
        (
            nn.BatchNorm1d(4),
            by_vmap,
            r"network\.1 \(BatchNorm1d\) fails in a clipped sum \(called at test_d",
        ),
        (nn.BatchNorm1d(4), by_ghost_norms, "1 is a BatchNorm1d"),
        (SPECTRAL, by_vmap, r"network\.1\.\S+ \(_SpectralNorm\) fails"),
        (SPECTRAL, by_ghost_norms, "1 is a Linear with the parameter 'parametrizations"),
        (nn.Dropout(0.5), by_vmap, r"network\.1 \(Dropout\) fails"),
        (nn.LayerNorm(4), by_ghost_norms, r"network\.1 \(LayerNorm\) fails"),
        (nn.PReLU().double(), by_ghost_norms, "no gradient of '1.weight', but of 0.weight"),
        (nn.Tanh(), reduced, r"the loss of 4 examples has the shape \(\), and not \(4,\)"),
        (nn.Tanh(), backwards, r"changes network\.0\.weight\.grad: what it learns"),
        (nn.Tanh(), single, r"'0\.weight' is a torch\.float32"),
        (Remembers(), by_ghost_norms, r"changes network\.1\.mean: what it learns"),
        (TRACKING, by_ghost_norms, r"1\.1 is a InstanceNorm1d that keeps statistics"),
    ],
)
def test_faults_of_structure_are_refused_before_anything_is_booked(between, make, message):
    torch.manual_seed(0)
    method = Method(two_layers(between))
    state = {name: tensor.clone() for name, tensor in method.network.state_dict().items()}
    for examples in (torch.rand(6, 3), torch.rand(0, 3)):
        with pytest.raises(Refusal, match=message) as refused:
            method.step(make(method.network), (examples,))
        assert len(str(refused.value).splitlines()) <= 5
    assert not method.ledger.entries
    assert all(parameter.grad is None for parameter in method.parameters())
    now = method.network.state_dict()
    assert all(torch.equal(now[name], tensor) for name, tensor in state.items())


def test_layers_that_treat_each_example_alone_pass():
    method = Method(two_layers(nn.LayerNorm(4)))
    method.step(by_vmap(method.network), (torch.rand(6, 3),))
    assert len(method.ledger.entries) == 1


def test_errors_of_other_code_keep_their_type_and_nothing_is_booked():
    def clipped_sum(examples, norm):
        raise KeyError("mine")

    method = Method(two_layers(nn.Tanh()))
    with pytest.raises(KeyError, match="mine") as failed:
        method.step(clipped_sum, (torch.rand(6, 3),))
    assert "the step was not booked" in failed.value.__notes__[0]
    assert not method.ledger.entries


def test_the_trial_reads_no_record_and_draws_no_public_number():
    torch.manual_seed(0)
    method, seen = Method(two_layers(nn.Tanh())), []
    exact = coins(method.network)

    def clipped_sum(examples, norm):
        seen.append(examples[0])
        return exact(examples, norm)

    states = torch.get_rng_state(), np.random.get_state()[1], random.getstate()
    parameters = dict(method.network.named_parameters())
    method.dpsgd.dry_run(clipped_sum, parameters, (torch.full((6, 3), torch.nan),), 4.0)
    tries = len(seen)
    assert all(tensor.isfinite().all() for tensor in seen)
    assert torch.equal(states[0], torch.get_rng_state())
    assert (states[1] == np.random.get_state()[1]).all()
    assert states[2] == random.getstate()
    records = torch.rand(6, 3)
    for _ in range(2):  # a run tries a sum once
        method.step(clipped_sum, (records,))
    assert [tensor is records for tensor in seen[tries:]] == [True, True]
    method.dpsgd.begin(method)
    method.step(clipped_sum, (records,))
    assert len(seen) == 2 * tries + 3


@pytest.mark.parametrize("allowed", [0, 1])
def test_sums_that_do_not_take_every_value_pass(allowed):
    """A table with one row has the index 0 only, and no sequence has the length 0."""
    weight = nn.Parameter(torch.rand(2))

    def clipped_sum(numbers, norm):
        if (numbers != allowed).any():
            raise IndexError("out of range")
        return {"weight": len(numbers) * weight.detach().double() / 3}

    method = Method(nn.Tanh())
    method.step(clipped_sum, torch.full((4,), allowed), {"weight": weight})
    assert len(method.ledger.entries) == 1


def largest(x):
    return x / x.abs().max().clamp(min=1) if len(x) else x


def middle(x):
    return x - x.median()


def first_of_many(x):
    return x - x[0] if len(x) > 8 else x


def below_zero(x):
    return torch.where((x < -9).any(), x / 2, x)


def rank(x):
    return x * x.sum(1).argsort().argsort()[:, None]


MEMORY = []


def memory(x):
    MEMORY.append(x.detach())
    return x - MEMORY[-2] if len(MEMORY) > 1 and len(MEMORY[-2]) == len(x) else x


def unclipped(network):
    return lambda examples, norm: by_vmap(network)(examples, 1e9 * norm)


def beside(network):
    extra = torch.ones(3, 3)
    return lambda examples, norm: by_vmap(network)((torch.cat([examples[0], extra]),), norm)


def batch_by_batch(couple):
    """A sum that clips each gradient, after the examples of the batch have met."""
    return lambda network: lambda examples, norm: by_vmap(network)((couple(examples[0]),), norm)


@pytest.mark.parametrize("couple", [largest, middle, first_of_many, below_zero, rank])
def test_examples_that_meet_are_refused_before_anything_is_booked(couple):
    torch.manual_seed(0)
    method = Method(two_layers(nn.Tanh()))
    with pytest.raises(Refusal, match="is not the sum of its parts"):
        method.step(batch_by_batch(couple)(method.network), (torch.rand(20, 3),), size=20.0)
    assert not method.ledger.entries


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (unclipped, "further than max_grad_norm: it is not clipped"),
        (beside, "of no example is not zero"),
    ],
)
def test_sums_that_are_not_of_clipped_examples_are_refused(make, message):
    torch.manual_seed(0)
    method = Method(two_layers(nn.Tanh()))
    with pytest.raises(Refusal, match=message):
        method.step(make(method.network), (torch.rand(6, 3),))
    assert not method.ledger.entries


class Couples(nn.Module):
    """A network of pairs of nodes that is computed after the examples of its batch have met."""

    def __init__(self, couple):
        super().__init__()
        self.table, self.couple = nn.Embedding(34, 8), couple

    def forward(self, pairs):
        return self.couple(self.table(pairs).prod(1)).sum(1)


def of_others(x):
    return x - x.mean(0)


@pytest.mark.parametrize("couple", [largest, middle, first_of_many, below_zero, rank, of_others])
def test_examples_of_a_network_cannot_meet(couple):
    """Each gradient is that of an example in a batch of one, by autograd."""
    torch.manual_seed(0)
    network, pairs = Couples(couple), torch.randint(34, (12, 2))
    total = network_sum(network, lambda network, pairs: network(pairs), (pairs,), 0.5)
    expected = torch.zeros(34, 8, dtype=torch.double)
    for pair in pairs:
        value = network(pair[None]).sum()
        (gradient,) = torch.autograd.grad(value, network.table.weight, materialize_grads=True)
        expected += gradient * min(1.0, 0.5 / max(float(gradient.norm()), 1e-12))
    torch.testing.assert_close(total["table.weight"], expected, rtol=1e-5, atol=1e-7)


def test_a_memory_of_earlier_examples_is_refused_before_anything_is_booked():
    MEMORY.clear()
    method = Method(Couples(memory))
    with pytest.raises(RuntimeError):
        method.dpsgd.backward_network(
            method.network,
            lambda network, pairs: network(pairs),
            (torch.randint(34, (12, 2)),),
            ledger=method.ledger,
            noise=NoiseSource(),
            expected_size=12.0,
        )
    assert not method.ledger.entries


def test_rows_of_a_table_are_parameters_enough():
    torch.manual_seed(0)
    table = nn.Parameter(torch.rand(5, 2))
    records = torch.tensor([[0, 1], [1, 1], [4, 2]])

    def clipped_sum(edges, norm):
        loss = lambda parameters, edge: parameters["rows"][edge].prod(0).sum()
        return clipped_gradient_sum(loss, {"rows": table}, (edges,), norm)

    expected = torch.zeros(5, 2, dtype=torch.double)
    for edge in records:
        (gradient,) = torch.autograd.grad(table[edge].prod(0).sum(), table)
        expected += gradient * min(1.0, 0.5 / float(gradient.norm()))
    torch.testing.assert_close(clipped_sum(records, 0.5)["rows"], expected, rtol=1e-6, atol=1e-7)
    method = Method(nn.Tanh())
    method.step(clipped_sum, records, {"rows": table})
    assert len(method.ledger.entries) == 1
    assert table.grad.shape == table.shape
    with pytest.raises(Refusal, match="no parameter to train"):
        method.step(clipped_sum, records, {})
    assert len(method.ledger.entries) == 1
