"""Files of synthetic graphs, in formats that suit their size."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.formats.io import write_blocks, write_graph
from lightning_dpg.formats.row_tables import write_rows
from lightning_dpg.formats.transfer_tables import write_transfers
from lightning_dpg.graph.drawn_tables import rows_of, transfers_of
from lightning_dpg.graph.expected_degrees import MANY_EDGES
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.interfaces import PublishesGraphs
from lightning_dpg.outcome import note

Format = Literal["edges", "graphml", "npz", "parquet"]
FORMATS: tuple[Format, ...] = ("edges", "graphml", "npz")
"""Formats of graphs below :data:`MANY_EDGES`, which need no further package."""


@runtime_checkable
class DrawsInBlocks(Protocol):
    """A method that draws a large synthetic graph without holding it in memory.

    Attributes:
        num_edges: Released number of edges.
        node_names: Names of the nodes of one graph (public).
    """

    num_edges: Tensor
    node_names: list[str] | None

    def edge_blocks(self, generator: torch.Generator) -> Iterator[Tensor]:
        """Draw the edges of the graph of a generator, blocks of shape ``(P, 2)``."""


def write_graphs(
    method: PublishesGraphs,
    seeds: Iterable[int],
    folder: Path,
    formats: Sequence[Format] | None = None,
) -> list[Path]:
    """Write the synthetic graph of each seed in each format; return the file names.

    Args:
        method: The method, around its released tensors.
        seeds: Public seeds.
        folder: Folder of the files.
        formats: Suffixes of the files; None chooses them by the size of each graph.
    """
    was_training = method.training
    method.eval()
    paths, is_noted = [], False
    with torch.no_grad():
        for seed in seeds:
            generator = torch.Generator().manual_seed(seed)
            if isinstance(method, DrawsInBlocks) and _needs_blocks_only(method, formats):
                blocks = _begun(method.edge_blocks(generator))
                folder.mkdir(parents=True, exist_ok=True)  # not before there is a graph
                paths.append(folder / f"synthetic-{seed}.parquet")
                write_blocks(blocks, method.node_names or [], paths[-1])
                is_large = formats is None
            else:
                graph = method.sample(generator)
                folder.mkdir(parents=True, exist_ok=True)
                paths += write_graph_files(graph, folder, seed, formats)
                is_large = formats is None and num_edges(graph) >= MANY_EDGES
            if is_large and not is_noted:
                note(_large_formats_line())
                is_noted = True
    method.train(was_training)
    return paths


def write_graph_files(
    graph: Data, folder: Path, seed: int, formats: Sequence[Format] | None = None
) -> list[Path]:
    """Write a graph in each format, by default in those of its size; return the file names.

    Drawn rows of its nodes are a table beside it, and so are drawn transfers: in Parquet beside a
    graph in Parquet, and in CSV beside all others.
    """
    chosen = formats_of_size(num_edges(graph)) if formats is None else formats
    paths = [folder / f"synthetic-{seed}.{suffix}" for suffix in chosen]
    for path in paths:
        write_graph(graph, path)
    rows = rows_of(graph)
    if rows is not None:
        paths.append(table_beside(folder / f"synthetic-{seed}"))
        write_rows(rows, graph.node_names, paths[-1])
    transfers = transfers_of(graph)
    if transfers is not None:
        suffixes = {"parquet" if suffix == "parquet" else "csv" for suffix in chosen}
        for suffix in sorted(suffixes):
            paths.append(transfers_beside(folder / f"synthetic-{seed}.{suffix}"))
            write_transfers(transfers, graph.node_names, paths[-1])
    return paths


def table_beside(path: Path) -> Path:
    """Return the file of the drawn rows of the nodes, beside a file of a graph."""
    return path.with_name(f"{path.stem.replace('synthetic', 'people')}.csv")


def transfers_beside(path: Path) -> Path:
    """Return the file of the drawn transfers beside a file of a graph."""
    suffix = ".parquet" if path.suffix == ".parquet" else ".csv"
    return path.with_name(path.stem.replace("synthetic", "transfers") + suffix)


def formats_of_size(count: int) -> tuple[Format, ...]:
    """Return the default formats of a graph with a number of edges."""
    return FORMATS if count < MANY_EDGES else ("parquet",)


def num_edges(graph: Data) -> int:
    """Return the number of edges of a graph of any kind."""
    directed = space_of(graph).kind == "directed"
    return int(graph.edge_index.shape[1]) // (1 if directed else 2)


def _needs_blocks_only(method: DrawsInBlocks, formats: Sequence[Format] | None) -> bool:
    """Return whether Parquet is the only format: then the graph is drawn in blocks."""
    count = int(method.num_edges)
    chosen = formats_of_size(count) if formats is None else tuple(formats)
    return count >= MANY_EDGES and chosen == ("parquet",)


def _begun(blocks: Iterator[Tensor]) -> Iterator[Tensor]:
    """Draw the first block now: a method that draws none fails before a file is open."""
    return chain([next(blocks)], blocks)


def _large_formats_line() -> str:
    """Say in a line why there are no text formats."""
    return (
        f"graphs of {MANY_EDGES:,} edges or more: synthetic-*.parquet, and no text files "
        "(the setting formats of ReleaseWriter asks for others)"
    )
