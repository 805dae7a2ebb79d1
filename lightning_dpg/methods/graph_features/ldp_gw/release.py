"""What ``LDPGromovWasserstein`` sends of node embeddings, and what is assumed where it does."""

import math
from typing import Any

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.privacy.aggregation_perturbation import noisy_aggregation
from lightning_dpg.privacy.calibration import remaining_noise_multiplier
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.multi_bit import best_reports_per_row, multi_bit, unbiased
from lightning_dpg.privacy.noise import NoiseSource

REPORTS = "reports of embeddings"
"""Name of the release of the multi-bit encoder."""

_CHOICES = {
    "encoder": ("gcn", "gin"),
    "release": ("ldp", "curated_edge", "exact"),
    "weights": ("random", "trained", "private"),
    "mode": ("corrected", "paper"),
    "distance": ("euclidean", "cosine", "correlation"),
}

BOUNDS = (0.0, 1.0)
"""Of the entries of a softmax."""


def check_settings(h: Any) -> None:
    """Refuse settings that are out of range or contradict each other.

    Args:
        h: The hyperparameters.

    Raises:
        ValueError: If one is out of range.
        MisconfigurationException: If two contradict each other.
    """
    for name, choices in _CHOICES.items():
        if h[name] not in choices:
            raise ValueError(f"{name} must be one of {', '.join(choices)}, got {h[name]!r}")
    for name in ("width", "hops", "rounds", "num_clients", "local_epochs"):
        if h[name] < 1:
            raise ValueError(f"{name} must be positive, got {h[name]}")
    if h["flower_processes"] < 0:
        raise ValueError(f"flower_processes must not be negative, got {h['flower_processes']}")
    for name in ("weights_share", "teaching_fraction"):
        if not 0 < h[name] < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {h[name]}")
    if h["release"] == "curated_edge" and h["weights"] == "private":
        raise MisconfigurationException(
            "the rounds of release: curated_edge read noisy sums and cost nothing: set weights to "
            "trained"
        )
    if h["flower_processes"] and h["weights"] == "random":
        raise MisconfigurationException(
            "flower_processes train the encoder, which weights: random does not: set weights to "
            "trained or private"
        )
    if h["mode"] == "paper" and (h["release"] == "curated_edge" or h["max_nodes"] is not None):
        raise MisconfigurationException(
            "mode: paper has neither release: curated_edge nor max_nodes: both are ours"
        )


def assumptions(h: Any, data: Any) -> list[str]:
    """What the guarantee takes for public.

    Args:
        h: The hyperparameters.
        data: A ``GraphSetDataModule``.
    """
    if h["release"] == "curated_edge":
        return list(data.assumptions)
    bound = h["max_nodes"]
    told = [
        "The number of graphs, their labels and the kinds of node features are public.",
        "The number of nodes of each graph is public."
        if bound is None
        else f"No graph has more than {bound} nodes.",
    ]
    if h["weights"] == "private":
        told.append("A server that is trusted adds up the clients' updates and keeps none.")
    if data.max_occurrences > 1:
        told.append("What is in several graphs is protected in each of them by itself.")
    return [*told, *data.preparation]


def node_inputs(data: Any, edges: Tensor) -> Tensor:
    """What the encoder reads of each node: its degree and its features, if any (private).

    Args:
        data: A ``GraphSetDataModule``.
        edges: Its edges, or others on its nodes, shape ``(M, 2)``.

    Returns:
        Shape ``(N, d)``.
    """
    degrees = torch.bincount(edges.flatten(), minlength=len(data.graph_of))
    columns = [degrees.float().log1p()[:, None]]
    if data.graphs[0].x is not None:
        columns.append(torch.cat([graph.x for graph in data.graphs]))
    return torch.cat(columns, 1)


def public_features(data: Any) -> Tensor:
    """Features of all nodes, shape ``(N, d)``; without any, nodes have one that is 1."""
    if data.graphs[0].x is None:
        return torch.ones(len(data.graph_of), 1)
    return torch.cat([graph.x for graph in data.graphs])


