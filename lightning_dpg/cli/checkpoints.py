"""Checkpoints in a command line."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from lightning_dpg.errors import CommandError

_UNREADABLE = (
    pickle.UnpicklingError,
    EOFError,
    RuntimeError,
    ValueError,
    KeyError,
    AttributeError,
    IndexError,
    TypeError,
)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint without running any of its code.

    Raises:
        CommandError: If the file is no complete checkpoint.
    """
    if not path.is_file():
        raise CommandError(f"--ckpt_path {path}: no such file{_checkpoints_near(path)}")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:  # torch and pickle report broken files in all these ways
        raise CommandError(f"{_not_one(path)}{_checkpoints_near(path)}") from error
    if not isinstance(content, dict) or not isinstance(content.get("state_dict"), Mapping):
        raise CommandError(f"{_not_one(path)}{_checkpoints_near(path)}")
    return content


def newest_checkpoint(folder: Path) -> Path | None:
    """Newest readable checkpoint below a folder; a full disk can truncate one."""
    for path in reversed(_by_age(folder)):
        try:
            read_checkpoint(path)
        except CommandError:
            continue
        return path
    return None


def refuse_other_method(path: Path, hparams: Mapping[str, Any], method: type) -> None:
    """Refuse to continue a method with a checkpoint of another method.

    Args:
        path: The checkpoint.
        hparams: Its hyperparameters.
        method: Class in the configuration.

    Raises:
        CommandError: If the checkpoint belongs to another class.
    """
    name = str(hparams.get("_class_path", method.__name__)).rpartition(".")[2]
    if name != method.__name__:
        raise CommandError(
            f"--ckpt_path {path} is of {name}, and the configuration says {method.__name__}\n"
            "give the configuration of its run: --config RUN_FOLDER/config.yaml"
        )


def refuse_other_graph(path: Path, checkpoint: Mapping[str, Any], graph: Any) -> None:
    """Refuse to use a checkpoint on other nodes than in its training.

    Args:
        path: The checkpoint.
        checkpoint: Its content.
        graph: Graph of the data, or None if there is no single one.

    Raises:
        CommandError: If their node names, which are public, differ.
    """
    names = checkpoint.get("node_names")
    if graph is None or names is None or list(names) == list(graph.node_names):
        return
    raise CommandError(
        f"--ckpt_path {path} is of another graph: it has {len(names)} nodes, and the data have "
        f"{graph.num_nodes}, or their names differ\n"
        "give the configuration of its run: --config RUN_FOLDER/config.yaml"
    )


def _not_one(path: Path) -> str:
    return (
        f"--ckpt_path {path} is not a whole checkpoint of this program: it was cut off, or is "
        f"another file ({path.stat().st_size:,} bytes)"
    )


def _by_age(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.ckpt"), key=lambda file: file.stat().st_mtime)


def _checkpoints_near(path: Path) -> str:
    """Newest other checkpoint in the folder of a path, or in the folders of runs."""
    folder = path.parent if path.parent.is_dir() else Path("runs")
    found = [each for each in _by_age(folder) if each != path]
    return f"\nthe newest one there is {found[-1]}" if found else ""
