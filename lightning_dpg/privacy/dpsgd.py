r"""DP-SGD: sums of clipped gradients, one over all ranks, with noise once.

Abadi et al., "Deep Learning with Differential Privacy", 2016, Algorithm 1. The hooks of opacus do
not support the second derivative of a gradient penalty; ``vmap(grad(loss))`` does, exactly.

:func:`clipped_gradient_sum` computes the gradient of each example with ``torch.func``.
:func:`network_sum` does so for a whole network, of which ``vmap`` runs a functional copy on each example, a
batch of one: no layer, loss or size of a batch can let two examples meet. The gradient of a record is
a function of this record, of the weights, and of what the loss reads beside its arguments. It is
clipped over all parameters together, so one record more or less moves the sum by at most C. All is
computed in double precision and added up in chunks.

:func:`ghost_clipped_gradient_sum` needs no per-example gradient, second derivatives included.
A linear map that an example uses K times has the gradient :math:`\sum_k y_k x_k^\top` of its inputs
x and output gradients y, and the squared norm :math:`\sum_{k,l} (x_k \cdot x_l)(y_k \cdot y_l)` of it
needs neither matrix (Goodfellow, "Efficient per-example gradient computations", 2015; Li et al.,
"Large language models can be strong differentially private learners", 2022). A gradient penalty uses
the map once more, backwards, in its inner gradient; that use is recorded in the same way.

Records are not clipped in single precision, which no bound of norms would make safe: products of
matrices round a row otherwise in a batch of another size. A record that joins can then move the
gradients of others, each by the machine epsilon times what the network makes of a rounding error, which
nothing bounds. In single precision 100 records that amplify one by 10 exceed ``ROUNDING``; in double
precision records times that factor have to reach :math:`10^{10}`.

An activation with a kink, such as ReLU, has no such factor: where an input of a record lies exactly on
the kink, a rounding error decides its slope, and a record that joins can turn it, in any precision. It
takes a record that is made for known weights, as an attacker may plant one before the first step. The
critic of ``DPNetGAN`` is smooth; ``DPGVAE`` and ``DPGGAN`` have ReLU.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.modules.dropout import _DropoutNd

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.ledger import LedgerEntry, PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource

Parameters = Mapping[str, nn.Parameter]
Loss = Callable[..., Tensor]
ClippedSum = Callable[[float], dict[str, Tensor]]
ROUNDING = 1e-6
"""Share of the clipping norm by which rounding may move a sum further; it is noised as well."""
NetworkLoss = Callable[..., Tensor]
# Numbers in the gradients of a chunk of examples, half a gigabyte, and its most examples.
_CHUNK_NUMBERS, _CHUNK = 2**26, 1024


@dataclass(frozen=True)
class Rows:
    """Embedding rows that a ghost sum reads; no example then carries an ``(N, d)`` gradient.

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
    chunk_size: int = 128,
) -> dict[str, Tensor]:
    r"""Sum :math:`\sum_b g_b \min(1, C / \|g_b\|)` over the examples of this rank.

    The norm is taken over all parameters together. All of it is computed in double precision: added
    up in single precision, as few as some hundred thousand gradients round by more than C when one
    is taken away. Sums of n gradients in chunks of s have an error of at most
    :math:`n (s + n / s) 2^{-53} C`, so two of them differ by less than :math:`(1 + 10^{-6}) C`
    (``ROUNDING``) for up to 67,000 records in any chunks, and a million in chunks of 235 to 4,269.

    Args:
        loss: ``loss(parameters, *example)`` of one example, a scalar.
        parameters: Parameters by name.
        examples: Tensors of shape ``(B, ...)``; B may be 0.
        max_grad_norm: Clipping norm C.
        chunk_size: Number of examples whose gradients are in memory at a time.

    Returns:
        The sum by parameter name, in double precision.
    """
    values = {name: parameter.detach().double() for name, parameter in parameters.items()}
    total = {name: torch.zeros_like(value) for name, value in values.items()}
    per_example = vmap(grad(loss), in_dims=(None,) + (0,) * len(examples))
    for low in range(0, len(examples[0]), chunk_size):
        part = (widened(tensor[low : low + chunk_size]) for tensor in examples)
        _add_gradients(total, per_example(values, *part), max_grad_norm)
    return total


