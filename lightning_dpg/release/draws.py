"""The files of a release that its method writes: tensors, and what it draws from them."""

import json
import platform
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from safetensors.torch import save
from torch import Tensor

from lightning_dpg.formats.parquet import write_attribute_table
from lightning_dpg.interfaces import (
    KindOfRecords,
    PublishesAttributes,
    PublishesFeatures,
    Rebuilt,
    Released,
    public_path,
)
from lightning_dpg.privacy.paid_weights import LEDGER
from lightning_dpg.release.graph_files import Format, write_graphs
from lightning_dpg.release.recipe import NODE_NAMES, RECIPE, SCHEMA_VERSION
from lightning_dpg.release.writer import ATTRIBUTE_TABLE, ATTRIBUTES, FEATURES

MANY_NODES = 2_000_000
"""From here on names are a tensor: safetensors opens no file with a header above 100 MB."""


def plain_settings(method: Released) -> dict[str, Any]:
    """Return the hyperparameters of a method, without the keys that the command line adds."""
    # Lightning's own keys start with "_".
    return {key: value for key, value in method.hparams.items() if not key.startswith("_")}


def check_settings(method: Released) -> None:
    """Refuse hyperparameters that the files of a release cannot hold.

    Args:
        method: The method.

    Raises:
        MisconfigurationException: If one is no plain value.
    """
    for name, value in plain_settings(method).items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise MisconfigurationException(
                f"{type(method).__name__}: {name} is no plain value ({error})\n"
                "a release holds numbers, texts, and lists or mappings of them"
            ) from error


def tensors_of(method: Rebuilt) -> dict[str, Tensor]:
    """Return the released tensors without ledgers, which a release has in its statement."""
    state = method.released_state()
    return {name: tensor for name, tensor in state.items() if not name.endswith(LEDGER)}


def save_generator(method: Rebuilt, statement: dict[str, Any], path: Path) -> None:
    """Write the released tensors and the metadata that rebuild the method around them."""
    tensors = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in tensors_of(method).items()
    }
    check_settings(method)
    recipe = {
        "schema_version": SCHEMA_VERSION,
        "method": public_path(type(method)),
        "hparams": plain_settings(method),
    }
    put_names(method.node_names, recipe, tensors)
    recipe["privacy"] = statement
    if isinstance(method, KindOfRecords) and method.kind != "undirected":
        recipe |= {"kind": method.kind, "num_left": method.num_left}
    text = json.dumps(recipe, allow_nan=False)
    # One key: safetensors writes several in random order, and equal releases would differ.
    # Written by Python: safetensors would make the file readable by its owner only.
    path.write_bytes(save(tensors, metadata={RECIPE: text}))


def write_attributes(method: Rebuilt, folder: Path, *, as_table: bool) -> None:
    """Write the public attributes of the nodes into a release, if there are any."""
    attributes = method.attribute_arrays() if isinstance(method, PublishesAttributes) else {}
    if attributes:
        names = np.array(method.node_names)
        np.savez_compressed(folder / ATTRIBUTES, node_names=names, **attributes)
    if attributes and as_table:
        with (folder / ATTRIBUTE_TABLE).open("wb") as file:
            write_attribute_table(list(method.node_names or []), attributes, file)


def write_draws(
    method: Any,
    num_graphs: int,
    folder: Path,
    formats: Sequence[Format] | None = None,
    *,
    has_table: bool | None = None,
) -> None:
    """Write all files of a release that its tensors determine: graphs and what is drawn beside them.

    Args:
        method: The method, around its released tensors.
        num_graphs: Number of synthetic graphs, of the public seeds 0, 1, ...
        folder: Folder of the files.
        formats: Suffixes of the files of graphs; None chooses them by the size of each graph.
        has_table: Whether public attributes are a table in Parquet as well; by default if ``formats``
            has Parquet.
    """
    arrays: dict[str, Any] | None = None
    if isinstance(method, PublishesFeatures):
        arrays = method.released_arrays()
    if arrays is not None:
        np.savez_compressed(folder / FEATURES, **arrays)
        return
    write_graphs(method, range(num_graphs), folder, formats)
    as_table = "parquet" in (formats or ()) if has_table is None else has_table
    write_attributes(method, folder, as_table=as_table)


def drawn_with() -> dict[str, str]:
    """Return the versions that draws depend on: of libraries, and of the processor's arithmetic."""
    names = ("numpy", "scipy", "torch", "networkx", "pyarrow")
    found = {name: version(name) for name in names if find_spec(name)}
    processor = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    return {"python": platform.python_version(), **found, "processor": processor}


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
