r"""Sums of clipped gradients of a network of any layers that opacus supports.

The hooks of opacus' ``GradSampleModule`` compute the gradient of each example layer by layer
(Yousefpour et al., "Opacus: User-friendly differential privacy library in PyTorch", 2021). They
cannot take the gradient of a gradient, such as that of WGAN-GP; ghost norms can.

A record is one example. Its gradient is a function of itself alone, by what
:meth:`GradSampleSum.check` finds, and is clipped over all parameters together: one record more or
less moves the sum by at most C. All is computed in double precision and added up in chunks. The
rounding of ``clipped_gradient_sum`` is then that of this sum too.
"""

import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from opacus.grad_sample import GradSampleModule
from opacus.validators import ModuleValidator
from torch import Tensor, nn

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.dpsgd import add_clipped, widened
from lightning_dpg.privacy.joint_layers import one_by_one, refuse_joint_layers

# Numbers in the gradients of a chunk of examples, half a gigabyte, and its most examples.
_CHUNK_NUMBERS, _CHUNK = 2**26, 1024
# Share of the largest entry by which two computations of one gradient may differ, in double precision.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class GradSampleSum:
    """A clipped sum of the gradients of a network, by opacus' hooks.

    Every sum is computed on a copy of the network in double precision, which is made anew: the
    network itself gets no hook, attribute or gradient.

    Attributes:
        network: Network in training mode. Its frozen parameters are left out.
        per_example_loss: ``per_example_loss(network, *examples)`` of shape ``(B,)``. It calls the
            network that it is given, on inputs whose first dimension is the batch.
    """

    network: nn.Module
    per_example_loss: Callable[..., Tensor]

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        """Trained parameters by name; one that layers share is there once."""
        return {name: p for name, p in self.network.named_parameters() if p.requires_grad}

    def __call__(self, examples: tuple[Tensor, ...], max_grad_norm: float) -> dict[str, Tensor]:
        r"""Sum :math:`\sum_b g_b \min(1, C / \|g_b\|)` over the examples of this rank.

        Args:
            examples: Tensors of shape ``(B, ...)``; B may be 0.
            max_grad_norm: Clipping norm C over all parameters together.

        Returns:
            The sum by parameter name, in double precision; zeros for a parameter without gradient.

        Raises:
            Refusal: If a layer is not supported, or if there is not one loss per example.
        """
        _refuse_layers(self.network)
        total = {
            name: torch.zeros_like(parameter, dtype=torch.double)
            for name, parameter in self.parameters.items()
        }
        size = sum(gradient.numel() for gradient in total.values())
        chunk = min(_CHUNK, max(1, _CHUNK_NUMBERS // max(1, size)))
        for low in range(0, len(examples[0]), chunk):
            part = tuple(tensor[low : low + chunk] for tensor in examples)
            gradients = self._gradients(part)
            if gradients:
                add_clipped(total, gradients, max_grad_norm)
        return total

    def check(self, examples: tuple[Tensor, ...]) -> None:
        """Compare the gradient of each example in the batch with that of the example alone.

        Args:
            examples: Made-up tensors of shape ``(B, ...)``, B at least 2.

        Raises:
            Refusal: If the network mixes examples or draws coins, or if opacus' hooks give another
                gradient than autograd: where a parameter is used outside of its layer, say.
        """
        _refuse_layers(self.network)
        count = len(examples[0])
        gradients = self._gradients(examples)
        for i in range(count):
            alone = self._exact(tuple(tensor[i : i + 1] for tensor in examples), 0)
            inside = self._exact(examples, i)
            rounding = _TOLERANCE * max(map(_largest, alone.values()))
            if not gradients and not rounding:
                raise Refusal(
                    "the loss does not use the network that it is given\n"
                    "write per_example_loss(network, *examples), and call this network in it"
                )
            for name, expected in alone.items():
                if not torch.allclose(inside[name], expected, 0, rounding, equal_nan=True):
                    raise Refusal(
                        f"the gradient of {self._place(name)} by one example depends on the other "
                        "examples of the batch, on random numbers, or on single precision: clipping "
                        "each does not bound the sum\nlet the loss compute each example alone, in the "
                        "precision of its inputs, and pass it random numbers as examples"
                    )
                samples = gradients.get(name, expected.new_zeros(count, *expected.shape))
                if samples.shape != (count, *expected.shape) or not torch.allclose(
                    samples[i], expected, 0, rounding, equal_nan=True
                ):
                    raise Refusal(
                        f"opacus computes another gradient of {self._place(name)} than autograd: "
                        "it sees parameters inside of their layers only, on inputs whose first "
                        "dimension is the batch, and every use of a layer has to reach the loss\n"
                        "rewrite this layer, or use clipped_gradient_sum, which knows no layers"
                    )

    def _gradients(self, examples: tuple[Tensor, ...]) -> dict[str, Tensor]:
        """Gradients of B examples by parameter name, shape ``(B, ...)``; without unused ones."""
        # What a layer without gradient leaves behind would spoil the next batch: no copy has two.
        copy = deepcopy(self.network).double()
        hooks = GradSampleModule(copy, loss_reduction="sum", strict=False)
        self._backward(copy, examples)
        sampled = {name: getattr(p, "grad_sample", None) for name, p in copy.named_parameters()}
        hooks.to_standard_module()  # hooks and network refer to each other, and stay in memory
        return {name: gradient for name, gradient in sampled.items() if gradient is not None}

    def _exact(self, examples: tuple[Tensor, ...], i: int) -> dict[str, Tensor]:
        """Gradient of the i-th example in a batch by autograd; zeros for unused parameters."""
        copy = deepcopy(self.network).double()
        gradients = self._backward(copy, examples, i)
        names = (name for name, p in copy.named_parameters() if p.requires_grad)
        return dict(zip(names, gradients, strict=True))

    def _backward(
        self, copy: nn.Module, examples: tuple[Tensor, ...], i: int | None = None
    ) -> tuple[Tensor, ...]:
        """Gradients of the losses of a copy, or of the i-th one, by its trained parameters."""
        trained = [parameter for parameter in copy.parameters() if parameter.requires_grad]
        losses = self.per_example_loss(copy, *map(widened, examples))
        losses = one_by_one(losses, len(examples[0]))
        if not losses.requires_grad:
            return tuple(torch.zeros_like(parameter) for parameter in trained)
        loss = losses.sum() if i is None else losses[i]
        with warnings.catch_warnings():
            # Its hooks need no gradient by the inputs of the network.
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            # Unlike ``backward``, this leaves every ``.grad`` as it is.
            return torch.autograd.grad(loss, trained, materialize_grads=True)

    def _place(self, parameter: str) -> str:
        """Name of a parameter with the type of its layer."""
        layer = self.network.get_submodule(parameter.rpartition(".")[0])
        return f"{parameter!r} ({type(layer).__name__})"


def _largest(gradient: Tensor) -> float:
    """Largest absolute value of the numbers that are finite."""
    return float(gradient.nan_to_num(0.0, 0.0, 0.0).abs().amax()) if gradient.numel() else 0.0


def _refuse_layers(network: nn.Module) -> None:
    """Refuse layers that mix examples, and those that opacus refuses or does not see.

    Raises:
        Refusal: It names the layer, and one that can take its place.
    """
    refuse_joint_layers(network)
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise Refusal("the network has no parameter to train: all are frozen, or there is none")
    for name, module in network.named_modules():
        kind = type(module)
        if not any(p.requires_grad for p in module.parameters(recurse=False)):
            continue
        if kind in ModuleValidator.VALIDATORS and ModuleValidator.VALIDATORS[kind](module):
            other = type(ModuleValidator.FIXERS[kind](module)).__name__
            raise Refusal(
                f"opacus refuses {name or 'the network'} ({kind.__name__}): it has no gradients of "
                f"single examples\nuse its {other}, or let "
                "opacus.validators.ModuleValidator.fix(network) put it there"
            )
        if not module.training:
            raise Refusal(
                f"{name or 'the network'} ({kind.__name__}) is in evaluation mode, in which opacus sees no gradient\n"
                "call train() before the step, and freeze by requires_grad_(False)"
            )
