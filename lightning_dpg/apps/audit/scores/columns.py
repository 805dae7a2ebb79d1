"""Scores of noisy tables of private columns, amounts and times; the attacker knows all other edges."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from torch import Tensor

from lightning_dpg.apps.audit.canaries import transfers_of_canaries
from lightning_dpg.apps.audit.scores.counts import counted_changes, table_scores
from lightning_dpg.apps.audit.scores.observation import Observation
from lightning_dpg.datamodules.transfers import joined, of_edges
from lightning_dpg.graph.edge_statistics import exact_mixing
from lightning_dpg.graph.transfer_counts import EndClasses, TransferStatistics, first_days_of
from lightning_dpg.interfaces import Transfers
from lightning_dpg.methods.single_graph.attributed import Attributed
from lightning_dpg.methods.single_graph.attributed_transfers import strength_nodes
from lightning_dpg.methods.single_graph.protected_unit import counts_of


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

    known = observation.known_edges.numpy()
    before, changes = counted_changes(cells, known, observation.pairs.cpu().numpy())
    surplus = observation.noisy.cpu().numpy() - before - changes.sum(axis=0) / 2
    moved = changes.tocoo()
    # Without the canary's own half of its change, the cell misses it by half, or has it by half.
    half, rest = moved.data / 2, surplus[moved.col]
    gains = observation.rate * (np.abs(rest + half) - np.abs(rest - half))
    return torch.from_numpy(np.bincount(moved.row, gains, minlength=len(observation.pairs)))


Integers = NDArray[np.int64]


def transfer_score(observation: Observation) -> Tensor:
    """Score each pair by a released count of transfers; a canary has those of a worst case.

    Args:
        observation: The noisy value; its method is the whole ``Attributed``.

    Returns:
        Scores of shape ``(P,)``, higher for an edge with its transfers.
    """
    method, entry, count = observation.method, observation.entry, COUNTS[observation.entry.key]
    facts, size = method.facts, observation.known_graph.num_nodes
    known = observation.known_edges
    others = of_edges(observation.data.train_transfers, known, size, is_directed=False)

    def counts(transfers: Transfers) -> Integers:
        found = count(method, counts_of(transfers, facts, method.space)).ravel()
        # Curves of days may have been released by weeks.
        return np.add.reduceat(found, first_days_of(len(found), observation.noisy.numel()))

    before, changes = counts(others), []
    nothing = counts(of_edges(others, known[:0], size, is_directed=False))
    for pair in observation.pairs.cpu():
        added = transfers_of_canaries(pair[None], others.bounds, facts.changes)
        # A strength is one cell for all transfers of a node; other counts add up over the pairs.
        if entry.key == _STRENGTHS:
            change = counts(joined(others, added)) - before
        else:
            change = counts(added) - nothing
        changes.append(csr_array(change[None]))
    surplus = observation.noisy.cpu().numpy().ravel() - before
    rates = np.full(len(before), observation.rate)
    return torch.from_numpy(table_scores(surplus, csr_array(vstack(changes)), rates))


def _classes(of_end: Tensor) -> EndClasses:
    """Return the released classes of the nodes of an undirected graph, shape ``(N,)``."""
    size = int(of_end.max()) + 1
    return EndClasses(of_end.cpu().numpy(), (size, size))


_STRENGTHS = "strengths"
COUNTS: dict[str, Callable[[Attributed, TransferStatistics], Integers]] = {
    "pair_numbers": lambda _, source: source.numbers(),
    "amounts": lambda m, source: source.amounts(_classes(m.transfers.amounts.count_classes)),
    "amount_sums": lambda m, source: source.sums(_classes(m.transfers.amounts.sum_classes)),
    _STRENGTHS: lambda m, source: source.strengths(strength_nodes(m.space)),
    "days": lambda _, source: source.days(),
    "hours": lambda _, source: source.hours(),
    "gaps": lambda _, source: source.gaps(),
    "new_pairs": lambda _, source: source.new_pairs(),
}
"""Exact count of each read of transfers, by its key in the ledger."""
