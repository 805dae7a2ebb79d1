"""The private data of a run, read again as its config.yaml says, and the key of its node numbers."""

import copy
import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.graph.node_names import SECRET_NUMBERS
from lightning_dpg.release.release import Release
from lightning_dpg.release.writer import KEY
from lightning_dpg.run.read import set_up
from lightning_dpg.run.run_config import config_beside, section_of
from lightning_dpg.run_folder import CONFIGURATION

NO_KEY = " (a number in secret order)"
"""What is added to published numbers of nodes whose key is not at hand: no node has such a name."""


def data_of_run(run: str | Path) -> EdgeListDataModule:
    """Read the private graph of a run, with the nodes and columns of its fit.

    The classes of the graph are the true labels where these are private: the data stay with their
    owner.

    Args:
        run: Folder of the run or of its release.

    Returns:
        The data module, set up.

    Raises:
        CommandError: If there is no configuration, if it names no file or no graph, or if the data
            are not readable.
    """
    config = config_beside(Path(run))
    if config is None:
        raise CommandError(
            f"{run}: no {CONFIGURATION} of a run, which says where its data are\n"
            f"give the data: FILE {run}"
        )
    section = section_of(config, "data")
    arguments: dict[str, Any] = section.get("init_args") or {}
    source = arguments.get("source", arguments.get("name"))
    if isinstance(source, str) and source.startswith("given in Python"):
        raise CommandError(f"{config}: its data were {source}\ngive them: DATA {run}")
    try:
        module = set_up(section)
        if not isinstance(module, EdgeListDataModule):
            raise CommandError(f"{config}: its data are a set of graphs, expected one graph")
        if module.private_labels is not None:
            module.graph.y = module.private_labels.class_numbers()
        return module
    except (Refusal, OSError) as error:
        raise CommandError(
            f"{error}\n{config} says so: paths are those of the folder in which fit ran"
        ) from error


def data_of_rows(real: Any, release: Release | Path) -> EdgeListDataModule | None:
    """Return the data module of the private columns, or of the transfers, that a release has learned.

    Args:
        real: What the caller names as the real graph.
        release: The release, open or as a folder.

    Returns:
        The real graph itself if it is a data module that has some of them, or else the data of the run of
        the release; None if these are not known any more.
    """
    if isinstance(real, EdgeListDataModule) and (
        real.private_columns is not None or real.transfers is not None
    ):
        return real
    folder = release if isinstance(release, Path) else release.folder
    try:
        return None if folder is None or config_beside(folder) is None else data_of_run(folder)
    except CommandError:  # of data in Python, or of files that are elsewhere
        return None


def own_names(
    names: Sequence[str], statement: Mapping[str, Any], release: Path | None
) -> list[str]:
    """Return the names of published nodes that their owner knows, by the key in the folder of the run.

    Args:
        names: Names in the release.
        statement: Its privacy statement.
        release: Its folder.

    Returns:
        The names as they are, unless they are numbers in a secret order. Without the key these name no
        node of any graph: see :data:`NO_KEY`.

    Raises:
        CommandError: If the key is that of another release.
    """
    if SECRET_NUMBERS not in statement.get("assumptions", ()):
        return list(names)
    key = None if release is None else release.absolute().parent / KEY
    if key is None or not key.is_file():
        return [f"{name}{NO_KEY}" for name in names]
    with key.open(encoding="utf-8", newline="") as file:
        known = dict(csv.reader(file))
    if not known.keys() >= {*names}:
        raise CommandError(f"{key}: the key of another release, which numbers other nodes")
    return [known[name] for name in names]


def under_own_names(release: Release) -> Release:
    """Return a release whose method has the names of nodes that their owner knows.

    Args:
        release: The release, opened, whose own method stays as it is.
    """
    names = getattr(release.method, "node_names", None)
    if names is None:  # of a set
        return release
    method = copy.copy(release.method)
    method.node_names = own_names(names, release.statement, release.folder)
    return replace(release, method=method)


def of_known_nodes(release: Release) -> Release:
    """Return a release under the names that the owner of its nodes knows, for what depends on nodes.

    Raises:
        CommandError: If its nodes are numbers in a secret order, and their key is not at hand.
    """
    found = under_own_names(release)
    if any(name.endswith(NO_KEY) for name in getattr(found.method, "node_names", None) or ()):
        raise CommandError(
            f"{release.folder or 'the release'}: its nodes are numbered in a secret order, and the key is "
            f"not beside it\ngive its run, whose folder has the key {KEY}"
        )
    return found
