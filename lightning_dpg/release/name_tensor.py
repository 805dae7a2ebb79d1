"""Names of very many nodes as a tensor of a release, since the header of its file has a limit."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

NODE_NAMES = "node_names"
MANY_NODES = 2_000_000
"""From here on names are a tensor: safetensors opens no file with a header above 100 MB."""


def put_names(
    names: Sequence[str] | None, recipe: dict[str, Any], tensors: dict[str, Tensor]
) -> None:
    """Put the names of the nodes into the recipe, or those of many nodes among the tensors.

    Args:
        names: Names of the nodes (public).
        recipe: Metadata of the release, which gets ``node_names``.
        tensors: Tensors of the release; ``node_names`` there holds a list in JSON, byte by byte.
    """
    if names is None or len(names) < MANY_NODES:
        recipe[NODE_NAMES] = names
        return
    recipe[NODE_NAMES] = None
    text = np.frombuffer(json.dumps(names).encode(), dtype=np.uint8)
    tensors[NODE_NAMES] = torch.from_numpy(text.copy())


def with_names(recipe: Any, tensors: dict[str, Tensor]) -> Any:
    """Return the recipe with the names that :func:`put_names` put among the tensors.

    Args:
        recipe: What the metadata of a release hold.
        tensors: Tensors of the release, which lose the names.

    Raises:
        Refusal: If the tensor holds no JSON.
    """
    if not isinstance(recipe, dict) or NODE_NAMES not in tensors or recipe.get(NODE_NAMES):
        return recipe
    return recipe | {NODE_NAMES: json.loads(tensors.pop(NODE_NAMES).numpy().tobytes())}
