"""Tables of drawn rows in CSV."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lightning_dpg.errors import CommandError
from lightning_dpg.graph.drawn_tables import DrawnRows


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


def read_rows(path: Path, nodes: Sequence[str], domains: Mapping[str, Sequence[str]]) -> DrawnRows:
    """Read a table of :func:`write_rows`.

    Args:
        path: Its file.
        nodes: Names of the nodes in the graph, in the order of the rows that are returned.
        domains: Names of all values of each column.

    Raises:
        CommandError: If the file is no such table of these nodes and domains.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = {line["node"]: line for line in csv.DictReader(file)}
        places = [
            [["", *values].index(lines[node][name]) - 1 for node in nodes]
            for name, values in domains.items()
        ]
    except (KeyError, ValueError, UnicodeDecodeError, OSError) as error:
        raise CommandError(
            f"{path}: no table of drawn rows of the nodes of its graph ({str(error)[:60]})\n"
            "draw it again: python -m lightning_dpg generate RUN"
        ) from error
    values = {name: list(names) for name, names in domains.items()}
    return DrawnRows(values, np.array(places, dtype=np.int64).T)
