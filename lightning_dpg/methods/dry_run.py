"""Trial of a clipped sum on made-up examples, before a run books its first step.

A sum that fails after its step is booked has spent a part of the budget for nothing, and one that
changes a buffer publishes what nobody has paid for. The trial reads the shapes and types of examples
only, which are public.

It is a test that finds usual faults, and no proof: the sum of all examples has to be the sum of its
parts, nothing without examples, and no longer than the clipping norm for one example. The examples are
about as many as a step expects, and their numbers have both signs and sizes from 1e-3 to 1e6.
"""

import math
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import torch
from pytorch_lightning.utilities.seed import isolate_rng
from torch import Tensor, nn

from lightning_dpg.errors import Refusal
from lightning_dpg.preflight.typed_trainer import typed
from lightning_dpg.privacy.dpsgd import Parameters, network_sum

Examples = TypeVar("Examples", Tensor, tuple[Tensor, ...])
ExampleSum = Callable[[Examples, float], Mapping[str, Tensor]]

_LIBRARIES = ("torch", "opacus")
_IN_PLACE: dict[type[nn.Module], str] = {
    kind: f": {kind.__name__} of opacus.layers is DP{kind.__name__}"
    for kind in (nn.LSTM, nn.GRU, nn.RNN)
}
_CHEAP = 2**22  # numbers of the records that a trial replaces
_ALONE = 8  # examples that are tried one by one
_TOLERANCE = 1e-8
"""Share of the clipping norm by which the sum of all examples may differ from the sum of its parts, times
the number of examples: rounding in double precision stays far below it."""


def dry_run(
    clipped_sum: ExampleSum[Examples],
    parameters: Parameters,
    examples: Examples,
    max_grad_norm: float,
    expected_size: float,
    method: nn.Module,
) -> None:
    """Compute clipped sums of made-up examples, and leave everything as it was.

    Nothing is booked, no value of a record is read, and neither buffers, gradients nor the public
    random numbers change. All ranks do the same. Sums that draw random numbers differ from call to
    call, and are not compared with their parts.

    Args:
        clipped_sum: Function of examples and of the clipping norm.
        parameters: Parameters by the names of the sum.
        examples: Tensors whose shapes, without the first dimension, and types the made-up examples
            have.
        max_grad_norm: Clipping norm.
        expected_size: Expected number of examples; at least four are tried.
        method: The module whose state has to stay as it is.

    Raises:
        Refusal: If a layer fails, if the sum lacks a parameter or has another shape or precision, if
            it changes a parameter, buffer or gradient, if examples change each other's part of it, if
            the records in memory do, or if it is not clipped. Other errors come from the sum itself.
    """
    if not parameters:
        raise Refusal("there is no parameter to train: a clipped sum needs one at least")
    count = max(4, math.ceil(expected_size))
    few = min(count, _ALONE)
    indices = max((p.shape[0] for p in parameters.values() if p.ndim), default=1)

    def of(part: Examples) -> Tensor:
        total = clipped_sum(part, max_grad_norm)
        for name, parameter in parameters.items():
            _check_gradient(name, parameter, total)
        return torch.cat([total[name].flatten() for name in parameters])

    def tried(made_up: Examples) -> None:
        of_all = of(made_up)
        if of(_part(made_up, 0, 0)).any():
            raise Refusal(
                "the clipped sum of no example is not zero: it reads something beside its examples\n"
                "add what reads no record by public_backward"
            )
        alone = [of(_part(made_up, i, i + 1)) for i in range(few)]
        if max(sum_.norm() for sum_ in alone) > max_grad_norm * (1 + _TOLERANCE):
            raise Refusal(
                "one example moves the clipped sum further than max_grad_norm: it is not clipped\n"
                "use clipped_gradient_sum or ghost_clipped_gradient_sum, or multiply each gradient by "
                "clip_factor"
            )
        middle = (few + count) // 2
        parts = [(few, middle), (middle, count)]
        rest = sum(alone + [of(_part(made_up, low, high)) for low, high in parts if low < high])
        rounding = _TOLERANCE * max_grad_norm * count
        if (of_all - rest).norm() > rounding and torch.equal(of_all, of(made_up)):
            raise Refusal(
                "the clipped sum of all examples is not the sum of its parts: examples change each "
                "other's gradients, and clipping each does not bound the sum\n"
                "compute each example alone, by clipped_gradient_sum or PrivateTraining.backward_network"
            )
        # A closed form may start at zero, such as a product of two zero matrices.
        if not of_all.any() and getattr(clipped_sum, "func", None) is network_sum:
            raise Refusal(
                "the clipped sum of made-up examples is zero: the loss does not use the network that "
                "it is given, or only compares examples with each other, and each is computed alone\n"
                "write a loss that each example has by itself"
            )

        tensors = _records_of(method)
        with _zeros(tensors):
            without = of(made_up) if tensors else of_all
        if not torch.equal(of_all, without) and torch.equal(of_all, of(made_up)):
            raise Refusal(
                "the clipped sum reads the records of the data beside its examples: one record then "
                "changes the gradients of all examples, and clipping each does not bound the sum\n"
                "read released values in their place, such as noisy sums of neighbors"
            )

    with _unchanged(method, parameters), isolate_rng():
        _attempt(tried, _made_up(examples, count, indices), method)


