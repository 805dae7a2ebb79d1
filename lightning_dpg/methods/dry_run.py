"""Trial of a clipped sum on made-up examples, before a run books its first step.

A sum that fails after its step is booked has spent a part of the budget for nothing, and one that
changes a buffer publishes what nobody has paid for. The trial reads the shapes and types of examples
only, which are public.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import torch
from pytorch_lightning.utilities.seed import isolate_rng
from torch import Tensor, nn

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.dpsgd import Parameters
from lightning_dpg.privacy.grad_samples import GradSampleSum

Examples = TypeVar("Examples", Tensor, tuple[Tensor, ...])
Result = TypeVar("Result")
ExampleSum = Callable[[Examples, float], Mapping[str, Tensor]]

_COUNT = 3
_LIBRARIES = ("torch", "opacus")


def dry_run(
    clipped_sum: ExampleSum[Examples],
    parameters: Parameters,
    examples: Examples,
    max_grad_norm: float,
    method: nn.Module,
) -> None:
    """Compute a clipped sum of made-up examples, and leave everything as it was.

    Nothing is booked, no value of a record is read, and neither buffers, gradients nor the public
    random numbers change. All ranks do the same.

    Args:
        clipped_sum: Function of examples and of the clipping norm.
        parameters: Parameters by the names of the sum.
        examples: Tensors whose shapes, without the first dimension, and types the made-up examples
            have.
        max_grad_norm: Clipping norm.
        method: The module whose state has to stay as it is.

    Raises:
        Refusal: If a layer fails, if the sum lacks a parameter or has another shape or precision, or
            if it changes a parameter, buffer or gradient. Other errors are those of the sum itself.
    """
    if not parameters:
        raise Refusal("there is no parameter to train: a clipped sum needs one at least")
    with _unchanged(method, parameters), isolate_rng():
        if isinstance(clipped_sum, GradSampleSum):
            _attempt(clipped_sum.check, examples, method)
        total = _attempt(lambda made_up: clipped_sum(made_up, max_grad_norm), examples, method)
        for name, parameter in parameters.items():
            _check_gradient(name, parameter, total)


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
    function: Callable[[Examples], Result], examples: Examples, method: nn.Module
) -> Result:
    """Call a function with made-up examples, or explain why it fails with all of them."""
    errors: list[Exception] = []
    for made_up in _made_up(examples):
        try:
            return function(made_up)
        except Refusal:  # of what other values may hide
            raise
        except Exception as error:  # noqa: BLE001  a sum of a user's may raise any
            errors.append(error)
    explained = _explained(errors[0], method)
    if explained is not None:
        raise explained from errors[0]
    errors[0].add_note("This was a trial on made-up examples: the step was not booked.")
    raise errors[0]


def _made_up(examples: Examples) -> Iterator[Examples]:
    """Examples of the same shapes and types: various ones, zeros, and ones.

    Not every value suits every sum: a table may have one row, and no sequence has the length 0.
    """
    public = torch.Generator().manual_seed(0)

    def various(tensor: Tensor) -> Tensor:
        # In [0, 1), as probabilities are; 0 or 1, where a number is an index.
        values = torch.rand(_COUNT, *tensor.shape[1:], generator=public)
        is_real = tensor.is_floating_point() or tensor.is_complex()
        return (values if is_real else (2 * values).floor()).to(tensor)

    def equal(value: int) -> Callable[[Tensor], Tensor]:
        return lambda tensor: tensor.new_full((_COUNT, *tensor.shape[1:]), value)

    for make in (various, equal(0), equal(1)):
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
    # opacus copies some layers once more: what is named last is the layer of the network.
    tops = [method, *modules]
    names = {id(m): name for top in reversed(tops) for name, m in top.named_modules() if name}
    layers = [m for m in reversed(modules) if id(m) in names and _is_of_library(m)]
    layer = layers[0] if layers else modules[-1]
    name = names.get(id(layer), "the network").removeprefix("_module.")
    message = " ".join(str(error).split())[:240]
    return Refusal(
        f"{name} ({type(layer).__name__}) fails in a clipped sum{place}\n"
        f"{type(error).__name__}: {message}\n"
        "nothing was booked for this step: put a layer in its place that keeps no state and takes "
        "each example alone"
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
