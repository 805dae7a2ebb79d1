"""Graph sets in the text format of TU Dortmund: MUTAG, PROTEINS, IMDB-BINARY, DD, ENZYMES, ...

This reader is faster and stricter than PyTorch Geometric's, which takes 15 times as long and accepts
links of one direction as they are. In a set without features, that reader loses the last nodes if they
have no link.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.datamodules.built_in_sets import BUILT_IN_SETS
from lightning_dpg.datamodules.graph_set import GraphSetDataModule, split_graphs
from lightning_dpg.formats.graph_places import data_root
from lightning_dpg.graph.graph import make_graph
from lightning_dpg.graph.node_names import GraphFormatError, user_path


class TUGraphDataModule(GraphSetDataModule):
    """A set of graphs from a folder of TU text files, or a built-in set.

    Node features are the attributes, if any, followed by the node labels, one column per label in
    use. Nothing is written into the folder.
    """

    def read_graphs(self) -> list[Data]:
        """Return the graphs of the set (private)."""
        if not isinstance(self.source, (str, Path)) or self.source in BUILT_IN_SETS:
            return super().read_graphs()
        return read_tu_folder(_find_folder(str(self.source)), undirected=self.undirected)


def known_sets() -> list[str]:
    """Return the names of the built-in sets and of the folders that are there."""
    root = data_root()
    folders = [] if root is None else sorted(root.glob("tu/*/"))
    return [*BUILT_IN_SETS, *(folder.name for folder in folders)]


def _find_folder(name: str) -> Path:
    """Find the folder with the text files of a set."""
    root, path = data_root(), user_path(name)
    candidates = [] if root is None or Path(name).name != name else [root / "tu" / name]
    for folder in (*candidates, path):
        if folder.is_dir():
            return folder / "raw" if (folder / "raw").is_dir() else folder
    if path.is_file():
        raise GraphFormatError(
            f"{name}: a file, and the method reads a set of graphs\n"
            "expected a folder of TU text files, or the name of a set\n"
            "a single graph is for other methods: BTER, PrivGraph, ChungLu, ..."
        )
    where = "LIGHTNING_DPG_DATA is not set" if root is None else f"{root / 'tu' / name}"
    raise GraphFormatError(
        f"unknown graph set {name!r}\nknown: {', '.join(known_sets())}\n"
        f"looked for: {where}, and the folder {Path(name).absolute()}"
    )


def read_tu_folder(folder: Path, *, undirected: bool = False) -> list[Data]:
    """Read a set of graphs.

    Args:
        folder: Folder with ``NAME_A.txt`` and ``NAME_graph_indicator.txt``, optionally
            ``NAME_graph_labels.txt``, ``NAME_node_labels.txt`` and ``NAME_node_attributes.txt``.
        undirected: Read links of one direction as undirected edges instead of refusing them.

    Returns:
        The graphs, in the order of the files; self loops are dropped and repeated links merged.

    Raises:
        GraphFormatError: If a file is missing or one of its lines does not fit the others.
    """
    links_file = _only_file(folder, "A")
    prefix = links_file.name.removesuffix("_A.txt")
    indicator_file = _only_file(folder, "graph_indicator")
    graph_of = _read_columns(indicator_file, np.int64)[:, 0]
    sizes = _checked_sizes(graph_of, indicator_file)
    links = _read_columns(links_file, np.int64)
    _check_links(links, graph_of, links_file, undirected)
    labels = _read_optional(folder / f"{prefix}_graph_labels.txt", np.int64, len(sizes), "graph")
    features = _read_features(folder, prefix, len(graph_of))

    union = make_graph(torch.from_numpy(links - 1), len(graph_of))
    if labels is not None:
        # Labels such as -1 and 1 become the numbers 0 and 1 of the classes.
        union.y = torch.from_numpy(np.unique(labels[:, 0], return_inverse=True)[1])
    graphs = split_graphs(union, sizes.tolist())
    if features is not None:
        for graph, rows in zip(graphs, torch.split(features, sizes.tolist()), strict=True):
            graph.x = rows
    return graphs


def write_tu_folder(graphs: Any, folder: Path, *, undirected: bool = False) -> None:
    """Write a set of graphs, with labels and with features that all graphs have.

    Args:
        graphs: The set, as for the data module; some of its graphs have a link.
        folder: An empty folder.
        undirected: See :func:`read_tu_folder`.
    """
    data = TUGraphDataModule(graphs, undirected=undirected)
    data.setup("fit")
    links = torch.cat([data.edges, data.edges.flip(1)]) + 1
    np.savetxt(folder / "set_A.txt", links.numpy(), "%d", ", ")
    np.savetxt(folder / "set_graph_indicator.txt", data.graph_of.numpy() + 1, "%d")
    if data.labels is not None:
        _, classes = np.unique(data.labels.numpy(), return_inverse=True)
        np.savetxt(folder / "set_graph_labels.txt", classes, "%d")
    features = [each.get("x") for each in data.graphs]
    widths = {None if x is None or x.ndim != 2 else x.shape[1] for x in features}
    if widths.isdisjoint({None, 0}) and len(widths) == 1:
        x = torch.cat([x for x in features if x is not None]).float()
        np.savetxt(folder / "set_node_attributes.txt", x.numpy(force=True), "%.9g", ", ")


def _only_file(folder: Path, part: str) -> Path:
    files = sorted(folder.glob(f"*_{part}.txt"))
    if len(files) != 1:
        what = f"{len(files)} files" if files else "no file"
        raise GraphFormatError(
            f"{folder}: {what} named NAME_{part}.txt\n"
            "expected one, as in a folder of the TU data sets"
        )
    return files[0]


def _read_columns(path: Path, dtype: DTypeLike) -> NDArray[Any]:
    """Read the numbers of a file, one row per line, shape ``(L, columns)``."""
    if not path.read_bytes().strip():
        raise GraphFormatError(f"{path}: empty\nexpected one line per link, node or graph")
    try:
        return np.loadtxt(path, dtype=dtype, delimiter=",", comments=None, ndmin=2)
    except ValueError:
        raise _bad_number(path, dtype) from None


def _bad_number(path: Path, dtype: DTypeLike) -> GraphFormatError:
    """Find the first line unlike the line before it; loadtxt skips blank lines."""
    number = r"\s*[-+]?\d+\s*" if dtype == np.int64 else r"[^,]*[\d.][^,]*"
    expected = "whole numbers" if dtype == np.int64 else "numbers"
    columns: int | None = None
    for line, text in enumerate(path.read_text(errors="replace").splitlines(), start=1):
        if not text.strip():
            continue
        words = text.split(",")
        columns = columns or len(words)
        if len(words) != columns or not all(re.fullmatch(number, word) for word in words):
            return _bad_line(path, line, f"{columns} {expected}, separated by commas")
    return GraphFormatError(f"{path}: not {expected} of 64 bits")


def _bad_line(path: Path, line: int, expected: str) -> GraphFormatError:
    """Return the error of a line, whose content is private."""
    return GraphFormatError(f"{path}, line {line}: expected {expected}")


def _checked_sizes(graph_of: NDArray[np.int64], path: Path) -> NDArray[np.int64]:
    """Return the number of nodes of each graph; refuse a graph without nodes."""
    steps = np.diff(graph_of, prepend=0)
    wrong = np.flatnonzero((steps < 0) | (steps > 1))
    if graph_of[0] != 1 or len(wrong):
        line = int(wrong[0]) if len(wrong) else 0
        before = int(graph_of[line - 1]) if line else 0
        raise _bad_line(
            path,
            line + 1,
            f"{f'{before} or ' if before else ''}{before + 1}: the graphs are numbered from 1, "
            "one after the other, and none is without nodes",
        )
    return np.bincount(graph_of)[1:]


def _check_links(
    links: NDArray[np.int64], graph_of: NDArray[np.int64], path: Path, undirected: bool
) -> None:
    """Refuse links to no node, between graphs, and, on request, in one direction only."""

    def refuse(wrong: NDArray[np.bool_], expected: str) -> None:
        if wrong.any():
            line = int(np.flatnonzero(wrong)[0])
            raise _bad_line(path, line + 1, expected)

    if links.shape[1] != 2:
        raise _bad_line(path, 1, "two node numbers, separated by a comma")
    num_nodes = len(graph_of)
    outside = (links < 1) | (links > num_nodes)
    refuse(outside[:, 0] | outside[:, 1], f"nodes from 1 to {num_nodes}")
    first, second = graph_of[links - 1].T
    refuse(np.not_equal(first, second), "two nodes of the same graph, see the graph indicator")
    if undirected:
        return
    forward = links[:, 0] * (num_nodes + 1) + links[:, 1]
    backward = links[:, 1] * (num_nodes + 1) + links[:, 0]
    # np.isin would take seconds for a million links.
    ordered = np.sort(forward)
    nearest = np.searchsorted(ordered, backward).clip(max=len(ordered) - 1)
    refuse(
        np.not_equal(ordered[nearest], backward),
        "each link in both directions, on two lines; this one is there once\n"
        "set undirected=True (--undirected) to read such links as undirected edges",
    )


def _read_features(folder: Path, prefix: str, num_nodes: int) -> Tensor | None:
    """Return attributes and one-hot labels of the nodes, shape ``(N, F)``; None without any."""
    parts = []
    path = folder / f"{prefix}_node_attributes.txt"
    if (attributes := _read_optional(path, np.float32, num_nodes, "node")) is not None:
        parts.append(torch.from_numpy(attributes))
    path = folder / f"{prefix}_node_labels.txt"
    if (labels := _read_optional(path, np.int64, num_nodes, "node")) is not None:
        for column in labels.T:
            _, classes = np.unique(column, return_inverse=True)
            parts.append(torch.nn.functional.one_hot(torch.from_numpy(classes)).float())
    return torch.cat(parts, dim=1) if parts else None


def _read_optional(path: Path, dtype: DTypeLike, rows: int, what: str) -> NDArray[Any] | None:
    """Read the numbers of a file with one line per graph or node; None without the file."""
    if not path.is_file():
        return None
    values = _read_columns(path, dtype)
    if len(values) != rows:
        raise GraphFormatError(
            f"{path}: {len(values)} lines\nexpected one for each {what}, and there are {rows}"
        )
    return values
