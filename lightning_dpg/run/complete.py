"""Complete configurations: merged from files and options, with all defaults, and checked."""

import contextlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lightning_dpg.errors import CommandError
from lightning_dpg.run.private_cli import PrivateCLI
from lightning_dpg.run.quiet import mute_known_warnings
from lightning_dpg.run.settings import find_configs

_NOT_LOOKED_AT = ("GraphStatistics", "ReleaseWriter")


def complete_settings(args: Sequence[str]) -> dict[str, Any]:
    """Build the sections of a configuration, with all defaults.

    Args:
        args: Command line of ``fit``, such as ``["--config", "bter", "--privacy.epsilon", "2"]``.

    Raises:
        CommandError: If the options are not those of a fit.
    """
    mute_known_warnings()
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        PrivateCLI(["fit", *find_configs([*args]), "--print_config"])
    settings: dict[str, Any] = yaml.safe_load(text.getvalue())
    return settings


def method_settings(config: Path) -> dict[str, Any]:
    """Build the complete configuration of a method for fits on other data within a command.

    Such a fit draws no curves and figures.

    Args:
        config: File of the configuration.

    Raises:
        CommandError: If the file is not the configuration of a method.
    """
    try:
        settings = complete_settings(["--config", str(config)])
    except CommandError as error:
        raise CommandError(f"{config}: {error}") from error
    if settings["model"] is None or settings["data"] is None:
        raise CommandError(f"{config}: an overlay, while a method is a model and its data")
    arguments = settings["data"].get("init_args", {})
    if "source" in arguments:  # of a table, in whose place other data are read
        settings["data"] = {
            "class_path": "lightning_dpg.datamodules.EdgeListDataModule",
            "init_args": {"name": arguments["source"], "kind": arguments.get("kind", "undirected")},
        }
    elif "name" not in arguments:
        raise CommandError(f"{config}: its data have no name, by which they are exchanged")
    callbacks = [
        callback
        for callback in settings["trainer"]["callbacks"] or ()
        if callback["class_path"].rpartition(".")[2] not in _NOT_LOOKED_AT
    ]
    if settings["data"]["class_path"].rpartition(".")[2] == "GraphSetDataModule":
        # This module reads the same sets, and sets in files.
        settings["data"]["class_path"] = "TUGraphDataModule"
    writer = {"class_path": "ReleaseWriter", "init_args": {"formats": ["npz"]}}
    settings["trainer"] |= {
        "callbacks": [*callbacks, writer],
        "enable_model_summary": False,
        "enable_progress_bar": False,
        "logger": False,
    }
    return settings


def under_ids(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Leave the nodes of a configuration in their order, for fits that a command compares.

    Such fits publish nothing. Each fit would number nodes in a secret order of its own.

    Args:
        settings: Complete configuration of a method.
    """
    data = settings["data"]
    arguments = data["init_args"]
    if isinstance(nodes := arguments.get("nodes"), Mapping):
        arguments = arguments | {"nodes": {**nodes, "names": "ids"}}
    return {**settings, "data": data | {"init_args": arguments}}


def on_data(settings: Mapping[str, Any], name: str, **options: Any) -> dict[str, Any]:
    """Replace the data of a configuration.

    Args:
        settings: Complete configuration of a method.
        name: Name of the data, or path of a file or folder.
        options: Further arguments of the data module.
    """
    data = settings["data"]
    arguments = data["init_args"] | {"name": name} | options
    return {**settings, "data": data | {"init_args": arguments}}