def _add_gradients(
    total: dict[str, Tensor], gradients: Mapping[str, Tensor], max_grad_norm: float
) -> None:
    """Add the clipped gradients of a chunk of examples, by parameter name, to ``total``."""
    squares = [gradient.flatten(1).square().sum(1) for gradient in gradients.values()]
    scale = clip_factor(torch.stack(squares).sum(0), max_grad_norm)
    for name, gradient in gradients.items():
        total[name] += torch.tensordot(scale, drop_unclipped(gradient, scale), dims=1)


def widened(tensor: Tensor, dtype: torch.dtype = torch.double) -> Tensor:
    """Convert floating-point numbers to a type, and leave others unchanged."""
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


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


def refuse_joint_layers(network: nn.Module) -> None:
    """Refuse layers by which one example changes the gradients of others, or a buffer.

    Dropout is among them in training mode: its coins go by the place of an example in the batch and
    come from a public seed, so one record less gives the coins of all later ones to others.

    Raises:
        Refusal: It names the layer.
    """
    for name, module in network.named_modules():
        drops = isinstance(module, _DropoutNd) and module.training and module.p > 0
        if drops or isinstance(module, _BatchNorm):
            raise Refusal(
                f"{name or 'the network'} is a {type(module).__name__}, by which one record changes "
                "the gradients of others: clipping each does not bound the sum\n"
                "use GroupNorm or LayerNorm, and no dropout"
            )
        if isinstance(module, _NormBase) and module.track_running_stats:
            raise Refusal(
                f"{name or 'the network'} is a {type(module).__name__} that keeps statistics of its "
                "inputs: nobody pays for what they tell of the records\n"
                "use track_running_stats=False"
            )


def one_by_one(losses: Tensor, count: int) -> Tensor:
    """Return losses of shape ``(B,)``, if there is one for each of ``count`` examples.

    Raises:
        Refusal: If they have another shape. A mean over the batch divides the gradient of each
            record by the number of all: one record would change the gradients of others.
    """
    if losses.shape != (count,):
        raise Refusal(
            f"the loss of {count} examples has the shape {tuple(losses.shape)}, and not "
            f"({count},)\nreturn one loss per example (reduction='none'): a mean or a sum over the "
            "batch cannot be clipped"
        )
    return losses


class _Alone(nn.Module):
    """A network and its loss as one module, whose tensors a functional call can replace."""

    def __init__(self, network: nn.Module, loss: NetworkLoss) -> None:
        super().__init__()
        self.network, self.loss = network, loss

    def forward(self, *examples: Tensor) -> Tensor:
        losses: Tensor = self.loss(self.network, *examples)
        return one_by_one(losses, len(examples[0]))[0]


