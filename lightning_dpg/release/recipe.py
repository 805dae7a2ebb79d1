"""The recipe of a release and its tensors as arrays, read without PyTorch and without its method."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from lightning_dpg import __version__, methods
from lightning_dpg.errors import CommandError

SCHEMA_VERSION = 3
"""Version of the recipe and of the statement: 3 has topics; 0.1.0 stated none."""
RECIPE = "lightning_dpg"
"""Metadata key of the method, its hyperparameters, node names, and privacy."""
OURS = f"{methods.__name__}."
"""How a recipe begins the name of a method of this package, of any version."""
NODE_NAMES = "node_names"
Array = NDArray[Any]
_FIELDS = {"method": str, "hparams": dict}


def read_recipe(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read recipe and tensors of a release, and check the parts common to all methods.

    Args:
        path: File of the tensors.

    Raises:
        CommandError: If the file is damaged, or not part of a release.
    """
    path.open("rb").close()  # safetensors reports an unreadable file as missing
    try:
        with safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get(RECIPE, "")
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        recipe = with_names(json.loads(text), state)
    except (SafetensorError, TypeError) as error:  # of a type that NumPy lacks
        raise CommandError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path}: its metadata hold no recipe ({error})") from error
    if isinstance(recipe, dict):
        check_schema_version(path, recipe)
    for field, kind in _FIELDS.items():
        if not isinstance(recipe, dict) or not isinstance(recipe.get(field), kind):
            raise CommandError(f"{path}: its recipe has no {field!r}, or one of another type")
    _check_names(path, recipe)
    for name, tensor in state.items():
        _check_tensor(path, name, tensor)
    return recipe, state


def check_schema_version(path: Path, content: dict[str, Any]) -> None:
    """Refuse a recipe or a privacy statement of another version.

    Args:
        path: Its file.
        content: The recipe or the statement.

    Raises:
        CommandError: If its version is later, or 0.1.0, which recorded none.
    """
    version = content.get("schema_version")
    if version is None:
        raise CommandError(
            f"{path}: of version 0.1.0, which lightning_dpg {__version__} does not open\n"
            "fit it again, or open it with lightning_dpg 0.2"
        )
    if type(version) is not int or version < 2:
        raise CommandError(f"{path}: its schema_version is {version!r}, not a number from 2 on")
    if version > SCHEMA_VERSION:
        raise CommandError(
            f"{path}: its schema_version is {version}, and lightning_dpg {__version__} reads up "
            f"to {SCHEMA_VERSION}: install a newer lightning_dpg to open it"
        )


def is_shipped(name: str) -> bool:
    """Return whether a recipe names a shipped method."""
    # A class may have moved since a release was written, so only its own name counts.
    return name.startswith(OURS) and name.rpartition(".")[2] in methods.__all__


def with_names(recipe: Any, tensors: dict[str, Array]) -> Any:
    """Return the recipe with the names of many nodes, which are among the tensors.

    Args:
        recipe: What the metadata of a release hold.
        tensors: Tensors of the release, which lose the names.

    Raises:
        Refusal: If the tensor holds no JSON.
    """
    if not isinstance(recipe, dict) or NODE_NAMES not in tensors or recipe.get(NODE_NAMES):
        return recipe
    return recipe | {NODE_NAMES: json.loads(tensors.pop(NODE_NAMES).tobytes())}


def _check_names(path: Path, recipe: dict[str, Any]) -> None:
    """Refuse incomplete node names before anything of their size is allocated."""
    names, num_nodes = recipe.get("node_names"), recipe["hparams"].get("num_nodes")
    if "node_names" not in recipe:
        raise CommandError(f"{path}: its recipe has no 'node_names'")
    if names is None:
        return
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CommandError(f"{path}: node_names of its recipe are no list of names")
    if len(set(names)) < len(names):
        raise CommandError(f"{path}: node_names of its recipe name a node twice")
    if "num_nodes" in recipe["hparams"] and num_nodes != len(names):
        raise CommandError(
            f"{path}: num_nodes of its recipe is {num_nodes!r}, but there are {len(names)} node_names"
        )


def _check_tensor(path: Path, name: str, tensor: Array) -> None:
    """Refuse values that no method releases; only single numbers may be infinite."""
    if np.isnan(tensor).any() or (tensor.ndim and np.isinf(tensor).any()):
        raise CommandError(f"{path}: its tensor {name} has values that are not finite")
    if tensor.dtype.kind == "i" and (tensor < 0).any():
        raise CommandError(f"{path}: its tensor {name} has values below 0")


def first_line(error: Exception) -> str:
    """Return the kind and the first line of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # PyTorch names the class in the first line, and the fault in the second.
    return f"{type(error).__name__}: {' '.join(lines[:2])}"[:300]
