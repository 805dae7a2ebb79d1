"""Networks and losses that DP-SGD refuses: one record changes the gradients of others in them."""

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.modules.dropout import _DropoutNd

from lightning_dpg.errors import Refusal


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
