"""Private graph kernels as Dubhashi et al. published them."""

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.papers.dubhashi2015.base import GraphCounts
from lightning_dpg.papers.dubhashi2015.counts import Counting, printed_epsilon
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure


class PrivateGraphKernelAsPublished(GraphCounts):
    """Graph kernels with the noise of the paper at its true cost.

    When to use:
        To compare with the paper. :class:`PrivateGraphKernel` uses the same budget with the right
        scales.

    Privacy:
        Pure epsilon-DP at the level of edges (one undirected edge of one graph is added or
        removed), because each release is booked at its true cost; the statement also reports the
        epsilon that the paper claims for this noise. Sampled graphlets have no guarantee and need
        an infinite budget. The number of graphs, their numbers of nodes and their labels are
        public.

    Cost:
        As :class:`PrivateGraphKernel`.

    Differences from the paper:
        What the paper claims and does not hold: its scale lacks the stretch of the truncation, and
        the number of graphlet types. Its sampling of edges is scaled up by the number of edges,
        which is private and raises the sensitivity.

    * Dubhashi, Johansson, Frost, Retzner, "Classifying Large Graphs with Differential Privacy",
      2015.

    Args:
        features: Counted features, see ``PrivateGraphKernel``.
        length: Longest walks.
        max_degree: Degree bound, known independently of the graphs.
        truncation: ``canonical``, or ``none`` for runs without privacy.
        num_samples: Number of drawn edges for ``gk-a*``.
        paper_epsilon: Epsilon of the noise on sampled graphlets; None adds no noise. The paper's
            claim for the sample follows from it.
    """

    is_pure: ClassVar[bool] = True

    def __init__(
        self,
        features: Sequence[str] = ("w",),
        *,
        length: int = 4,
        max_degree: int | None = None,
        truncation: Literal["canonical", "none"] = "canonical",
        num_samples: int = 100,
        paper_epsilon: float | None = None,
    ) -> None:
        features = list(features)
        super().__init__()
        self.save_hyperparameters()
        self._build(Counting(features, length, max_degree, truncation))
        self._sampled_claim: float | None = None

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Also refuse a finite budget for sampled graphlets."""
        if self.counting.is_sampled and math.isfinite(budget.epsilon):
            raise MisconfigurationException(
                "gk-a*: the sampling that the paper prints has no guarantee\n"
                "take PrivateGraphKernel, whose sampling has one, or set privacy.epsilon to .inf"
            )
        super().check_budget(budget, steps)

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Also plan the noisy estimates, which follow the read of the graphs that voids them."""
        planned = super().plan(budget, steps)
        epsilon = self.hparams["paper_epsilon"]
        if not self.counting.is_sampled or epsilon is None:
            return planned
        proof = "none: the paper's scale, a RS / epsilon"
        return planned + [
            one._replace(key=f"{one.key}_noisy", name=f"{one.name}, noisy").read(
                Pure(epsilon), self.num_columns * one.printed, proof
            )
            for one in self.counts
        ]

    def protected_plan(self, budget: Budget) -> list[LedgerEntry]:
        r"""Plan releases with discrete Laplace noise of the published scale.

        Each of a counts has the scale :math:`a RS / \epsilon'`, where :math:`\epsilon'` is the
        paper's claim; a release that an edge changes by :math:`\Delta` then costs :math:`\Delta
        \epsilon' / (a RS)`.
        """
        costs = self._unit_costs()
        return self.laplace_plan([budget.epsilon * cost / math.fsum(costs) for cost in costs])

    def protected_counts(self, records: GraphSetRecords, plan: Sequence[LedgerEntry]) -> Tensor:
        """Release counts with discrete Laplace noise of the published scale, shape ``(G, F)``."""
        return self.laplace_counts(records, plan)

    def sampled_counts(self, records: GraphSetRecords, noisy: Sequence[LedgerEntry]) -> Tensor:
        """Estimate counts from drawn edges, noisy with ``paper_epsilon``: no guarantee."""
        if not noisy:
            return super().sampled_counts(records, noisy)
        estimates, h = self.estimates(records), self.hparams
        self._sampled_claim = printed_epsilon(
            estimates.num_edges,
            sizes=self.graphlet_sizes,
            max_degree=h["max_degree"] or 1,
            num_samples=h["num_samples"],
            epsilon=h["paper_epsilon"],
        )
        values = [value.round().long() for value in estimates.counts]
        return self.laplace(values, noisy)

    def claimed_epsilon(self, delta: float) -> float | None:
        """Epsilon of the paper, whose sensitivities lack the stretch and the graphlet types."""
        if not self.ledger.entries:
            return None
        if self.counting.is_sampled:
            return self._sampled_claim
        booked = math.fsum(entry.event.pure_epsilon for entry in self.ledger.entries)
        return booked / math.fsum(self._unit_costs())

    def _unit_costs(self) -> list[float]:
        """Cost of each release at a joint claim of epsilon 1 in the paper."""
        return [
            one.sensitivity * self.max_occurrences / (self.num_columns * one.printed)
            for one in self.counts
        ]
