"""Graphs by name: built in, from the folder of real data, or from a file."""

import difflib
import os
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
from torch_geometric.data import Data

from lightning_dpg.graph.io import GraphFormatError, from_networkx, from_pyg, read_graph

DATA_VARIABLE = "LIGHTNING_DPG_DATA"

BUILT_IN: dict[str, Callable[[], nx.Graph]] = {
    "les_miserables": nx.les_miserables_graph,
    "karate": nx.karate_club_graph,
    "davis": nx.davis_southern_women_graph,
    # Four communities of 50 nodes, about 7.4 neighbors inside and 1.5 outside of the own one.
    "planted_partition": lambda: nx.planted_partition_graph(4, 50, 0.15, 0.01, seed=0),
}


def load_graph(source: str | Data | nx.Graph, *, undirected: bool = False) -> Data:
    """Load a graph.

    Args:
        source: Name of a built-in graph, name of a data set in the folder that the environment
            variable ``LIGHTNING_DPG_DATA`` names (``graphs/NAME.edges.gz`` or ``npz/NAME.npz``),
            path of a file, or a graph object of PyTorch Geometric or networkx.
        undirected: Drop the directions of a directed graph instead of refusing it.
    """
    if isinstance(source, Data):
        return from_pyg(source, undirected=undirected)
    if isinstance(source, nx.Graph):
        return from_networkx(source, undirected=undirected)
    if source in BUILT_IN:
        return from_networkx(BUILT_IN[source](), origin=source)
    root = data_root()
    path = Path(source).expanduser()
    is_name = path.name == source
    if root is not None and is_name:
        # The ids of these files count from 0 to n - 1, also those that have no edge.
        if (known := root / "graphs" / f"{source}.edges.gz").is_file():
            return read_graph(known, undirected=undirected, keep_gaps=True)
        if (known := root / "npz" / f"{source}.npz").is_file():
            return read_graph(known, undirected=undirected)
    if path.exists() or path.suffix or not is_name:
        return read_graph(path, undirected=undirected)
    raise GraphFormatError(_unknown(source, root))


def data_root() -> Path | None:
    """Folder of the real data, if the environment names one."""
    value = os.environ.get(DATA_VARIABLE)
    return Path(value).expanduser() if value else None


def known_graphs() -> list[str]:
    """Names of the built-in graphs and of the data sets that are there."""
    root = data_root()
    names = [*BUILT_IN]
    if root is not None:
        names += sorted(p.name.removesuffix(".edges.gz") for p in root.glob("graphs/*.edges.gz"))
        names += sorted(
            path.stem
            for path in root.glob("npz/*.npz")
            if path.stem not in names and _holds_matrix(path)
        )
    return names


def _holds_matrix(path: Path) -> bool:
    """Whether an archive is a graph; others hold splits."""
    with np.load(path, allow_pickle=False) as archive:
        return not {"indptr", "adj_indptr"}.isdisjoint(archive.files)


def _unknown(name: str, root: Path | None) -> str:
    by_folded = {known.casefold(): known for known in known_graphs()}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=3)
    where = (
        f"{DATA_VARIABLE} is not set"
        if root is None
        else f"{root / 'graphs' / (name + '.edges.gz')}, {root / 'npz' / (name + '.npz')}"
    )
    lines = [
        f"unknown graph {name!r}",
        f"built in: {', '.join(BUILT_IN)}",
        f"looked for: {where}, and the file {name} in {Path.cwd()}",
    ]
    if near:
        lines.insert(1, f"did you mean {' or '.join(by_folded[match] for match in near)}?")
    return "\n".join(lines)
