"""Graphs of a benchmark that are Python objects: their names, and their files.

Fits run in other processes, and a later call resumes from the folder of all results. The folder
therefore keeps a copy of each object, which is as private as the object.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytorch_lightning as pl

from lightning_dpg.apps.bench.tasks import SetTask, Task
from lightning_dpg.datamodules.tu import write_tu_folder
from lightning_dpg.errors import CommandError
from lightning_dpg.formats.io import write_graph
from lightning_dpg.formats.whole_files import naming_full_disk, scratch_of
from lightning_dpg.run.data import data_of_run, load
from lightning_dpg.run.loggers import public_name
from lightning_dpg.run.source import is_run

OBJECTS = "graphs"
"""Folder of the copies, in the folder of all results."""
_NAME = re.compile(r"(?![ .])[^/\\:*?\"<>|\x00-\x1f]{1,100}")


def named(graphs: Sequence[Any] | Mapping[str, Any], task: Task) -> dict[str, Any]:
    """Return graphs by their names in all tables.

    A name or path is its own name, and a networkx graph may have one. The folder of a run stands for its
    data, and has their name. Other objects of a list are named by their number in it.

    Args:
        graphs: Names, paths, folders of runs and objects, or a dictionary of them by name.
        task: Task of the methods.

    Raises:
        CommandError: If two graphs have one name, or if a name cannot be that of a file.
    """
    if isinstance(graphs, Mapping):
        for name in graphs:
            _check_name(name)
        return {name: _as_text(source) for name, source in graphs.items()}
    found: dict[str, Any] = {}
    for number, graph in enumerate(graphs):
        source = _as_text(graph)
        if isinstance(source, str) and is_run(source):
            run, source = source, data_of_run(source)
            name = public_name(source.source if isinstance(source.source, str | Path) else run)
        else:
            name = source if isinstance(source, str) else _name_of_object(source, number, task)
        other = found.setdefault(name, source)
        if other is not source and not (isinstance(other, str) and isinstance(source, str)):
            raise CommandError(
                f"graphs: two of them are named {name!r}\ngive a dictionary of graphs by name"
            )
    return found


def _as_text(source: Any) -> Any:
    return str(source) if isinstance(source, Path) else source


def _name_of_object(graph: Any, number: int, task: Task) -> str:
    given = graph.name if isinstance(graph, nx.Graph) else ""
    if not given:
        return f"{'set' if isinstance(task, SetTask) else 'graph'}-{number}"
    _check_name(given)
    return str(given)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise CommandError(
            f"graphs: {name!r:.120} cannot be the name of a graph, which is also that of a file\n"
            "give a dictionary of graphs by name, without slashes and other signs of paths"
        )


def write_object(
    name: str, graph: Any, task: Task, undirected: bool, folder: Path, *, needs_attributes: bool
) -> str:
    """Write an object to a file or folder that every method can read.

    Args:
        name: Its name.
        graph: A graph in any form that :func:`lightning_dpg.fit` takes, or a set of graphs.
        task: Task of the methods.
        undirected: Whether to drop the directions of a directed graph.
        folder: Folder of the file.
        needs_attributes: Whether a method learns attributes of the nodes. Where none does, attributes
            that cannot be made numbers are left out.

    Returns:
        Path of the file, or of the folder of a set.

    Raises:
        CommandError: If the object is no graph, or not what the methods learn.
    """
    try:
        if isinstance(task, SetTask):
            return str(_write_set(graph, task, undirected, folder / name))
        return str(_write_one(graph, task, undirected, folder / f"{name}.npz", needs_attributes))
    except CommandError as error:
        raise CommandError(f"graphs: {name}: {str(error).removeprefix('name: ')}") from error


def _write_one(
    graph: Any, task: Task, undirected: bool, path: Path, needs_attributes: bool
) -> Path:
    if isinstance(graph, pl.LightningDataModule):
        graph = _content(graph, "graph", "a graph")
    content = task.load(graph, undirected)
    try:
        content = load(graph, undirected, task.kind, attributes=True)
    except CommandError:
        if needs_attributes:
            raise
    write_graph(content, path)
    return path


def _write_set(graphs: Any, task: Task, undirected: bool, folder: Path) -> Path:
    """Write a set in the format of TU Dortmund."""
    if isinstance(graphs, pl.LightningDataModule):
        graphs = _content(graphs, "graphs", "a set of graphs")
    task.load(graphs, undirected)  # refuses other objects in words of a command
    folder.mkdir()
    write_tu_folder(graphs, folder, undirected=undirected)
    return folder


def _content(module: pl.LightningDataModule, attribute: str, noun: str) -> Any:
    """Return what a data module has read."""
    module.prepare_data()
    module.setup("fit")
    content = getattr(module, attribute, None)
    if content is None:
        raise CommandError(f"{type(module).__name__} does not hold {noun} in memory")
    return content


def kept_in(folder: Path, name: str, written: str) -> Path:
    """Return the place of an object's copy in the folder of all results.

    Args:
        folder: Folder of all results, which need not exist.
        name: Name of the object.
        written: Path that :func:`write_object` has returned.

    Raises:
        CommandError: If the folder holds another graph of this name.
    """
    place = folder.absolute() / OBJECTS / Path(written).name
    if place.exists() and _arrays(place) != _arrays(Path(written)):
        raise CommandError(
            f"graphs: {name}: in {folder}, results of another graph have this name\n"
            "give this one another name, as in graphs={'other': graph}, or give another folder"
        )
    return place


def _arrays(path: Path) -> dict[str, Any]:
    """Return the content of a copy; compressed files of equal arrays may differ."""
    if path.is_dir():
        return {file.name: file.read_bytes() for file in path.iterdir()}
    with np.load(path, allow_pickle=False) as archive:
        return {key: (array.dtype, array.shape, array.tobytes()) for key, array in archive.items()}


def keep(written: str, place: Path) -> None:
    """Copy an object's file or folder into the folder of all results, unless it is there.

    Args:
        written: Path that :func:`write_object` has returned.
        place: Path that :func:`kept_in` has returned.
    """
    if place.exists():
        return
    place.parent.mkdir(mode=0o700, exist_ok=True)
    part = scratch_of(place)
    with naming_full_disk(place, part):
        if Path(written).is_dir():
            shutil.rmtree(part, ignore_errors=True)  # left by a killed process
            shutil.copytree(written, part)
        else:
            shutil.copyfile(written, part)
        part.replace(place)
