"""Checkpoints that a command reads: checks before a fit continues or a release is used."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning import LightningDataModule

from lightning_dpg.callbacks import PrivacyAccountant
from lightning_dpg.errors import CommandError
from lightning_dpg.methods.base import ledger_of
from lightning_dpg.privacy.ledger import PrivacyLedger, Relation, journal_state
from lightning_dpg.run_folder import by_age, check_checkpoint_file, checkpoints_near

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
    check_checkpoint_file("fit", str(path))
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except _UNREADABLE as error:  # torch and pickle report broken files in all these ways
        raise CommandError(f"{_not_one(path)}{checkpoints_near(path)}") from error
    if not isinstance(content, dict) or not isinstance(content.get("state_dict"), Mapping):
        raise CommandError(f"{_not_one(path)}{checkpoints_near(path)}")
    return content


def checkpoint_of(command: str, path: str | None) -> dict[str, Any]:
    """Read the checkpoint that a command begins with; empty for a new run.

    Args:
        command: Subcommand.
        path: ``ckpt_path``.

    Raises:
        CommandError: If the command needs a checkpoint, if the file is none, or if it cannot be
            resumed.
    """
    check_checkpoint_file(command, path)
    if path is None:
        return {}
    checkpoint = read_checkpoint(Path(path))
    if command == "fit" and ledger_of(checkpoint) is None:
        raise CommandError(
            f"--ckpt_path {path} holds no privacy ledger: what it has spent is unknown\n"
            "start a new run, or resume from a checkpoint written by this program"
        )
    return checkpoint


def hyperparameters(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hyperparameters of a checkpoint, with the class under ``_class_path`` if known."""
    values = dict(checkpoint.get("hyper_parameters", {}))
    values.pop("_instantiator", None)
    return values


def check_resumed(
    path: str | None, checkpoint: Mapping[str, Any], method: type, accountant: PrivacyAccountant
) -> None:
    """Refuse to continue a checkpoint of another method, or one whose later steps are unknown.

    Args:
        path: The checkpoint; None for a new run.
        checkpoint: Its content.
        method: Class in the configuration.
        accountant: Accountant of the run.
    """
    ledger = PrivacyLedger(Relation.EDGE)
    if path is not None:
        refuse_other_method(Path(path), hyperparameters(checkpoint), method)
        state = ledger_of(checkpoint)
        assert state is not None  # as checkpoint_of has seen
        ledger = PrivacyLedger(Relation(state["relation"]))
        ledger.load_state_dict(state)
    accountant.check_journal(path, ledger, journal_state(path))


def differences(checkpoint: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """List the settings of a resumed run that differ from those of its checkpoint."""
    return [
        f"{name}: checkpoint {old}, now {arguments[name]}"
        for name, old in hyperparameters(checkpoint).items()
        if name in arguments and arguments[name] != old
    ]


def restore_split(path: str, checkpoint: Mapping[str, Any], data: LightningDataModule) -> None:
    """Give a data module the split of a checkpoint, and refuse another graph.

    Args:
        path: The checkpoint.
        checkpoint: Its content.
        data: A data module that has been set up.
    """
    split, names = checkpoint.get(type(data).__qualname__), checkpoint.get("node_names")
    graph = getattr(data, "train_graph", None)
    if split is not None and (graph is None or len(names or ()) in (0, graph.num_nodes)):
        data.load_state_dict(split)  # as Lightning does if there is a folder
        graph = getattr(data, "train_graph", None)
    refuse_other_graph(Path(path), checkpoint, graph)


def newest_checkpoint(folder: Path) -> Path | None:
    """Return the newest readable checkpoint below a folder; a full disk can truncate one."""
    for path in reversed(by_age(folder)):
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
        graph: Graph of the records, or None if there is no single one.

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
