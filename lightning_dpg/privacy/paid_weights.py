"""A mark on networks whose weights were paid for; their state dicts carry it, and loading sets it.

It is metadata of a state dict and no entry of it: other programs load the weights as before. A plain
dictionary of tensors has no metadata. What its tensors have cost is unknown, so it sets the mark, too.
"""

from typing import Any

from torch import Tensor, nn

_MARK = "is_paid_for"
LEDGER = "_extra_state"
"""Name of the ledger in a state dict, which is PyTorch's for what is no parameter and no buffer."""


def watch(network: nn.Module) -> None:
    """Let the state dicts of a network, and of each part of it, carry the mark."""
    for part in network.modules():
        if _tell not in part._state_dict_hooks.values():
            part._register_state_dict_hook(_tell)  # type: ignore[no-untyped-call]
            part.register_load_state_dict_pre_hook(_hear)  # type: ignore[no-untyped-call]


def mark(network: nn.Module) -> None:
    """Mark a network with all its parts; copies are marked, too."""
    for part in network.modules():
        vars(part)[_MARK] = True


def is_marked(network: object) -> bool:
    """Return whether a network, or a part of it, has the mark."""
    parts = network.modules() if isinstance(network, nn.Module) else ()
    return any(_MARK in vars(part) for part in parts)


def load_released(method: nn.Module, state: dict[str, Tensor]) -> None:
    """Restore the tensors of a release in a method; its statement, not the state, has the ledger."""
    method.load_state_dict({**state, LEDGER: method.get_extra_state()}, strict=False)


def _tell(part: nn.Module, state: object, prefix: str, metadata: dict[str, Any]) -> None:
    if _MARK in vars(part):
        metadata[_MARK] = True


def _hear(
    part: nn.Module, state: object, prefix: str, metadata: dict[str, Any], *_: object
) -> None:
    is_plain = not prefix and not metadata  # within a whole, its own loading decides
    if _MARK in metadata or is_plain:
        vars(part)[_MARK] = True
