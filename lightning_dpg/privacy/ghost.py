r"""Sums of clipped gradients without per-example gradients, second derivatives included.

A linear map that an example uses K times has the gradient :math:`\sum_k y_k x_k^\top` of its inputs
x and output gradients y, and the squared norm :math:`\sum_{k,l} (x_k \cdot x_l)(y_k \cdot y_l)` of it
needs neither matrix (Goodfellow, "Efficient per-example gradient computations", 2015; Li et al.,
"Large language models can be strong differentially private learners", 2022). A gradient penalty uses
the map once more, backwards, in its inner gradient; that use is recorded in the same way.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.dpsgd import Rows, clip_factor, drop_unclipped, widened
from lightning_dpg.privacy.joint_layers import one_by_one, refuse_joint_layers


def ghost_clipped_gradient_sum(
    network: nn.Module,
    losses: Callable[..., Tensor],
    inputs: Tensor,
    max_grad_norm: float,
    *,
    others: tuple[Tensor, ...] = (),
    rows: Rows | None = None,
    chunk_size: int = 512,
) -> dict[str, Tensor]:
    """Compute ``clipped_gradient_sum`` in one batched backward pass, in double precision.

    All trained parameters of the network, except the table of ``rows``, belong to ``nn.Linear``
    maps.

    Args:
        network: Network that computes each example independently: a batch norm would let one record
            change the gradients of all, and so would dropout, whose coins go by position.
        losses: ``losses(inputs, *others)`` of shape ``(B,)``; it may call the network any number of
            times and take its gradient with ``create_graph=True``.
        inputs: Tensor of shape ``(B, ...)``, or ``(B, K, d)`` with ``rows``; B may be 0.
        max_grad_norm: Clipping norm C over all parameters together.
        others: Further tensors of shape ``(B, ...)``.
        rows: The rows of a table that ``inputs`` holds and that are parameters too.
        chunk_size: Examples per pass.

    Returns:
        The sum by parameter name; the sum of the table is dense, under the key ``"rows"``.

    Raises:
        Refusal: If the network has a batch norm, a norm that tracks its inputs, dropout in training
            mode, or a linear map whose weight is computed from other parameters; or if ``losses``
            reduces the batch to one number.
    """
    refuse_joint_layers(network)
    maps = {name: m for name, m in network.named_modules() if isinstance(m, nn.Linear)}
    for name, module in maps.items():
        _refuse_computed_weight(name, module)
    total = {
        f"{name}.{key}": torch.zeros_like(parameter, dtype=torch.double)
        for name, module in maps.items()
        for key, parameter in module.named_parameters()
    }
    if rows is not None:
        total["rows"] = torch.zeros_like(rows.table, dtype=torch.double)
    for low in range(0, len(inputs), chunk_size):
        part = inputs[low : low + chunk_size].detach().double().requires_grad_()
        with _recording(maps) as uses:
            beside = (widened(tensor[low : low + chunk_size]) for tensor in others)
            loss = one_by_one(losses(part, *beside), len(part)).sum()
            uses.final = True
            # The weights have to be among the inputs: without them autograd leaves out the part of
            # the inner gradient whose output gradient is a constant. They get no gradient here.
            weights = [module.weight for module in maps.values()]
            touched = torch.autograd.grad(loss, [part, *weights], allow_unused=True)[0]
        index = None if rows is None else rows.index[low : low + chunk_size]
        _add_clipped(total, maps, uses, touched, index, max_grad_norm)
    return total


def _refuse_computed_weight(name: str, module: nn.Linear) -> None:
    """Refuse a spectral or weight norm, by which a weight is a function of other parameters."""
    others = dict(module.named_parameters()).keys() - {"weight", "bias"}
    if others:
        raise Refusal(
            f"{name or 'the network'} is a Linear with the parameter {min(others)!r}, of which ghost "
            "norms know nothing\nuse a plain Linear, or train by PrivateTraining.backward_network"
        )


class _Uses:
    """Pairs (x, y) of each map, of shapes ``(B, K, in)`` and ``(B, K, out)``, in order.

    Attributes:
        final: Whether the current gradient is that of the loss, and not one inside it.
    """

    def __init__(self) -> None:
        self.final = False
        self.weight: dict[str, list[tuple[Tensor, Tensor]]] = {}
        self.bias: dict[str, list[Tensor]] = {}

    def add(self, name: str, x: Tensor, y: Tensor, *, forwards: bool) -> None:
        if not self.final:
            return
        x = x.detach().reshape(len(x), -1, x.shape[-1])
        y = y.detach().reshape(len(y), -1, y.shape[-1])
        self.weight.setdefault(name, []).append((x, y))
        if forwards:
            self.bias.setdefault(name, []).append(y)


class _Forwards(Function):
    """``x W^T``; its backward pass is a use of W, and itself differentiable."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, uses: _Uses, name: str) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.uses, ctx.name = uses, name
        return x @ weight.T

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        (y,) = gradients
        ctx.uses.add(ctx.name, x, y, forwards=True)
        return _Backwards.apply(y, weight, ctx.uses, ctx.name), None, None, None  # type: ignore[no-untyped-call]


