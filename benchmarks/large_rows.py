"""Seconds and peak memory of private columns of nodes: small graphs, and large ones in tables.

``python -m benchmarks large_rows --graphs CORA-ML twitch-engb PubMed --edges 1000000 --folder
/tmp/large`` measures the graphs of ``attributed``, and the drawn ones of ``large_classes``, whose
class is the private column. Linux only: peaks come from ``/proc``.
"""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from benchmarks.large_classes import edges_path, measure_each, people_path
from benchmarks.large_graphs import EPSILON, Stages, import_engine


def main(args: list[str]) -> None:
    """Print a table, and write the numbers into the folder as CSV."""
    measure_each("large_rows", ["CORA-ML", "twitch-engb", "PubMed"], _named, _drawn, args)


def _named(name: str, folder: Path) -> dict[str, dict[str, float]]:
    """Release a graph in memory."""
    from benchmarks.attributed import load

    stages = Stages()
    with stages.stage("read"):
        data = load(name).data
    return _release(data, stages)


def _drawn(graph: str, folder: Path) -> dict[str, dict[str, float]]:
    """Release a graph from its table of edges and that of its nodes."""
    from lightning_dpg.datamodules import EdgeTableDataModule, Nodes

    import_engine()
    stages, edges = Stages(), int(graph)
    with stages.stage("read"):
        nodes = Nodes(
            attributes=str(people_path(folder, edges)),
            private_columns=["y"],
            domains={"y": ["0", "1", "2", "3", "4"]},
            policy={f"a{k}": "drop" for k in range(64)},
        )
        data = EdgeTableDataModule(str(edges_path(folder, edges)), nodes=nodes, undirected=True)
        data.setup("fit")
    return _release(data, stages)


def _release(data: Any, stages: Stages) -> dict[str, dict[str, float]]:
    """Fit the method, and draw a graph with its rows."""
    import torch

    import lightning_dpg as dpg
    from lightning_dpg.budget_book import NO_BOOK

    torch.set_num_threads(1)
    with stages.stage("release"), redirect_stdout(sys.stderr):
        release = dpg.fit(data, "attributed", epsilon=EPSILON, row_epsilon=EPSILON, book=NO_BOOK)
    with stages.stage("draw"):
        release.sample(seed=0)
    return stages.found