def _records_of(method: nn.Module) -> list[Tensor]:
    """Edges that a method's data module holds in memory (private); none where they are many."""
    trainer = getattr(method, "_trainer", None)
    records = None if trainer is None else getattr(typed(trainer).datamodule, "records", None)
    held = {} if records is None else vars(records)  # reads no property: tables count on demand
    graphs = held.get("graphs", [held.get("graph")])
    tensors = [held.get("edges"), *(getattr(graph, "edge_index", None) for graph in graphs)]
    edges = [tensor for tensor in tensors if isinstance(tensor, Tensor)]
    return edges if sum(tensor.numel() for tensor in edges) <= _CHEAP else []


@contextmanager
def _zeros(tensors: list[Tensor]) -> Iterator[None]:
    """Set tensors to zero for a while, in place."""
    before = [tensor.clone() for tensor in tensors]
    try:
        for tensor in tensors:
            tensor.zero_()
        yield
    finally:
        for tensor, values in zip(tensors, before, strict=True):
            tensor.copy_(values)


def _part(examples: Examples, low: int, high: int) -> Examples:
    """Return the examples from ``low`` to ``high``."""
    if isinstance(examples, tuple):
        return tuple(tensor[low:high] for tensor in examples)
    return examples[low:high]


def _check_gradient(name: str, parameter: Tensor, total: Mapping[str, Tensor]) -> None:
    """Refuse a sum that cannot be added to the gradient of a parameter, or is rounded too much."""
    if name not in total:
        raise Refusal(
            f"the clipped sum has no gradient of {name!r}, but of {', '.join(total) or 'nothing'}\n"
            "freeze this parameter, or use a sum that knows its layer (clipped_gradient_sum, or "
            "PrivateTraining.backward_network)"
        )
    gradient = total[name]
    if gradient.shape != parameter.shape or gradient.device != parameter.device:
        raise Refusal(
            f"the clipped sum of {name!r} has the shape {tuple(gradient.shape)} on "
            f"{gradient.device}, and the parameter {tuple(parameter.shape)} on {parameter.device}"
        )
    if gradient.dtype != torch.double:
        raise Refusal(
            f"the clipped sum of {name!r} is a {gradient.dtype}: rounded so much, one record can "
            "move it further than is booked\n"
            "convert the gradients to torch.double before they are added"
        )


def _attempt(
    function: Callable[[Examples], None], tries: Iterator[Examples], method: nn.Module
) -> None:
    """Call a function with made-up examples, or explain why it fails with all of them."""
    errors: list[Exception] = []
    for made_up in tries:
        try:
            return function(made_up)
        except Refusal:  # of what other values may hide
            raise
        except Exception as raised:  # noqa: BLE001  a sum of a user's may raise any
            errors.append(raised)
    # An index out of range says less than any other error.
    error = next((each for each in errors if not isinstance(each, IndexError)), errors[0])
    explained = _explained(error, method)
    if explained is not None:
        raise explained from error
    error.add_note("This was a trial on made-up examples: the step was not booked.")
    raise error