class _Backwards(Function):
    """``y W``, the inner gradient's use of W."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, weight: Tensor, uses: _Uses, name: str) -> Tensor:
        ctx.save_for_backward(y, weight)
        ctx.uses, ctx.name = uses, name
        return y @ weight

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        y, weight = ctx.saved_tensors
        (x,) = gradients
        ctx.uses.add(ctx.name, x, y, forwards=False)
        return _Forwards.apply(x, weight, ctx.uses, ctx.name), None, None, None  # type: ignore[no-untyped-call]


@contextmanager
def _recording(maps: dict[str, nn.Linear]) -> Iterator[_Uses]:
    """Record the uses of the maps within the context."""
    uses = _Uses()

    def apply(name: str, module: nn.Linear, x: Tensor) -> Tensor:
        weight = module.weight.to(x.dtype)
        y: Tensor = _Forwards.apply(x, weight, uses, name)  # type: ignore[no-untyped-call]
        return y if module.bias is None else y + module.bias.detach()

    try:
        for name, module in maps.items():
            module.forward = partial(apply, name, module)  # type: ignore[method-assign]
        yield uses
    finally:
        for module in maps.values():
            del module.forward


def _add_clipped(
    total: dict[str, Tensor],
    maps: dict[str, nn.Linear],
    uses: _Uses,
    touched: Tensor,
    index: Tensor | None,
    max_grad_norm: float,
) -> None:
    """Add the clipped gradients of one chunk to ``total``."""
    pairs = {
        name: (torch.cat([x for x, _ in both], 1), torch.cat([y for _, y in both], 1))
        for name, both in uses.weight.items()
    }
    biases = {
        name: torch.cat(ys, 1).sum(1)
        for name, ys in uses.bias.items()
        if maps[name].bias is not None
    }
    squared = touched.new_zeros(len(touched))
    eps = max((torch.finfo(m.weight.dtype).eps for m in maps.values()), default=0.0)
    for x, y in pairs.values():
        squared += ((x @ x.mT) * (y @ y.mT)).sum((1, 2))
        squared += _rounding(x.norm(dim=-1) * y.norm(dim=-1), x.shape[-1] + y.shape[-1], eps)
    for bias in biases.values():
        squared += bias.square().sum(1)
    if index is not None:
        same = index[:, :, None] == index[:, None, :]
        squared += ((touched @ touched.mT) * same).sum((1, 2))
        squared += _rounding(touched.norm(dim=-1), touched.shape[-1], eps)
    factor = clip_factor(squared, max_grad_norm)
    for name, (x, y) in pairs.items():
        scaled = drop_unclipped(y, factor) * factor[:, None, None]
        x = drop_unclipped(x, factor)
        total[f"{name}.weight"] += scaled.flatten(0, 1).T @ x.flatten(0, 1)
    for name, bias in biases.items():
        total[f"{name}.bias"] += factor @ drop_unclipped(bias, factor)
    if index is not None:
        scaled = drop_unclipped(touched, factor) * factor[:, None, None]
        total["rows"].index_add_(0, index.flatten(), scaled.flatten(0, 1))


def _rounding(uses: Tensor, width: int, eps: float) -> Tensor:
    r"""Bound the rounding error of a squared ghost norm, shape ``(B,)``.

    Each of the :math:`K^2` terms is a product of inner products, whose relative error is at most
    the number of summands times half of the machine epsilon; the terms' absolute sum is at most
    :math:`(\sum_k u_k)^2`. Where huge uses cancel this is more than the norm itself: without it such
    a record could be clipped too little. It also bounds by how much the uses of a clipped record can
    exceed C, and with them what is rounded where they are added.

    Args:
        uses: Norms :math:`u_k` of the summands of the gradient, shape ``(B, K)``.
        width: Summands of the inner products of one term.
        eps: Machine epsilon of the weights, or of the arithmetic if that is larger.
    """
    slack = (width + uses.shape[1] ** 2 + 2) * eps
    return slack * uses.sum(1).square()
