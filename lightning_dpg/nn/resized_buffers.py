"""Loading of buffers whose shapes depend on the data."""

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor, nn


def before_loading(module: nn.Module, hook: Callable[..., None]) -> None:
    """Call a hook with the module, a state, a prefix and more before the state is loaded."""
    module.register_load_state_dict_pre_hook(hook)  # type: ignore[no-untyped-call]


def resize_on_loading(module: nn.Module, *names: str) -> None:
    """Let loading resize buffers of a module to their shapes in the state."""
    before_loading(module, partial(_resize, names))


def resize_own_buffers(module: nn.Module) -> None:
    """Let loading resize all buffers of a module, apart from those of its parts."""
    before_loading(module, _resize_own)


# Hooks are functions of the file: a spawned process gets a copy of the module.
def _resize(
    names: Iterable[str], module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object
) -> None:
    for name in names:
        if prefix + name in state:
            setattr(module, name, torch.empty_like(state[prefix + name]))


def _resize_own(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    for name, buffer in module.named_buffers(recurse=False):
        if prefix + name in state:
            setattr(module, name, buffer.new_empty(state[prefix + name].shape))
