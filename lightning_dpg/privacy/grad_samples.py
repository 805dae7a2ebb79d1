r"""Sums of clipped gradients of a network, each of whose examples is computed alone.

A record is one example. ``torch.func.vmap`` runs a functional copy of the network on each example, a
batch of one: no layer, loss or size of a batch can let two examples meet. The gradient of a record is
a function of this record, of the weights, and of what the loss reads beside its arguments. It is
clipped over all parameters together, so one record more or less moves the sum by at most C. All is
computed in double precision and added up in chunks, see
:func:`~lightning_dpg.privacy.dpsgd.clipped_gradient_sum`.
"""

from collections.abc import Callable, Mapping
from itertools import chain

from torch import Tensor, nn
from torch.func import functional_call

from lightning_dpg.errors import Refusal
from lightning_dpg.privacy.dpsgd import clipped_gradient_sum, widened
from lightning_dpg.privacy.joint_layers import one_by_one

NetworkLoss = Callable[..., Tensor]
# Numbers in the gradients of a chunk of examples, half a gigabyte, and its most examples.
_CHUNK_NUMBERS, _CHUNK = 2**26, 1024


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