def _made_up(examples: Examples, count: int, indices: int) -> Iterator[Examples]:
    """Examples of the same shapes and types: various ones, small ones, zeros, and ones.

    Not every value suits every sum: a table may have one row, and no sequence has the length 0. Real
    numbers of an example share a size, so that some examples are a billion times as large as others.

    Args:
        examples: Their shapes and types count.
        count: Number of examples.
        indices: Whole numbers below it are tried first, then 0 and 1: the longest parameter has as
            many rows.
    """
    public = torch.Generator().manual_seed(0)

    def various(bound: int, spread: float) -> Callable[[Tensor], Tensor]:
        def make(tensor: Tensor) -> Tensor:
            values = torch.rand(count, *tensor.shape[1:], generator=public)
            if not (tensor.is_floating_point() or tensor.is_complex()):
                # An index out of range ends the use of a GPU, hence 0 and 1 there.
                largest = bound if tensor.device.type == "cpu" else 2
                return (largest * values).floor().to(tensor)
            sizes = 10 ** (spread * (1.5 * torch.rand(count, generator=public) - 0.5))
            signs = 2 * values - 1 if spread else values
            return (signs * sizes.view(-1, *[1] * (tensor.ndim - 1))).to(tensor)

        return make

    def equal(value: int) -> Callable[[Tensor], Tensor]:
        return lambda tensor: tensor.new_full((count, *tensor.shape[1:]), value)

    for make in (various(indices, 6.0), various(2, 6.0), various(2, 0.0), equal(0), equal(1)):
        if isinstance(examples, tuple):
            yield tuple(make(tensor) for tensor in examples)
        else:
            yield make(examples)


def _explained(error: Exception, method: nn.Module) -> Refusal | None:
    """Name the layer of a library that fails, or None if the error is that of other code."""
    modules: list[nn.Module] = []
    package = place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        values = (frame.f_locals.get(key) for key in ("self", "module", "layer"))
        modules += [value for value in values if isinstance(value, nn.Module)]
        if package not in (*_LIBRARIES, "lightning_dpg"):
            place = f" (called at {Path(frame.f_code.co_filename).name}:{line})"
    if package not in _LIBRARIES or not modules or not _is_of_library(modules[-1]):
        return None
    tops = [method, *modules]
    names = {id(m): name for top in reversed(tops) for name, m in top.named_modules() if name}
    layers = [m for m in reversed(modules) if id(m) in names and _is_of_library(m)]
    layer = layers[0] if layers else modules[-1]
    name = names.get(id(layer), "the network")
    message = " ".join(str(error).split())[:240]
    return Refusal(
        f"{name} ({type(layer).__name__}) fails in a clipped sum{place}\n"
        f"{type(error).__name__}: {message}\n"
        "nothing was booked for this step: put a layer in its place that keeps no state, draws no "
        f"coins and takes each example alone{_IN_PLACE.get(type(layer), '')}"
    )


def _is_of_library(module: nn.Module) -> bool:
    return type(module).__module__.partition(".")[0] in _LIBRARIES


@contextmanager
def _unchanged(method: nn.Module, parameters: Parameters) -> Iterator[None]:
    """Put the state of a method back, and refuse what has changed it.

    Raises:
        Refusal: If a parameter, buffer or gradient has changed.
    """
    trained = dict(method.named_parameters())
    ids = set(map(id, trained.values()))
    trained |= {name: p for name, p in parameters.items() if id(p) not in ids}
    gradients = {f"{name}.grad": (p, p.grad) for name, p in trained.items()}
    buffers = [(module, dict(module._buffers)) for module in method.modules()]
    places = {id(module): f"{name}." if name else "" for name, module in method.named_modules()}
    present = {name: g for name, (_, g) in gradients.items() if g is not None}
    tensors: dict[str, Tensor] = {**trained, **dict(method.named_buffers()), **present}
    before = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    changed = []
    try:
        yield
    finally:
        for name, (parameter, gradient) in gradients.items():
            if parameter.grad is not gradient:
                changed.append(name)
                parameter.grad = gradient
        for module, own in buffers:
            for key, buffer in own.items():
                if module._buffers.get(key) is not buffer:
                    changed.append(places[id(module)] + key)
                    module._buffers[key] = buffer
        for name, tensor in tensors.items():
            if not torch.equal(_bits(tensor), _bits(before[name])):
                changed.append(name)
                with torch.no_grad():
                    tensor.copy_(before[name])
    if changed:
        raise Refusal(
            f"the clipped sum changes {changed[0]}: what it learns of the records there is neither "
            "clipped nor paid for\nuse layers that keep no state, and torch.autograd.grad in place "
            "of backward()"
        )


def _bits(tensor: Tensor) -> Tensor:
    """Convert NaN, which is not equal to itself, to a number."""
    return tensor.detach().nan_to_num(nan=-1.25)
