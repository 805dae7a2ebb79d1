"""Node rows reported by the multi-bit encoder: local differential privacy of each graph."""

import torch
from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.multi_bit import best_reports_per_row, multi_bit, unbiased
from lightning_dpg.privacy.noise import NoiseSource

REPORTS_KEY = "embedding_reports"
"""Key of the release of the multi-bit encoder."""

REPORTS = "reports of embeddings"
"""Name of the same."""

BOUNDS = (0.0, 1.0)
"""Of the entries of a softmax."""


def equal_epsilons(epsilon: float, sizes: Tensor) -> Tensor:
    """Equal epsilons for the reports of all graphs, shape ``(G,)``."""
    return torch.full((len(sizes),), epsilon, dtype=torch.double, device=sizes.device)


def choose_reports_per_row(given: int | None, epsilon: float, num_rows: int, width: int) -> int:
    """Choose the number of reported entries per row (public): the setting, or near the optimum.

    Args:
        given: The setting; None selects the optimum.
        epsilon: Smallest epsilon of the reports of a graph.
        num_rows: Number of rows that share the epsilon.
        width: Entries of a row.
    """
    return best_reports_per_row(epsilon, num_rows, width) if given is None else given


def reports_entry(epsilon: float, num_reports: int) -> LedgerEntry:
    """Ledger entry of all reports.

    Args:
        epsilon: Largest cost for a client.
        num_reports: Number of reports of the largest client.
    """
    return LedgerEntry(
        key=REPORTS_KEY,
        name=REPORTS,
        relation=Relation.LOCAL_GRAPH,
        mechanism="pure",
        sensitivity=num_reports,
        epsilon=epsilon,
        proof="cost_of_reports",
        record="graph of one client",
    )


def release_signs(
    rows: Tensor,
    sizes: Tensor,
    ledger: PrivacyLedger,
    noise: NoiseSource,
    *,
    epsilons: Tensor,
    reports_per_row: int,
) -> Tensor:
    """Report random signs of a few entries of each row (noisy).

    Args:
        rows: Rows of all graphs (private), shape ``(N, h)``, with entries from 0 to 1.
        sizes: Numbers of rows of the graphs (public), shape ``(G,)``.
        ledger: Ledger that pays for the release.
        noise: Secret source of the noise.
        epsilons: Cost for each graph (public), shape ``(G,)``.
        reports_per_row: Entries reported of each row.

    Returns:
        Signs of shape ``(N, h)``, 0 for unreported entries.
    """
    return multi_bit(
        rows,
        sizes,
        ledger,
        noise,
        key=REPORTS_KEY,
        name=REPORTS,
        epsilon=epsilons,
        reports_per_row=reports_per_row,
        bounds=BOUNDS,
    )


def release_reports(
    rows: Tensor,
    sizes: Tensor,
    ledger: PrivacyLedger,
    noise: NoiseSource,
    *,
    epsilons: Tensor,
    reports_per_row: int,
) -> Tensor:
    """Release unbiased estimates of all rows (noisy); arguments as in :func:`release_signs`."""
    signs = release_signs(
        rows, sizes, ledger, noise, epsilons=epsilons, reports_per_row=reports_per_row
    )
    return unbiased(signs, sizes, epsilon=epsilons, reports_per_row=reports_per_row, bounds=BOUNDS)


def report_assumptions(
    records: GraphSetRecords, max_nodes: int | None, *, is_trusted: bool = False
) -> list[str]:
    """Assumptions of a guarantee for whole graphs.

    Args:
        records: The graphs.
        max_nodes: Public bound on their nodes; None if the numbers of nodes are public.
        is_trusted: Whether a trusted server adds up updates of clients.
    """
    assumed = [
        "the number of graphs, their labels and the kinds of node features",
        "the number of nodes of each graph"
        if max_nodes is None
        else f"that no graph has more than {max_nodes} nodes",
    ]
    if is_trusted:
        assumed.append("that a trusted server adds up the clients' updates and keeps none")
    if records.max_occurrences > 1:
        assumed.append("that what is in several graphs is protected in each of them by itself")
    return [*assumed, *records.preparation]
