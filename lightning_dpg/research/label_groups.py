"""Law of labels, links and drawn edges of block samplers, at the level of edges and of nodes."""

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.graph.block_rates import expected_links, fewer_degrees, true_links
from lightning_dpg.graph.edge_statistics import EdgeStatistics
from lightning_dpg.graph.label_blocks import GroupedLabels
from lightning_dpg.graph.linked_classes import draw_links
from lightning_dpg.graph.statistics_source import GraphStatisticsSource
from lightning_dpg.graph.stubs import count_links, stub_mixing
from lightning_dpg.methods.constraints import Constraints, at_least, either
from lightning_dpg.methods.planning import Reads, by_key
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.guard import flip_rate, guard_epsilon, guarded
from lightning_dpg.privacy.label_sampling import sample_labels
from lightning_dpg.privacy.ledger import PrivacyLedger
from lightning_dpg.privacy.noise import NoiseSource

GUARD = "edge_reports"
"""Key of a guard that a run pays for."""

# Nodes count in groups by this power of their degrees. Tuned on Citeseer and synthetic graphs.
_POWER = 0.7
# e to a larger rate is no number of use; a smaller rate costs less than is booked.
_LARGEST_RATE = 30.0


def label_law(
    edges: NDArray[np.int64], degrees: Tensor, num_labels: int, num_edges: int, rate: float
) -> GroupedLabels:
    """Law of the labels of all nodes, which count in groups by a power of their released degrees."""
    weights = degrees.double().numpy() ** _POWER
    return GroupedLabels(edges, weights, num_labels, num_edges, min(rate, _LARGEST_RATE))


def guard_of(setting: float | None, num_nodes: int | None) -> float:
    """Epsilon of the guard: the setting, or that of the number of nodes.

    Raises:
        MisconfigurationException: If neither is known.
    """
    if setting is not None:
        return setting
    if num_nodes is None:
        raise MisconfigurationException(
            "num_nodes is needed: the number of (public) nodes of the graph"
        )
    return guard_epsilon(num_nodes)


def is_paid_by_guard(guard: float, epsilon: float) -> bool:
    """Return whether a run pays for the guard alone, which costs no more than the budget.

    Args:
        guard: Epsilon of the guard, for the record of the method.
        epsilon: Epsilon of the budget.
    """
    return guard <= epsilon < math.inf


class LabelSampler(OneShotSynthesizer):
    """Graphs from one draw of the labels of all nodes, behind a guard.

    A guard is either what a run pays for, or stands behind what it pays for. In the first case it is
    booked before it is drawn, as one read by randomized response, and what is read behind it costs
    nothing more: the ledger gets none of these reads. Their epsilons hold only if the chain is
    stationary. Without this condition, neither a run that is stopped between them nor a sum over
    runs may count them one by one.

    A subclass plans the guard and the reads behind it under its relation.
    """

    constraints: ClassVar[Constraints] = {
        "num_communities": either(None, at_least(1)),
        "sweeps": at_least(1),
    }

    def __init__(self) -> None:
        super().__init__()
        self.degrees: Tensor
        self.communities: Tensor
        self.links: Tensor
        self.register_buffer("degrees", torch.empty(0, dtype=torch.long))
        self.register_buffer("communities", torch.empty(0, dtype=torch.long))
        self.register_buffer("links", torch.empty(0, 0, dtype=torch.long))

    @property
    def guard(self) -> float:
        """Epsilon of the guard, for one edge."""
        return guard_of(self.hparams["guard_epsilon"], self.hparams["num_nodes"])

    @abstractmethod
    def guard_entry(self) -> LedgerEntry:
        """Cost of the guard for the record of the method."""

    @abstractmethod
    def reads_behind(self, budget: Budget) -> list[LedgerEntry]:
        """Plan the reads of the graph behind the guard."""

    @abstractmethod
    def release_degrees(
        self, source: GraphStatisticsSource, reads: Reads
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Release the number of edges and the degrees of the graph behind the guard.

        Returns:
            The number of edges, the degrees, all 0 if the method releases none, and the degrees that
            the law of the labels takes, each of the latter of shape ``(N,)``.
        """

    @abstractmethod
    def num_labels(self, budget: Budget) -> int:
        """Number of groups, by the budget of the run, public and released values."""

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the reads behind the guard, or the guard alone; the number of steps has no effect."""
        guard = self.guard_entry()
        if is_paid_by_guard(guard.event.pure_epsilon, budget.epsilon):
            return [guard]
        return self.reads_behind(budget)

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release counts, labels, and the edges between groups of a graph behind the guard."""
        budget, space, ledger = self.budget, self.space, self.ledger
        guard = math.inf if math.isinf(budget.epsilon) else self.guard

        def flipped(present: Tensor, noise: NoiseSource) -> Tensor:
            return guarded(present, space.num_pairs, noise, guard)

        numbers = space.numbers(source.edges)
        if GUARD in reads:
            numbers = self.pay(reads[GUARD], numbers, flipped)
            self.ledger = PrivacyLedger(self.relation)
            reads = by_key(self.reads_behind(budget))
        else:
            numbers = flipped(numbers, self.noise)
        try:
            behind = EdgeStatistics(space.pairs(numbers), space)
            self._release_behind(behind, reads, budget, flip_rate(guard))
        finally:
            self.ledger = ledger

    def _release_behind(
        self, source: EdgeStatistics, reads: Reads, budget: Budget, false: float
    ) -> None:
        """Release all from a graph behind a guard that flips pairs with the probability ``false``."""
        self.num_edges, degrees, self.degrees = self.release_degrees(source, reads)
        read, count = reads["block_labels"], int(self.num_edges)
        rate = read.event.pure_epsilon / read.sensitivity
        model = label_law(source.edges.numpy(), self.degrees, self.num_labels(budget), count, rate)
        self.communities = self.pay(read, model, sample_labels(self.hparams["sweeps"]))
        fewer, count = fewer_degrees(degrees.numpy(), count, false)
        self.degrees, self.num_edges = torch.from_numpy(fewer), torch.tensor(count)
        classes, read = self.communities.numpy(), reads["community_links"]
        cells = np.tril_indices(classes.max() + 1)
        counts = count_links(classes, source.edges.numpy())
        noisy = self.pay(read, torch.from_numpy(counts[cells])).numpy()
        expected, sizes = expected_links(classes, fewer), np.bincount(classes)
        rate = read.event.pure_epsilon / read.sensitivity
        counts[cells] = true_links(noisy, expected, sizes, false, rate, count)
        self.links = torch.from_numpy(counts)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw edges with the released degrees and edge counts of groups, see :func:`draw_links`."""
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        degrees, classes, links = (
            released.cpu().numpy() for released in (self.degrees, self.communities, self.links)
        )
        return self.space.from_ends(torch.from_numpy(draw_links(degrees, classes, links, rng)))

    def score(self, pairs: Tensor) -> Tensor:
        """Expected number of edges of pairs ``(P, 2)``, repeated edges allowed: ``(P,)``.

        Nodes of released degree 0 count as of degree 1: noise often makes a small degree 0, and the
        groups would not order the pairs of such nodes.
        """
        classes, degrees, links = self.communities.cpu(), self.degrees.cpu(), self.links.cpu()
        totals = torch.bincount(classes, degrees, minlength=len(links))
        mixing = stub_mixing(links.numpy(), totals.long().numpy())
        rates = torch.from_numpy(mixing) / torch.outer(totals, totals).clamp(min=1)
        first, second = classes[pairs].T
        return rates[first, second] * degrees[pairs].clamp(min=1).double().prod(dim=1)
