"""Graphs with transfers on their edges, and a data module that serves both."""

from datetime import datetime

import torch

from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.interfaces import TransferBounds, Transfers

WINDOW = datetime(2022, 1, 3), datetime(2022, 1, 30)  # four weeks from a Monday
LENGTH = 28 * 86_400
BOUNDS = TransferBounds(1000.0, WINDOW)


def transfers_of(edges, bounds=BOUNDS, number=None):
    """One to four transfers of each edge, which its own nodes decide.

    Args:
        edges: Edges of shape ``(M, 2)``.
        bounds: Largest amount and window, without which there are no amounts or no times.
        number: Number of transfers of an edge by its nodes.
    """
    rows = []
    for u, v in edges.tolist():
        for k in range(1 + (u + v) % 4 if number is None else number(u, v)):
            secret = (u * 7919 + v * 104_729 + k * 1_299_709) % 2**31
            amount, time = secret * 31 % 120_000, secret * 17 % LENGTH
            rows.append(((u, v) if secret % 3 else (v, u), min(amount, 100_000), time))
    pairs, amounts, times = zip(*rows, strict=True) if rows else ((), (), ())
    return Transfers(
        torch.tensor(pairs, dtype=torch.long).view(-1, 2),
        None if bounds.weight_max is None else torch.tensor(amounts, dtype=torch.long),
        None if bounds.window is None else torch.tensor(times, dtype=torch.long),
        bounds,
    )


class TransferDataModule(EdgeListDataModule):
    """One graph with the transfers of :func:`transfers_of` on its edges."""

    def __init__(self, graph, bounds=BOUNDS, number=None, **settings):
        super().__init__(graph, **settings)
        self.bounds, self.number = bounds, number

    def _add_transfers(self, reading):
        edges = space_of(reading.graph).edges(reading.graph)
        self.transfers = transfers_of(edges, self.bounds, self.number)
