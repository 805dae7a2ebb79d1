"""Tables of drawn rows in CSV."""

import csv
from collections.abc import Sequence
from pathlib import Path

from lightning_dpg.graph.drawn_rows import DrawnRows


def write_rows(rows: DrawnRows, nodes: Sequence[str], path: Path) -> None:
    """Write a line per node: its name in the graph, and its drawn value of each column.

    Args:
        rows: The rows (released).
        nodes: Names of the nodes in the graph.
        path: File to write.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["node", *rows.domains])
        writer.writerows(zip(nodes, *rows.texts(), strict=True))
