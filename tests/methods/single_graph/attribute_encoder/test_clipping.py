"""Closed-form clipped gradients of edges against automatic differentiation."""

import pytest
import torch
from torch.func import functional_call
from torch.nn.functional import normalize, softplus

from lightning_dpg.methods.single_graph.attribute_encoder import (
    clipped_edge_gradients,
    clipped_edge_sum,
)
from lightning_dpg.nn.attribute_logits import AttributeLogits, degree_levels
from lightning_dpg.privacy.dpsgd import clipped_gradient_sum
from lightning_dpg.privacy.sensitivity.fitting import edge_gradient_sensitivity


def problem(count=40, rank=5, seed=0, sides=1):
    source = torch.Generator().manual_seed(seed)
    model = AttributeLogits(rank, sides)
    with torch.no_grad():
        model.weight += torch.randn(sides * rank, rank, generator=source) / 3
        model.degree_weight.fill_(0.7)
    rows = normalize(torch.randn(count, 2, rank, generator=source), dim=2)
    return model, rows, torch.randn(count, 2, generator=source)


def edge_term(model):
    def loss(parameters, rows, levels):
        logits = functional_call(model, parameters, (rows[None], levels[None]))
        return softplus(-logits).squeeze()

    return loss


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("norm", [0.1, 1.0, 1e6])
def test_the_sum_is_that_of_automatic_differentiation(norm, sides):
    model, rows, levels = problem(2100, sides=sides)  # more than two chunks
    expected = clipped_gradient_sum(
        edge_term(model), dict(model.named_parameters()), (rows, levels), norm
    )
    found = clipped_edge_sum(model, rows, levels, norm)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-9, atol=1e-9)


def test_an_empty_batch_has_a_sum_of_zero():
    model, rows, levels = problem(0)
    assert all(not total.any() for total in clipped_edge_sum(model, rows, levels, 1.0).values())


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("norm", [0.3, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_each_edge_moves_the_sum_by_the_clipping_norm_at_most(norm, seed, sides):
    model, rows, levels = problem(seed=seed, sides=sides)

    def flat(part):
        total = clipped_edge_sum(model, rows[part], levels[part], norm)
        return torch.cat([value.flatten() for value in total.values()])

    everything, gradients = flat(slice(None)), clipped_edge_gradients(model, rows, levels, norm)
    moves = []
    for number in range(len(rows)):
        others = torch.arange(len(rows)) != number
        change = everything - flat(others)
        torch.testing.assert_close(change, gradients[number])
        moves.append(float(change.norm()))
    assert max(moves) <= edge_gradient_sensitivity(norm) * (1 + 1e-12)
    assert max(moves) > 0.99 * edge_gradient_sensitivity(norm)  # the bound is attained


def test_rows_whose_terms_cancel_are_clipped_as_well():
    # Large weights along the difference of two close rows: the two halves nearly cancel.
    model = AttributeLogits(2)
    rows = torch.tensor([[[1.0, 1e-4], [1.0, -1e-4]]])
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.0, 0.0], [0.0, 1e8]]))
    gradient = clipped_edge_gradients(model, rows, torch.zeros(1, 2), 1.0)
    assert 0.9 < gradient.norm() <= 1 + 1e-12


def test_a_gradient_that_is_not_finite_is_dropped():
    model, rows, levels = problem()
    with torch.no_grad():
        model.weight[0, 0] = torch.inf
    total = clipped_edge_sum(model, rows, levels, 1.0)
    assert all(value.isfinite().all() for value in total.values())


def test_two_sides_have_the_log_odds_of_two_matrices():
    model, rows, levels = problem(sides=2)
    first, second = (model.weight[part] for part in (slice(0, 5), slice(5, 10)))
    by_hand = torch.stack(
        [
            8 * (y[0] @ first) @ (y[1] @ second) + 0.7 * level.sum() - 6
            for y, level in zip(rows, levels, strict=True)
        ]
    )
    torch.testing.assert_close(model(rows, levels), by_hand)
    turned = model(rows.flip(1), levels.flip(1))
    assert (turned - by_hand).abs().max() > 0.1  # the order of the ends matters
    torch.testing.assert_close(
        AttributeLogits(5, 2)(rows, levels), AttributeLogits(5)(rows, levels)
    )


def test_levels_of_each_part_are_around_zero():
    degrees = torch.tensor([1, 4, 100, 200, 300])
    expected = torch.cat([degree_levels(part) for part in degrees.split([2, 3])])
    assert torch.equal(degree_levels(degrees, (0, 2)), expected)


def test_levels_are_half_logarithms_around_zero():
    levels = degree_levels(torch.tensor([0, 1, 4, 16]))
    torch.testing.assert_close(levels[2] - levels[1], torch.tensor(2.0).log())
    torch.testing.assert_close(levels[3] - levels[2], torch.tensor(2.0).log())
    assert levels.sum().abs() < 1e-6
    assert levels[0] < levels[1]
