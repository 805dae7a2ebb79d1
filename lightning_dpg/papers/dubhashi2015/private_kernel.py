"""Private graph kernels: noisy counts of walks and graphlets of each graph of a set."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from scipy import stats
from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.papers.dubhashi2015.base import COUNTS, GraphCounts
from lightning_dpg.papers.dubhashi2015.counts import (
    Counting,
    epsilon_in_sample,
    poisson_law,
    shares,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_noise_multiplier
from lightning_dpg.privacy.events import Gaussian, LedgerEntry, Pure
from lightning_dpg.privacy.sensitivity.subgraph_counts import amplified_epsilon


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
        truncation: ``canonical``, or ``none`` for runs without privacy.
        public_features: Whether the kernels also read public features, see ``PrivateGraphKernel``.
    """

    noise_law: ClassVar[Any] = stats.norm

    def __init__(
        self,
        features: Sequence[str] = ("w",),
        *,
        length: int = 4,
        max_degree: int | None = None,
        truncation: Literal["canonical", "none"] = "canonical",
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


class PrivateGraphKernel(GraphCounts):
    """Private counts of walks and graphlets of each graph of a set, to predict their labels.

    Each graph is cut down to ``max_degree`` edges per node, which is a public bound D, and counted:

    - ``w``: walks of each length from 1 to ``length``; ``prw`` are the same, as geometric kernel;
    - ``gk-c3``, ``gk-c4``, ``gk-c5``: connected induced graphlets of as many nodes;
    - ``gk-a3``, ``gk-a4``, ``gk-a5``: the same in a sample of the edges;
    - ``edges``: the number of edges; ``nodes``: that of nodes, which is public and costs nothing.

    One edge is in one graph and changes its counts by at most three times their restricted
    sensitivity. Each release has discrete Laplace noise of that scale. Normalization, kernels and
    classifiers of the noisy counts are free. So are the numbers of nodes, and of nodes with each
    label, which the kernels read beside the counts: they are public. Counts have the weight that
    their noise leaves them beyond what is public, see :func:`joint_kernels`.

    When to use:
        To predict public labels of graphs from private edges, if they add something to what is
        public: compare with ``features: [nodes]``, the configuration ``node_kernel``, which reads
        no edge. ``features: [edges]`` costs little; take ``gk-c3`` where sizes tell nothing. For many
        counts at once :class:`GaussianGraphKernel` adds less noise. For synthetic graphs take
        :class:`DPGVAE` or :class:`ErdosRenyiSet`.

    Privacy:
        Pure epsilon-DP at the level of edges: one undirected edge of one graph is added or removed.
        If one private edge is several edges of the set, the noise covers all of them. The bound on
        degrees is enforced, and the guarantee has no condition; it must be chosen without
        looking at the graphs. The number of graphs, their numbers of nodes, features of nodes and
        labels of graphs are public: features that were computed from edges, such as degrees, are
        not, and must not be among the features of nodes.

    Cost:
        Walks take time O(``length`` (N + M)). Graphlets of 3 and 4 nodes take time and memory that
        grow with the number of two-edge paths, those of 5 nodes also with three-edge paths and
        cliques of four. Settings whose counts may exceed 2^62 are refused.

    Differences from the paper:
        The noise also covers the truncation, by which one edge can change three edges, and the
        number of graphlet types; :class:`PrivateGraphKernelAsPublished` has the noise of the paper.
        The paper's amplification by sampled edges does not hold, because estimates are scaled up by
        the number of edges; the sampling here has a proof, saves time, and costs accuracy at equal
        epsilon.

    * Dubhashi, Johansson, Frost, Retzner, "Classifying Large Graphs with Differential Privacy",
      2015.
    * Blocki, Blum, Datta, Sheffet, "Differentially private data analysis of social networks via
      restricted sensitivity", 2013.

    Args:
        features: Counted features, any of the above; ``prw`` alone.
        length: Longest walks.
        max_degree: Degree bound D, known independently of the graphs.
        truncation: ``canonical`` keeps an edge if it is among the first D of both ends in a public
            order; ``none`` is for runs without privacy.
        public_features: Whether the kernels also read the numbers of nodes and the labels of nodes,
            columns of the nodes' features that hold zeros and ones; false for the counts alone, as
            in the paper. The release is of the same counts, with the same noise.
        shares: Shares of the budget, one per release (of walks, one per length), which add up to 1;
            by default in proportion to the sensitivities to the power of 2/3.
        sample_rate: Probability that the sample of ``gk-a*`` within a budget keeps an edge; the
            counts are of the sample. Sampling saves time; at equal epsilon it costs accuracy.
        num_samples: Number of edges that are drawn without a budget, for the estimates of the paper.
    """

    capabilities = replace(GraphCounts.capabilities, is_pure=True)

    def __init__(
        self,
        features: Sequence[str] = ("w",),
        *,
        length: int = 4,
        max_degree: int | None = None,
        truncation: Literal["canonical", "none"] = "canonical",
        public_features: bool = True,
        shares: Sequence[float] | None = None,
        sample_rate: float = 0.5,
        num_samples: int = 100,
    ) -> None:
        features = list(features)
        super().__init__()
        self.save_hyperparameters()
        self._build(Counting(features, length, max_degree, truncation))

    def protected_plan(self, budget: Budget) -> list[LedgerEntry]:
        """Plan releases of pure epsilon-DP, each with its share of the budget."""
        epsilons = [budget.epsilon * part for part in shares(self.counts, self.hparams["shares"])]
        if not self.counting.is_sampled:
            return self.laplace_plan(epsilons)
        return [
            one.read(Pure(cost), one.sensitivity, f"{amplified_epsilon.__name__}, {one.proof}")
            for one, cost in zip(self.counts, epsilons, strict=True)
        ]

    def protected_counts(self, records: GraphSetRecords, plan: Sequence[LedgerEntry]) -> Tensor:
        """Release counts with discrete Laplace noise, shape ``(G, F)``."""
        if not self.counting.is_sampled:
            return self.laplace_counts(records, plan)
        graph_of, num_graphs = records.graph_of, len(records.sizes)
        rate, group_size = self.hparams["sample_rate"], self.max_occurrences
        inner = [epsilon_in_sample(read, rate, group_size) for read in plan]
        self._keep_scales([r.sensitivity / e for r, e in zip(plan, inner, strict=True)])
        noisy = []
        for read, epsilon, size in zip(plan, inner, self.graphlet_sizes, strict=True):
            law = poisson_law(
                *(read, self.counting, graph_of, num_graphs),
                size=size,
                sample_rate=rate,
                epsilon=epsilon,
            )
            noisy.append(self.pay(read, records.edges, law))
        return torch.cat(noisy, dim=1).double()
