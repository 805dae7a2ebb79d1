"""Refusal of missing graphs, lists of nodes and checkpoints before PyTorch is imported."""

from collections.abc import Sequence
from typing import Any

from lightning_dpg.formats.columns import Columns
from lightning_dpg.formats.edge_columns import check_header
from lightning_dpg.formats.graph_places import graph_file
from lightning_dpg.formats.text_rows import is_edge_list
from lightning_dpg.graph.node_names import check_node_file, given_names, user_path
from lightning_dpg.run.checkpoint_files import check_checkpoint_file
from lightning_dpg.run.run_config import check_run
from lightning_dpg.run.shipped_data import built_in_graphs
from lightning_dpg.run.source import Reading, form_of
from lightning_dpg.run.written_settings import Setting
from lightning_dpg.run_folder import release_folder

_QUICK_BYTES = 4_000_000
"""Size below which a list of nodes is read twice."""


def refuse_missing_graph(name: str, reading: Reading = Reading()) -> None:
    """Refuse a graph that is nowhere. Names of sets, tables, folders of runs and databases pass.

    Args:
        name: Built-in name, name in the folder of real data, or path.
        reading: How it is read.

    Raises:
        GraphFormatError: If there is no such graph; the message is that of its reader.
    """
    user_path(name)  # of which a form is known
    if form_of(name, reading.given()) == "graph":
        graph_file(name, built_in_graphs())


def refuse_missing_published(name: str) -> None:
    """Refuse what was published if it is neither a release nor a graph.

    Args:
        name: Folder of a release or of a run, or a graph.

    Raises:
        GraphFormatError: If there is no such file.
    """
    user_path(name)
    if release_folder(name) is None:
        refuse_missing_graph(name)


def refuse_missing_inputs(
    real: str, published: Sequence[str] | None, reading: Reading, command: str
) -> None:
    """Refuse what a command compares with the real graph, and the graph, if one is nowhere.

    Args:
        real: The real graph or, alone, the folder of a run.
        published: Folders of releases or of runs, and graphs.
        reading: How the real graph is read.
        command: Name of the command.

    Raises:
        CommandError: If the folder is not one of a run, or has settings beside its own.
        GraphFormatError: If there is no such file.
    """
    if not published:
        check_run(real, reading, command)
        return
    refuse_missing_graph(real, reading)
    for name in published:
        refuse_missing_published(name)


def refuse_missing_files(command: str, settings: Sequence[Setting]) -> None:
    """Refuse a checkpoint, a list of nodes and a graph that are no files.

    Args:
        command: ``fit``, ``validate``, ``test`` or ``predict``.
        settings: Settings of its command line and of its files, later ones win.

    Raises:
        CommandError: If there is no such checkpoint, or none where the command needs one.
        GraphFormatError: If there is no such graph or list.
    """
    values = {(each.section, each.name): each.value for each in settings}
    is_written = ("ckpt_path", "") in values
    checkpoint = values.get(("ckpt_path", ""))
    if not is_written or isinstance(checkpoint, str):  # what is written may be an expression
        check_checkpoint_file(command, None if checkpoint == "null" else checkpoint)
    data_class = f"{values.get(('data', 'class_path'))}".rpartition(".")[2]
    if command == "predict" or data_class != "EdgeListDataModule":
        return
    nodes, graph = values.get(("data", "nodes.ids")), values.get(("data", "name"))
    if isinstance(nodes, str) and nodes not in ("null", "from_edges") and nodes[:1] != "[":
        path = user_path(nodes)
        check_node_file(path)
        if path.stat().st_size < _QUICK_BYTES:
            column = values.get(("data", "nodes.column"))
            given_names(path, column if isinstance(column, str) and column != "null" else None)
    if isinstance(graph, str) and graph != "null":
        file = graph_file(graph, built_in_graphs())
        names = ("source", "target", "weight", "time", "separator", "header", "comments")
        given = {name: values.get(("data", f"columns.{name}")) for name in names}
        told: dict[str, Any] = {
            name: str(value) for name, value in given.items() if value not in (None, "null")
        }
        if file is not None and is_edge_list(file.name) and told.keys() >= {"source", "target"}:
            header = told.pop("header", None)
            is_header = None if header is None else header.lower() == "true"
            check_header(file, Columns(**told, header=is_header))
