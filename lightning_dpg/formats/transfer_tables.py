"""Tables of drawn transfers in CSV and Parquet."""

import csv
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow
import torch
from pyarrow import parquet

from lightning_dpg.errors import CommandError
from lightning_dpg.formats.whole_files import whole_file
from lightning_dpg.graph.drawn_tables import DrawnTransfers
from lightning_dpg.graph.kind import CENTS


def write_transfers(transfers: DrawnTransfers, nodes: Sequence[str], path: Path) -> None:
    """Write columns ``source``, ``target``, and ``amount`` and ``time`` as far as there are any.

    Amounts have two decimals, and times are those of ISO 8601 without a zone.

    Args:
        transfers: The transfers.
        nodes: Names of the nodes.
        path: File to write, ``.csv`` or ``.parquet``.

    Raises:
        OSError: If the disk is full; the file then is not there, or is the one from before.
    """
    names = np.array(nodes, dtype=object)
    source, target = names[transfers.pairs.numpy()].T.tolist()
    columns = {"source": source, "target": target, **transfers.columns()}
    with whole_file(path) as scratch:
        if path.suffix == ".parquet":
            typed = {"amount": pyarrow.float64(), "time": pyarrow.timestamp("s")}
            arrays = {
                name: pyarrow.array(cells, type=typed.get(name, pyarrow.string()))
                for name, cells in columns.items()
            }
            parquet.write_table(pyarrow.table(arrays), scratch)
            return
        texts = [[_text(cell) for cell in cells] for cells in columns.values()]
        with scratch.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*texts, strict=True))


def read_transfers(path: Path, nodes: Sequence[str], first_day: datetime | None) -> DrawnTransfers:
    """Read a table of :func:`write_transfers`.

    Args:
        path: Its file.
        nodes: Names of the nodes in the graph.
        first_day: First day of the window of times; None without times.

    Raises:
        CommandError: If the file is no such table of these nodes.
    """
    try:
        rows = _rows(path)
        number = {name: node for node, name in enumerate(nodes)}
        pairs = [[number[row["source"]], number[row["target"]]] for row in rows]
        has_amounts = bool(rows) and "amount" in rows[0]
        amounts = [round(float(row["amount"]) * CENTS) for row in rows] if has_amounts else None
        times = None
        if first_day is not None:
            stamps = [datetime.fromisoformat(row["time"]) for row in rows]
            times = torch.tensor([int((at - first_day).total_seconds()) for at in stamps]).long()
    except (KeyError, ValueError, TypeError, OSError) as error:
        raise CommandError(
            f"{path}: no table of drawn transfers of the nodes of its graph ({str(error)[:60]})\n"
            "draw it again: python -m lightning_dpg generate RUN"
        ) from error
    ends = torch.tensor(pairs, dtype=torch.long).view(-1, 2)
    cents = None if amounts is None else torch.tensor(amounts)
    return DrawnTransfers(ends, cents, times, first_day)


def _rows(path: Path) -> list[dict[str, str]]:
    """Return the cells of each row as texts, by the names of the columns."""
    if path.suffix == ".parquet":
        return [
            {name: _text(cell) for name, cell in row.items()}
            for row in parquet.read_table(path).to_pylist()
        ]
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _text(cell: object) -> str:
    if isinstance(cell, datetime):
        return cell.isoformat()
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)
