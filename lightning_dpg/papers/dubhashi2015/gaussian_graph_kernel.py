"""Private graph kernels with joint Gaussian noise on all counts."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from scipy import stats
from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.papers.dubhashi2015.base import COUNTS, GraphCounts
from lightning_dpg.papers.dubhashi2015.counts import Counting
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import Gaussian, LedgerEntry


class GaussianGraphKernel(GraphCounts):
    """Counts of walks and graphlets as in PrivateGraphKernel, with one joint Gaussian noise.

    All counts are one release. Each count is divided by the root of its sensitivity before the
    noise, which minimizes the sum of the variances.

    When to use:
        For many counts of each graph, for which this noise is smaller than the Laplace noise of
        :class:`PrivateGraphKernel`, and where a delta is acceptable. For few counts the Laplace
        noise is the smaller one.

    Privacy:
        (epsilon, delta)-DP at the level of edges: one undirected edge of one graph is added or
        removed. If one private edge is several edges of the set, the noise covers all of them. The
        bound on degrees is enforced; the guarantee has no condition. The number of graphs, their
        numbers of nodes, features of nodes and labels of graphs are public.

    Cost:
        As :class:`PrivateGraphKernel`. Sampled graphlets are refused.

    Differences from the paper:
        The paper has Laplace noise for each count.

    * Dubhashi, Johansson, Frost, Retzner, "Classifying Large Graphs with Differential Privacy",
      2015.

    Args:
        features: Counted features, see ``PrivateGraphKernel``; sampled ones are refused.
        length: Longest walks.
        max_degree: Bound on the degrees, known independently of the graphs.
        truncation: Method that cuts a graph down to the bound, see ``PrivateGraphKernel``.
        public_features: Whether the kernels also read public features, see ``PrivateGraphKernel``.
    """

    noise_law: ClassVar[Any] = stats.norm

    def __init__(
        self,
        features: Sequence[str] = ("w",),
        *,
        length: int = 4,
        max_degree: int | None = None,
        truncation: Literal["canonical", "drop", "none"] = "canonical",
        public_features: bool = True,
    ) -> None:
        features = list(features)
        super().__init__()
        self.save_hyperparameters()
        self._build(Counting(features, length, max_degree, truncation))
        if self.counting.is_sampled:
            raise MisconfigurationException(
                "gk-a*: Gaussian noise of sampled counts has no proof: take PrivateGraphKernel"
            )

    def protected_plan(self, budget: Budget) -> list[LedgerEntry]:
        r"""Plan one release of all counts, each divided by the root of its sensitivity.

        No L2 change is larger than the L1 change :math:`\Delta_i`. Hence the L2 sensitivity of
        the quotients is at most :math:`\sqrt{\sum_i \Delta_i}`. Division by the roots minimizes the
        sum of the variances.
        """
        moved = math.sqrt(math.fsum(one.sensitivity for one in self.counts))
        return [
            LedgerEntry(
                key=COUNTS,
                name=COUNTS,
                relation=self.relation,
                event=Gaussian(calibrate_noise_multiplier(budget)),
                sensitivity=moved * self.max_occurrences,
                proof="; ".join(dict.fromkeys(one.proof for one in self.counts)),
            )
        ]

    def protected_counts(self, records: GraphSetRecords, plan: Sequence[LedgerEntry]) -> Tensor:
        """Release counts with Gaussian noise, shape ``(G, F)``."""
        (read,) = plan
        assert isinstance(read.event, Gaussian)
        roots = torch.tensor(
            [math.sqrt(one.sensitivity) for one in self.counts for _ in one.columns],
            dtype=torch.double,
        )
        noisy = self.pay(read, torch.cat(self.private_counts(records), dim=1) / roots)
        self.noise_scales = roots * read.sensitivity * read.event.noise_multiplier
        return noisy * roots
