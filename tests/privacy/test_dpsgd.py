"""DP-SGD against loops over single examples, and its sensitivity by brute force."""

import os
from functools import cache, partial

import pytest
import torch
from torch.func import functional_call

from lightning_dpg.papers.zheng2021.dp_netgan import score_sum
from lightning_dpg.papers.zheng2021.walk_lstm import WalkCritic
from lightning_dpg.privacy.dpsgd import (
    DPSGD,
    Rows,
    clipped_gradient_sum,
    ghost_clipped_gradient_sum,
)
from lightning_dpg.privacy.ledger import (
    Budget,
    PrivacyBudgetExceeded,
    PrivacyLedger,
    Relation,
)
from lightning_dpg.privacy.noise import NoiseSource
from tests.entries import entry

NODES, DIM, HIDDEN = 11, 5, 4


@pytest.fixture(autouse=True)
def _on_the_device_of_the_run():
    """``python -m benchmarks gpu`` runs this file on a GPU."""
    with torch.device(os.environ.get("LIGHTNING_DPG_TEST_DEVICE", "cpu")):
        yield


def penalty(slope):
    return 10 * ((slope.square().sum() + 1e-12).sqrt() - 1).square()


def make_critic(scale=1.0):
    torch.manual_seed(0)
    critic = WalkCritic(NODES, DIM, HIDDEN).double()
    with torch.no_grad():
        for parameter in critic.parameters():
            parameter *= scale
    return critic


def functional_loss(critic):
    """Bundle of real, fake and penalty terms, as DP-SGD sees it."""

    def score(parameters, embedded):
        return functional_call(critic, dict(parameters), (embedded,))

    def loss(parameters, embedded, mix):
        real, fake = embedded.chunk(2)
        slope = torch.func.grad(score, argnums=1)(parameters, torch.lerp(fake, real, mix))
        return score(parameters, fake) - score(parameters, real) + penalty(slope)

    return loss


def loss_of_rows(critic):
    """The same loss of tokens, with the table among the parameters, as ``"rows"``."""
    loss = functional_loss(critic)

    def of_rows(parameters, tokens, mix):
        lstm = {name: value for name, value in parameters.items() if name != "rows"}
        return loss(lstm, parameters["rows"][tokens], mix)

    return of_rows


def parameters_with_rows(critic):
    return {"rows" if name == "table" else name: p for name, p in critic.named_parameters()}


def loop(critic, tokens, mix, max_grad_norm):
    """The same sum by one ordinary double backward per example on the module itself."""
    parameters = dict(critic.named_parameters())
    total = {name: torch.zeros_like(p) for name, p in parameters.items()}
    for row, rho in zip(tokens, mix, strict=True):
        real, fake = critic.embed(row[None]).chunk(2, 1)
        # The penalty is taken in the space of the embedding and reaches the table through it.
        between = torch.lerp(fake, real, rho)
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        loss = critic(fake).sum() - critic(real).sum() + penalty(slope)
        gradients = torch.autograd.grad(loss, list(parameters.values()))
        norm = torch.sqrt(sum(g.square().sum() for g in gradients))
        for name, gradient in zip(parameters, gradients, strict=True):
            total[name] += gradient * min(1.0, max_grad_norm / norm.item())
    return total


