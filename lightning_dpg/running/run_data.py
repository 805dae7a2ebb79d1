"""The private data of a run, read again as its config.yaml says."""

import csv
from pathlib import Path
from typing import Any

from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.release.release import Release
from lightning_dpg.release.writer import KEY
from lightning_dpg.run_folder import CONFIGURATION
from lightning_dpg.running.read import set_up
from lightning_dpg.running.run_config import config_beside, section_of


def data_of_run(run: str | Path) -> EdgeListDataModule:
    """Read the private graph of a run, with the nodes and columns of its fit.

    Where a run has published numbers in place of names, its key file numbers the nodes. The classes
    of the graph are the true labels where these are private: the data stay with their owner.

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
        key = config.with_name(KEY)
        if module.nodes.published_names == "numbers" and key.is_file():
            _number(module, section, key)
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


def _number(module: EdgeListDataModule, section: dict[str, Any], key: Path) -> None:
    """Number the nodes as the key file of a run does."""
    named = section["init_args"]["nodes"] | {"names": "keep"}
    plain = set_up({**section, "init_args": section["init_args"] | {"nodes": named}})
    place = {name: number for number, name in enumerate(plain.graph.node_names)}
    with key.open(encoding="utf-8", newline="") as file:
        names = [name for _, name in list(csv.reader(file))[1:]]
    if set(names) != set(place):
        raise CommandError(f"{key}: these nodes are not those of the data any more")
    module.load_state_dict({"numbering": [place[name] for name in names]})