def trained_parameters(network: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters of a network that are not frozen, by name; one that layers share is there once.

    Raises:
        Refusal: If there is none.
    """
    trained = {name: p for name, p in network.named_parameters() if p.requires_grad}
    if not trained:
        raise Refusal("the network has no parameter to train: all are frozen, or there is none")
    return trained


def network_sum(
    network: nn.Module, loss: NetworkLoss, examples: tuple[Tensor, ...], max_grad_norm: float
) -> dict[str, Tensor]:
    r"""Sum :math:`\sum_b g_b \min(1, C / \|g_b\|)` of a network over the examples of this rank.

    The network gets no hook, attribute or gradient, and its buffers do not change.

    Args:
        network: Network; its frozen parameters are left out.
        loss: ``loss(network, *examples)`` of shape ``(B,)``, here of batches of one. It calls the
            network that it is given.
        examples: Tensors of shape ``(B, ...)``; B may be 0.
        max_grad_norm: Clipping norm C over all parameters together.

    Returns:
        The sum by parameter name, in double precision; zeros for a parameter without gradient.

    Raises:
        Refusal: If the loss of a batch of one has not the shape ``(1,)``.
        RuntimeError: If a layer cannot be computed for each example alone: batch norm, dropout.
    """
    alone, parameters = _Alone(network, loss), trained_parameters(network)
    fixed = {
        f"network.{name}": widened(tensor.detach())
        for name, tensor in chain(network.named_parameters(), network.named_buffers())
    }

    def of_one(values: Mapping[str, Tensor], *example: Tensor) -> Tensor:
        state = fixed | {f"network.{name}": value for name, value in values.items()}
        value: Tensor = functional_call(alone, state, tuple(tensor[None] for tensor in example))
        return value

    size = sum(parameter.numel() for parameter in parameters.values())
    chunk = min(_CHUNK, max(1, _CHUNK_NUMBERS // max(1, size)))
    return clipped_gradient_sum(of_one, parameters, examples, max_grad_norm, chunk_size=chunk)


def ghost_clipped_gradient_sum(
    network: nn.Module,
    losses: Callable[..., Tensor],
    inputs: Tensor,
    max_grad_norm: float,
    *,
    others: tuple[Tensor, ...] = (),
    rows: Rows | None = None,
    chunk_size: int = 1024,
    dtype: torch.dtype = torch.double,
) -> dict[str, Tensor]:
    r"""Compute ``clipped_gradient_sum`` in one batched backward pass.

    All trained parameters of the network, except the table of ``rows``, belong to ``nn.Linear``
    maps.

    A map adds up K products of an example, whose lengths sum to V or less after clipping. The error of
    n examples in passes of s is at most :math:`n (s K V + n C / s) 2^{-53}`. Where products do not
    cancel, V is at most :math:`\sqrt K C`, and ``ROUNDING`` holds for a million examples in passes of 1,024
    with two products. Whatever cancels, :func:`_rounding` keeps V below :math:`C / \sqrt{slack}`: with
    250 inputs and outputs and weights in single precision this is 181 C, and ``ROUNDING``
    holds for 12,000 examples. Rows of a table are added one by one, with an error of at most
    :math:`n^2 V 2^{-53}`; two different rows of an example do not cancel, which holds for 56,000.

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
        dtype: Precision of all of it. Single precision is for examples that read no record; a private
            step refuses its sums.

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
        f"{name}.{key}": torch.zeros_like(parameter, dtype=dtype)
        for name, module in maps.items()
        for key, parameter in module.named_parameters()
    }
    if rows is not None:
        total["rows"] = torch.zeros_like(rows.table, dtype=dtype)
    for low in range(0, len(inputs), chunk_size):
        part = inputs[low : low + chunk_size].detach().to(dtype).requires_grad_()
        with _recording(maps, rows is not None) as uses:
            beside = (widened(tensor[low : low + chunk_size], dtype) for tensor in others)
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
    """Uses (x, y, 1 or 0) of each map, of shapes ``(B, K, in)``, ``(B, K, out)`` and ``(K,)``.

    The last number tells whether the use adds y to the gradient of the bias.

    Attributes:
        final: Whether the current gradient is that of the loss, and not one inside it.
        reads_rows: Whether the gradient by the inputs is needed.
    """

    def __init__(self, reads_rows: bool) -> None:
        self.final, self.reads_rows = False, reads_rows
        self.of: dict[str, list[tuple[Tensor, Tensor, Tensor]]] = {}

    def add(self, name: str, x: Tensor, y: Tensor, *, forwards: bool) -> None:
        if not self.final:
            return
        x = x.detach().reshape(len(x), -1, x.shape[-1])
        y = y.detach().reshape(len(y), -1, y.shape[-1])
        self.of.setdefault(name, []).append((x, y, x.new_full((x.shape[1],), forwards)))


