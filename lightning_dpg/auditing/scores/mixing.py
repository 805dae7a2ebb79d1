"""Scores of noisy weights of edges by the values of private columns, which the attacker knows."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.auditing.scores.counts import weight
from lightning_dpg.auditing.scores.observation import Observation
from lightning_dpg.auditing.scores.tables import counted_changes
from lightning_dpg.graph.edge_statistics import exact_mixing
from lightning_dpg.graph.graph import undirected_edges


def mixing_score(observation: Observation) -> Tensor:
    """Score each pair by the released mixing of private columns.

    A canary adds its own weight, and takes weight from the other edges of its nodes. It is scored by
    the likelihood ratio of discrete Laplace noise in each cell that it changes, where each other canary
    counts by half of its change: with as many sizes of changes as canaries, an average over all their
    coins would be too long.

    Args:
        observation: The noisy value; its entry names D and the scale.

    Returns:
        Scores of shape ``(P,)``.
    """
    entry, columns = observation.entry, observation.data.private_columns
    rows, sizes = columns.values.numpy(), [len(values) for values in columns.domains.values()]

    def cells(edges: NDArray[np.int64]) -> NDArray[np.int64]:
        degrees = np.bincount(edges.ravel(), minlength=len(rows))
        return exact_mixing(edges, degrees, rows, sizes, int(entry.public["max_weight"]))

    known = undirected_edges(observation.known_graph).cpu().numpy()
    before, changes = counted_changes(cells, known, observation.pairs.cpu().numpy())
    surplus = observation.noisy.cpu().numpy() - before - changes.sum(axis=0) / 2
    rate = weight(entry.event.pure_epsilon) / entry.sensitivity
    moved = changes.tocoo()
    # Without the canary's own half of its change, the cell misses it by half, or has it by half.
    half, rest = moved.data / 2, surplus[moved.col]
    gains = rate * (np.abs(rest + half) - np.abs(rest - half))
    return torch.from_numpy(np.bincount(moved.row, gains, minlength=len(observation.pairs)))
