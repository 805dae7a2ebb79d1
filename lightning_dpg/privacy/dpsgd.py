"""DP-SGD: per-example gradients with torch.func, clipping, one sum over ranks, noise once.

Abadi et al., "Deep Learning with Differential Privacy", 2016, Algorithm 1. The hooks of opacus do
not support the second derivative of a gradient penalty; ``vmap(grad(loss))`` does, exactly.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import grad, vmap

from lightning_dpg.privacy.ledger import LedgerEntry, PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource

Parameters = Mapping[str, nn.Parameter]
Loss = Callable[..., Tensor]
ClippedSum = Callable[[float], dict[str, Tensor]]

ROUNDING = 1e-6
"""Share of the clipping norm by which rounding may move a sum further; it is noised as well."""


@dataclass(frozen=True)
class Rows:
    """Embedding rows that a loss reads; no example then carries an ``(N, d)`` gradient.

    Attributes:
        table: The embedding table of shape ``(N, d)``.
        index: Rows read by each example, shape ``(B, K)``; repeated rows are one parameter.
    """

    table: nn.Parameter
    index: Tensor


def clipped_gradient_sum(
    loss: Loss,
    parameters: Parameters,
    examples: tuple[Tensor, ...],
    max_grad_norm: float,
    *,
    rows: Rows | None = None,
    chunk_size: int = 128,
) -> dict[str, Tensor]:
    r"""Sum :math:`\sum_b g_b \min(1, C / \|g_b\|)` over the examples of this rank.

    The norm is taken over all parameters together. All of it is computed in double precision: added
    up in single precision, as few as some hundred thousand gradients round by more than C when one
    is taken away. Sums of n gradients in chunks of s have an error of at most
    :math:`n (s + n / s) 2^{-53} C`, so two of them differ by less than :math:`(1 + 10^{-6}) C`
    (``ROUNDING``) for up to a million records.

    Args:
        loss: ``loss(parameters, *example)`` (or ``loss(parameters, rows, *example)``) of one
            example, a scalar.
        parameters: Parameters by name; none, where all of them are ``rows``.
        examples: Tensors of shape ``(B, ...)``; B may be 0.
        max_grad_norm: Clipping norm C.
        rows: Rows of an embedding table that are parameters too; their sum is returned densely under
            the key ``"rows"``.
        chunk_size: Number of examples whose gradients are in memory at a time.

    Returns:
        The sum by parameter name, in double precision.
    """
    values = {name: parameter.detach().double() for name, parameter in parameters.items()}
    total = {name: torch.zeros_like(value) for name, value in values.items()}
    if rows is not None:
        total["rows"] = torch.zeros_like(rows.table, dtype=torch.double)
    argnums = 0 if rows is None else (0, 1)
    per_example = vmap(
        grad(loss, argnums=argnums), in_dims=(None,) + (0,) * (len(examples) + (rows is not None))
    )
    count = len(examples[0] if rows is None else rows.index)
    for low in range(0, count, chunk_size):
        part = tuple(widened(tensor[low : low + chunk_size]) for tensor in examples)
        if rows is None:
            add_clipped(total, per_example(values, *part), max_grad_norm)
        else:
            index = rows.index[low : low + chunk_size]
            gradients, touched = per_example(values, rows.table.detach()[index].double(), *part)
            touched, uses = _shared_equally(touched, index)
            squared = (uses * touched.square().sum(2)).sum(1)
            scale = add_clipped(total, gradients, max_grad_norm, beside=squared)
            scaled = drop_unclipped(touched, scale) * scale[:, None, None]
            total["rows"].index_add_(0, index.flatten(), scaled.flatten(0, 1))
    return total


def add_clipped(
    total: dict[str, Tensor],
    gradients: Mapping[str, Tensor],
    max_grad_norm: float,
    *,
    beside: Tensor | None = None,
) -> Tensor:
    """Add the clipped gradients of a chunk of examples to ``total``.

    Args:
        total: Sums by parameter name.
        gradients: Gradients of the examples by parameter name, shape ``(B, ...)``.
        max_grad_norm: Clipping norm C over all parameters together.
        beside: Squared norm of each example's gradient by further parameters, shape ``(B,)``;
            ``gradients`` may then be empty.

    Returns:
        Factor of each example, shape ``(B,)``.
    """
    squares = [gradient.flatten(1).square().sum(1) for gradient in gradients.values()]
    if beside is not None:
        squares.append(beside)
    scale = clip_factor(torch.stack(squares).sum(0), max_grad_norm)
    for name, gradient in gradients.items():
        total[name] += torch.tensordot(scale, drop_unclipped(gradient, scale), dims=1)
    return scale


def widened(tensor: Tensor) -> Tensor:
    """Convert floating-point numbers to double precision, and leave others unchanged."""
    return tensor.double() if tensor.is_floating_point() else tensor


def clip_factor(squared: Tensor, max_grad_norm: float) -> Tensor:
    """Factor of each example's gradient; 0 if its norm is not finite and cannot be clipped."""
    # A squared norm from ghost norms can round below zero where uses cancel.
    scale = max_grad_norm / squared.clamp(min=0).sqrt().clamp(min=max_grad_norm)
    return torch.where(squared.isfinite(), scale, 0.0)