@pytest.mark.parametrize("length", [2, 3, 5])
@pytest.mark.parametrize("max_grad_norm", [1e-3, 0.7, 1e6])
def test_sum_equals_a_loop_with_penalty_and_repeated_tokens(length, max_grad_norm):
    critic = make_critic()
    tokens = torch.randint(NODES, (9, 2 * length))
    tokens[0] = 3  # every token of this example is the same row of the table
    tokens[1, 0] = tokens[1, length]
    mix = torch.rand(9, 1, 1, dtype=torch.float64)
    actual = clipped_gradient_sum(
        loss_of_rows(critic),
        parameters_with_rows(critic),
        (tokens, mix[:, 0]),
        max_grad_norm,
        chunk_size=4,
    )
    expected = loop(critic, tokens, mix[:, 0], max_grad_norm)
    expected["rows"] = expected.pop("table")
    for name, value in expected.items():
        torch.testing.assert_close(actual[name], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_one_record_moves_the_sum_by_at_most_c(scale):
    critic = make_critic(scale).float()
    tokens = torch.randint(NODES, (6, 4))
    mix = torch.rand(6, 1)
    loss, parameters = loss_of_rows(critic), parameters_with_rows(critic)

    def flat_sum(keep):
        total = clipped_gradient_sum(loss, parameters, (tokens[keep], mix[keep]), 0.3)
        return torch.cat([value.flatten() for value in total.values()]).double()

    whole = flat_sum(torch.arange(6))
    for removed in range(6):
        moved = (whole - flat_sum(torch.arange(6) != removed)).norm()
        assert moved <= 0.3 * (1 + 1e-5)


@pytest.mark.parametrize("trained_table", [True, False])
@pytest.mark.parametrize("scale", [1.0, 10.0, 1e2, 1e3, 1e4])
def test_uses_that_cancel_cannot_round_the_norm_below_the_gradient(scale, trained_table):
    """Nearly equal real and fake edges: huge uses of each map whose sum is small, in float32."""
    for seed in range(40):
        torch.manual_seed(seed)
        critic = WalkCritic(40, 16, 12)
        real = torch.randint(40, (2,))
        tokens = torch.cat([real, real])[None]
        with torch.no_grad():
            critic.table *= scale
            critic.score.weight *= scale
            if seed % 2:
                tokens[0, 3] = (tokens[0, 3] + 1) % 40
                critic.table[tokens[0, 3]] = critic.table[tokens[0, 1]] * (1 + 1e-4)

        def losses(embedded, critic=critic):
            first, second = embedded.chunk(2, 1)
            return critic(second) - critic(first)

        rows = Rows(critic.table, tokens) if trained_table else None
        total = ghost_clipped_gradient_sum(critic, losses, critic.embed(tokens), 0.3, rows=rows)
        norm = torch.cat([value.flatten() for value in total.values()]).double().norm()
        assert norm <= 0.3 * (1 + 1e-5)


@pytest.mark.parametrize("ghost", [True, False])
def test_a_record_that_overflows_moves_the_sum_by_at_most_c(ghost):
    critic = make_critic().float()
    with torch.no_grad():
        critic.table[5] = 3e38
    tokens = torch.tensor([[1, 2], [5, 3], [4, 4]])

    def loss(parameters, tokens):
        lstm = {name: value for name, value in parameters.items() if name != "rows"}
        return functional_call(critic, lstm, (parameters["rows"][tokens],))

    def total(kept):
        if ghost:
            rows = Rows(critic.table, kept)
            values = ghost_clipped_gradient_sum(critic, critic, critic.embed(kept), 0.3, rows=rows)
        else:
            values = clipped_gradient_sum(loss, parameters_with_rows(critic), (kept,), 0.3)
        return torch.cat([value.flatten() for value in values.values()])

    assert (total(tokens) - total(tokens[[0, 2]])).norm() <= 0.3 * (1 + 1e-5)


def test_no_size_of_a_record_moves_the_sum_by_more_than_c():
    """Uses that cancel, overflow, underflow or are subnormal: x and its slope of all sizes."""
    torch.manual_seed(0)
    sizes = torch.tensor([1e-310, 1e-165, 1e-30, 1, 1e30, 1e150, 1e307], dtype=torch.double)
    network = torch.nn.Linear(6, 1).double()
    x, slope = torch.cartesian_prod(sizes, sizes).unbind(1)
    inputs = x[:, None] * torch.randn(len(x), 12, dtype=torch.double)
    inputs[1::2, 6:] = inputs[1::2, :6] * (1 + 1e-9)
    inputs[0], inputs[1] = torch.nan, torch.inf

    def losses(inputs, slope):
        first, second = inputs.chunk(2, 1)
        return ((network(first) - network(second)) * slope[:, None])[:, 0]

    def clipped(kept):
        parts = ghost_clipped_gradient_sum(
            network, losses, inputs[kept], 1e-20, others=(slope[kept],)
        )
        return torch.cat([part.flatten() for part in parts.values()]) / 1e-20

    everyone = torch.arange(len(inputs))
    whole = clipped(everyone)
    for removed in everyone:
        assert clipped(everyone[removed, None]).norm() <= 1 + 1e-6
    for removed in everyone[::6]:
        assert (whole - clipped(everyone[everyone != removed])).norm() <= 1 + 1e-6


def test_a_sum_of_fakes_in_single_precision_is_that_in_double_precision():
    critic = make_critic().float()
    tokens = torch.randint(NODES, (9, 2))
    for name, value in score_sum(critic, tokens, 0.3).items():
        single = score_sum(critic, tokens, 0.3, dtype=torch.float)[name]
        assert single.dtype == torch.float
        torch.testing.assert_close(single.double(), value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "layer", [torch.nn.BatchNorm1d(3, affine=False), torch.nn.Dropout(0.5)], ids=["norm", "dropout"]
)
def test_layers_by_which_one_record_changes_all_gradients_are_refused(layer):
    network = torch.nn.Sequential(layer, torch.nn.Linear(3, 1)).double()
    with pytest.raises(ValueError, match=f"0 is a {type(layer).__name__}"):
        ghost_clipped_gradient_sum(network, lambda x: network(x)[:, 0], torch.rand(5, 3), 0.3)


def spend_one_step(critic, tokens, sigma, budget=None):
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = budget
    read = entry(
        name="critic gradient",
        sensitivity=0.3,
        proof="edge_gradient_sensitivity",
        noise_multiplier=sigma,
        sample_rate=0.1,
    )
    parameters = parameters_with_rows(critic)
    DPSGD(sigma, 0.3).backward(
        partial(
            clipped_gradient_sum,
            loss_of_rows(critic),
            parameters,
            (tokens, torch.rand(len(tokens), 1, dtype=torch.float64)),
        ),
        parameters,
        ledger=ledger,
        entry=read,
        noise=NoiseSource(),
        expected_size=7.0,
    )
    return ledger


def batched_losses(critic):
    """The bundle of ``functional_loss`` for a batch, by ordinary autograd."""

    def losses(embedded, mix):
        real, fake = embedded.chunk(2, 1)
        points = torch.lerp(fake, real, mix)
        (slope,) = torch.autograd.grad(critic(points).sum(), points, create_graph=True)
        norm = (slope.flatten(1).square().sum(1) + 1e-12).sqrt()
        return critic(fake) - critic(real) + 10 * (norm - 1).square()

    return losses


@pytest.mark.parametrize("trained_table", [True, False])
@pytest.mark.parametrize("max_grad_norm", [1e-2, 0.7, 1e6])
@pytest.mark.parametrize("length", [2, 3, 5])
def test_ghost_norms_equal_materialised_gradients_penalty_included(
    length, max_grad_norm, trained_table
):
    critic = make_critic()
    tokens = torch.randint(NODES, (9, 2 * length))
    tokens[0] = 3
    mix = torch.rand(9, 1, 1, dtype=torch.float64)
    parameters, rows = parameters_with_rows(critic), Rows(critic.table, tokens)
    loss, records = loss_of_rows(critic), tokens
    if not trained_table:
        del parameters["rows"]
        loss, records, rows = functional_loss(critic), critic.embed(tokens).detach(), None
    expected = clipped_gradient_sum(loss, parameters, (records, mix[:, 0]), max_grad_norm)
    actual = ghost_clipped_gradient_sum(
        critic,
        batched_losses(critic),
        critic.embed(tokens),
        max_grad_norm,
        others=(mix,),
        rows=rows,
        chunk_size=4,
    )
    for name, value in expected.items():
        torch.testing.assert_close(actual[name], value, rtol=1e-9, atol=1e-12)
    assert "forward" not in vars(critic.score)


def test_an_empty_batch_is_noised_over_all_parameters_and_charged():
    squares, count = 0.0, 0
    for _ in range(300):
        critic = make_critic()
        ledger = spend_one_step(critic, torch.empty(0, 4, dtype=torch.long), 2.0)
        assert ledger.steps == 1
        flat = torch.cat([p.grad.flatten() for p in critic.parameters()])
        squares, count = squares + flat.square().sum().item(), count + flat.numel()
        assert (flat != 0).all()
    # Standard deviation sigma * C / B_0 = 2 * 0.3 / 7; its estimate has a relative error of 1/sqrt(2n)
    assert (squares / count) ** 0.5 == pytest.approx(2 * 0.3 / 7, rel=4 / (2 * count) ** 0.5)


def test_a_step_beyond_the_budget_changes_nothing():
    critic = make_critic()
    with pytest.raises(PrivacyBudgetExceeded):
        spend_one_step(critic, torch.randint(NODES, (3, 4)), 0.1, Budget(0.5, 1e-5))
    assert all(p.grad is None for p in critic.parameters())


@cache
def sum_without(removed, ghost, bound):
    """Clipped sum of 300,000 records, or of all but one."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 1))
    inputs = torch.rand(300_000, 3) + 1
    if removed is not None:
        inputs = torch.cat([inputs[:removed], inputs[removed + 1 :]])
    if ghost:
        total = ghost_clipped_gradient_sum(network, lambda x: network(x)[:, 0], inputs, bound)
    else:

        def loss(parameters, x):
            return functional_call(network, dict(parameters), (x,))[0]

        named = dict(network.named_parameters())
        total = clipped_gradient_sum(loss, named, (inputs,), bound, chunk_size=4096)
    return torch.cat([total[name].flatten() for name in ("0.weight", "0.bias")]).double()


@pytest.mark.parametrize(
    ("ghost", "removed"), [(True, 0), (True, 777), (True, 299_999), (False, 0)]
)
def test_one_of_300_000_records_moves_the_sum_by_at_most_c(ghost, removed):
    """All gradients point the same way: in single precision their sum rounds by more than one."""
    bound = 0.3
    moved = (sum_without(None, ghost, bound) - sum_without(removed, ghost, bound)).norm()
    # Ghost norms are rounded up by a little, which clips a little more.
    assert bound * (1 - 1e-5) <= moved <= bound * (1 + 1e-9)