class _Forwards(Function):
    """``x W^T + b``; its backward pass is a use of W, and itself differentiable."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, uses: _Uses, name: str
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.uses, ctx.name = uses, name
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        (y,), uses = gradients, ctx.uses
        uses.add(ctx.name, x, y, forwards=True)
        if uses.final and x.is_leaf and not uses.reads_rows:
            return None, None, None, None, None
        return _Backwards.apply(y, weight, uses, ctx.name), None, None, None, None  # type: ignore[no-untyped-call]


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
        return _Forwards.apply(x, weight, None, ctx.uses, ctx.name), None, None, None  # type: ignore[no-untyped-call]


@contextmanager
def _recording(maps: dict[str, nn.Linear], reads_rows: bool) -> Iterator[_Uses]:
    """Record the uses of the maps within the context."""
    uses = _Uses(reads_rows)

    def apply(name: str, module: nn.Linear, x: Tensor) -> Tensor:
        bias = None if module.bias is None else module.bias.detach().to(x.dtype)
        y: Tensor = _Forwards.apply(x, module.weight.to(x.dtype), bias, uses, name)  # type: ignore[no-untyped-call]
        return y

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
    joined = {name: _joined(of_map) for name, of_map in uses.of.items()}
    squares = []
    eps = max((torch.finfo(m.weight.dtype).eps for m in maps.values()), default=0.0)
    for name, (x, y, forwards) in joined.items():
        # The bias is the weight of one more entry of x, which is 1.
        ones = 0.0 if maps[name].bias is None else forwards[:, None] * forwards
        inner, outer = x @ x.mT + ones, y @ y.mT
        squares.append((inner * outer).sum((1, 2)))
        lengths = (_diagonal(inner) * _diagonal(outer)).sqrt()
        squares.append(_rounding(lengths, x.shape[-1] + y.shape[-1] + 1, eps))
    if index is not None:
        same = index[:, :, None] == index[:, None, :]
        squares.append(((touched @ touched.mT) * same).sum((1, 2)))
        squares.append(_rounding(touched.norm(dim=-1), touched.shape[-1], eps))
    if not squares:
        return
    factor = clip_factor(torch.stack(squares).sum(0), max_grad_norm)
    for name, (x, y, forwards) in joined.items():
        scaled = drop_unclipped(y, factor) * factor[:, None, None]
        x = drop_unclipped(x, factor)
        total[f"{name}.weight"] += (x.flatten(0, 1).T @ scaled.flatten(0, 1)).T
        if maps[name].bias is not None:
            total[f"{name}.bias"] += forwards @ scaled.sum(0)
    if index is not None:
        scaled = drop_unclipped(touched, factor) * factor[:, None, None]
        total["rows"].index_add_(0, index.flatten(), scaled.flatten(0, 1))


def _joined(uses: list[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Join the uses of one map; a single one without a copy."""
    if len(uses) == 1:
        return uses[0]
    x, y, forwards = zip(*uses, strict=True)
    return torch.cat(x, 1), torch.cat(y, 1), torch.cat(forwards)


def _diagonal(products: Tensor) -> Tensor:
    """Squared lengths of uses, shape ``(B, K)``, raised to the root of the least normal number."""
    return products.diagonal(dim1=1, dim2=2).clamp(min=torch.finfo(products.dtype).tiny ** 0.5)


def _rounding(uses: Tensor, width: int, eps: float) -> Tensor:
    r"""Bound the rounding error of a squared ghost norm, shape ``(B,)``.

    Each of the :math:`K^2` terms is a product of inner products, whose relative error is at most
    the number of summands times half of the machine epsilon; the terms' absolute sum is at most
    :math:`(\sum_k u_k)^2`. Where huge uses cancel this is more than the norm itself: without it such
    a record could be clipped too little. It also bounds by how much the uses of a clipped record can
    exceed C, and with them what is rounded where they are added.

    A summand that underflows is wrong by at most the least normal number t, in any order and whether
    or not subnormal numbers are flushed to 0. Squared lengths are raised to :math:`\sqrt t`, so that
    the other factor of the term makes of it no more than :math:`\sqrt t (\sum_k u_k)^2`. What
    overflows makes the norm infinite or NaN, and the record is dropped.

    Args:
        uses: Norms :math:`u_k` of the summands of the gradient, shape ``(B, K)``.
        width: Summands of the inner products of one term.
        eps: Machine epsilon of the weights, or of the arithmetic if that is larger.
    """
    slack = (width + uses.shape[1] ** 2 + 2) * eps
    return slack * uses.sum(1).square()


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