def drop_unclipped(tensor: Tensor, scale: Tensor) -> Tensor:
    """Drop examples that cannot be clipped: one overflow would turn the whole sum into NaN."""
    if bool(scale.all()):
        return tensor
    is_finite = (scale != 0).view(-1, *[1] * (tensor.ndim - 1))
    return torch.where(is_finite, tensor, 0.0)


class DPSGD:
    """The private part of a training step.

    Args:
        noise_multiplier: Noise scale sigma, relative to ``max_grad_norm``.
        max_grad_norm: Clipping norm C of one record's gradient.
    """

    def __init__(self, noise_multiplier: float, max_grad_norm: float) -> None:
        self.noise_multiplier = noise_multiplier
        self.max_grad_norm = max_grad_norm

    def backward(
        self,
        clipped_sum: ClippedSum,
        parameters: Parameters,
        *,
        ledger: PrivacyLedger,
        entry: LedgerEntry,
        noise: NoiseSource,
        expected_size: float,
    ) -> None:
        r"""Add :math:`(\sum_b \mathrm{clip}_C(g_b) + N(0, \sigma^2 C^2 I)) / B_0` to each ``.grad``.

        The noise is scaled up by the share of C that rounding may add to the sensitivity.

        It replaces ``loss.backward()`` in private training. The examples are a Poisson sample, of
        which every rank holds a part; the sum runs over all ranks and the noise, equal on all
        ranks, is added once. An empty batch is noised and charged as well.

        Args:
            clipped_sum: ``clipped_gradient_sum`` or ``ghost_clipped_gradient_sum`` with all but
                the clipping norm bound; each of its examples reads one record.
            parameters: Parameters by the names of the sum.
            ledger: Charged before the noise is drawn.
            entry: Cost of this step.
            noise: Secret source of the noise.
            expected_size: The public constant B_0; never the size of this batch.

        Raises:
            PrivacyBudgetExceeded: If the step does not fit the budget; no state has changed then.
        """
        ledger.spend(entry)
        total = clipped_sum(self.max_grad_norm)
        flat = torch.cat([total[name].flatten() for name in parameters])
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(flat)
        # One draw over the flat vector: the clip bounds the norm of all parameters together.
        flat += noise.normal(
            flat.numel(),
            self.noise_multiplier * self.max_grad_norm * (1 + ROUNDING),
            dtype=flat.dtype,
            device=flat.device,
        )
        flat = flat.to(next(iter(parameters.values())).dtype)
        ledger.publish(entry.key, flat)
        sizes = [parameter.numel() for parameter in parameters.values()]
        pieces = torch.split(flat / expected_size, sizes)
        for parameter, piece in zip(parameters.values(), pieces, strict=True):
            accumulate(parameter, piece.view_as(parameter))


def accumulate(parameter: nn.Parameter, gradient: Tensor) -> None:
    """Add a gradient to ``parameter.grad``, as a backward pass does."""
    gradient = gradient.to(parameter.dtype)
    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient


def _shared_equally(touched: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Replace the gradients of the K uses of a row by equal shares of their sum.

    Opposite uses cancel before the norm is taken and before they meet other examples. By their inner
    products the norm would round to zero where they are 1e8 times as large as their sum.

    Args:
        touched: Gradients of the uses, shape ``(B, K, d)``.
        index: Row of each use, shape ``(B, K)``.

    Returns:
        The shares, of the same shape, and how many uses share each, of shape ``(B, K)``.
    """
    same = (index[:, :, None] == index[:, None, :]).to(touched.dtype)
    uses = same.sum(2)
    return same @ touched / uses[:, :, None], uses