def noisy_sums(data: Any, hops: int, ledger: PrivacyLedger, noise: NoiseSource) -> Tensor:
    """Public features and their noisy sums over neighbors, which spend all that the ledger has left.

    Args:
        data: A ``GraphSetDataModule``.
        hops: Number of hops.
        ledger: Pays for them.
        noise: Secret source of the noise.

    Returns:
        Rows of all nodes, shape ``(N, (1 + hops) d)``.
    """
    x = public_features(data)
    multiplier = remaining_noise_multiplier(ledger) * math.sqrt(hops)
    sums = noisy_aggregation(data.edges, x, hops, ledger, noise, noise_multiplier=multiplier)
    return torch.cat([x, sums], 1)


def scaled(rows: Tensor, width: int, noise_std: float) -> Tensor:
    """Rows whose columns have entries of about 1, those of sums less where they are mostly noise.

    A column of mean square v is shrunk by the share of v that the noise leaves to the signal, as
    Wiener's filter does. All of it is a function of released rows.

    Args:
        rows: Features and noisy sums, shape ``(N, (1 + hops) d)``.
        width: Number d of the features, which have no noise.
        noise_std: Standard deviation of the noise of the sums.
    """
    power = rows.square().mean(0).clamp(min=1e-12)
    signal = (1 - noise_std**2 / power).clamp(min=0)
    signal[:width] = 1
    return rows / power.sqrt() * signal


def report_epsilons(h: Any, sizes: Tensor, epsilon: float) -> Tensor:
    """Epsilon of the reports of each graph.

    Args:
        h: The hyperparameters.
        sizes: Numbers of rows that the graphs send (public), shape ``(G,)``.
        epsilon: The whole budget.

    Returns:
        Shape ``(G,)``.

    Raises:
        MisconfigurationException: If it would be infinite.
    """
    if h["report_epsilon"] is not None:
        epsilon = h["report_epsilon"]
    elif h["mode"] == "paper":
        return 1 / sizes.double()
    elif h["weights"] == "private":
        epsilon *= 1 - h["weights_share"]
    if math.isinf(epsilon):
        raise MisconfigurationException(
            "release: ldp has no law for an infinite epsilon\n"
            "give report_epsilon, or say release: exact for rows without protection"
        )
    return torch.full((len(sizes),), epsilon, dtype=torch.double, device=sizes.device)


def reported(
    h: Any, rows: Tensor, sizes: Tensor, epsilon: float, ledger: PrivacyLedger, noise: NoiseSource
) -> Tensor:
    """Signs of a few entries of each row; their bias is corrected, but not in ``mode: paper``.

    Args:
        h: The hyperparameters.
        rows: Rows of all graphs (private), shape ``(N, h)``.
        sizes: Numbers of rows of the graphs (public), shape ``(G,)``.
        epsilon: The whole budget.
        ledger: Pays for them.
        noise: Secret source of the noise.

    Returns:
        Shape ``(N, h)``.
    """
    epsilons = report_epsilons(h, sizes, epsilon)
    count = reports_per_row(h, sizes, epsilons, rows.shape[1])
    signs = multi_bit(
        rows,
        sizes,
        ledger,
        noise,
        key="embedding_reports",
        name=REPORTS,
        epsilon=epsilons,
        reports_per_row=count,
        bounds=BOUNDS,
    )
    if h["mode"] == "paper":
        return signs.double()
    return unbiased(signs, sizes, epsilon=epsilons, reports_per_row=count, bounds=BOUNDS)


def reports_per_row(h: Any, sizes: Tensor, epsilons: Tensor, width: int) -> int:
    """Entries told of each row (public): as set, or about the best for the largest graph."""
    if h["reports_per_row"] is not None:
        count: int = h["reports_per_row"]
        return count
    # The paper takes the epsilon of a graph for that of a row.
    rows = 1 if h["mode"] == "paper" else int(sizes.max())
    return best_reports_per_row(float(epsilons.min()), rows, width)
