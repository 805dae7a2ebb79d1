"""Inputs of the encoders: private degrees and features, or noisy sums over neighbors."""

import torch
from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords


def num_features(records: GraphSetRecords) -> int:
    """Width of the node features (public); 0 without any."""
    x = records.graphs[0].x
    return 0 if x is None else int(x.shape[1])


def node_inputs(records: GraphSetRecords, edges: Tensor) -> Tensor:
    """Degree and features, if any, of each node (private), shape ``(N, d)``.

    Args:
        records: The graphs.
        edges: Edges on the nodes of the graphs, shape ``(M, 2)``.
    """
    degrees = torch.bincount(edges.flatten(), minlength=len(records.graph_of))
    columns = [degrees.float().log1p()[:, None]]
    if num_features(records):
        columns.append(public_features(records))
    return torch.cat(columns, 1)


def public_features(records: GraphSetRecords) -> Tensor:
    """Features of all nodes, shape ``(N, d)``; a constant 1 without features."""
    if not num_features(records):
        return torch.ones(len(records.graph_of), 1)
    return torch.cat([graph.x for graph in records.graphs])


def scaled(rows: Tensor, width: int, noise_std: float) -> Tensor:
    """Scale the columns of rows to entries of about 1, and shrink sums dominated by noise.

    A column of mean square v is shrunk by the share of signal in v, as in Wiener's filter. The
    scale is a function of released rows.

    Args:
        rows: Features and noisy sums, shape ``(N, (1 + hops) d)``.
        width: Number d of noise-free feature columns.
        noise_std: Standard deviation of the noise of the sums.
    """
    power = rows.square().mean(0).clamp(min=1e-12)
    signal = (1 - noise_std**2 / power).clamp(min=0)
    signal[:width] = 1
    return rows / power.sqrt() * signal
