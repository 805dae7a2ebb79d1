"""Loading of buffers whose shapes depend on the data."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def resized(*names: str) -> Callable[..., None]:
    """Return a loading hook that resizes buffers to their shapes in the state."""

    def resize(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
        for name in names:
            if prefix + name in state:
                setattr(module, name, torch.empty_like(state[prefix + name]))

    return resize
