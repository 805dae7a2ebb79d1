"""Private graph kernels: noisy counts of walks and graphlets of each graph of a set."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.methods.graph_features.base import Embedding, GraphLearner
from lightning_dpg.methods.graph_features.private_kernel.counts import (
    check_magnitude,
    check_settings,
    counted,
    planned,
    shares,
)
from lightning_dpg.methods.graph_features.private_kernel.sampled_counts import estimates, sampled
from lightning_dpg.metrics.kernel_svm import feature_kernels
from lightning_dpg.privacy.calibration import remaining_noise_multiplier
from lightning_dpg.privacy.ledger import Budget
from lightning_dpg.privacy.mechanisms import discrete_laplace, gaussian, spend_pure

COUNTS = "counts"
"""Name of the one release of ``mechanism: gaussian``."""


class PrivateGraphKernel(GraphLearner):
    r"""Private graph kernels (Dubhashi et al., 2015): noisy counts of walks and graphlets.

    Each graph is cut down to ``max_degree`` edges per node, which is a public bound D, and counted:

    - ``w``: walks of each length from 1 to ``length``; ``prw`` are the same, as geometric kernel;
    - ``gk-c3``, ``gk-c4``, ``gk-c5``: connected induced graphlets of as many nodes;
    - ``gk-a3``, ``gk-a4``, ``gk-a5``: the same in a sample of the edges;
    - ``edges``: the number of edges; ``nodes``: that of nodes, which is public and costs nothing.

    One edge is in one graph and moves its counts by no more than three times their restricted
    sensitivity. Each release has discrete Laplace noise of that scale; or all together have one
    Gaussian noise. Normalization, kernels and classifiers of what was released are free.

    Args:
        features: What to count, any of the above; ``prw`` alone.
        length: Longest walks.
        max_degree: Degree bound D, known without looking at the graphs.
        truncation: ``canonical`` keeps an edge if it is among the first D of both ends in a public
            order; ``drop`` removes nodes of more edges, which costs 2D times the restricted
            sensitivity; ``none`` is for runs without privacy.
        mechanism: ``laplace``, pure epsilon-DP, or ``gaussian``, which spends the budget's delta.
        shares: Parts of the budget, one per release (of walks, one per length), adding up to 1; in
            proportion to the sensitivities to the power of 2/3 by default.
        sampling: How ``gk-a*`` sample within a budget: ``poisson`` keeps each edge with probability
            ``sample_rate`` and counts inside; ``edges`` adds up the graphlets at ``num_samples``
            edges drawn with replacement. Sampling saves time; for equal epsilon it costs accuracy.
        sample_rate: See there.
        num_samples: See there. Without a budget ``gk-a*`` are the paper's estimates from so many.
        mode: ``corrected``, or ``paper``: noise of the printed scale, which the stretch of the
            truncation is missing from. The budget is what holds; what the paper would print of it is
            stated beside. Sampled graphlets have no guarantee there.
        paper_epsilon: Epsilon that sampled graphlets of ``mode: paper`` are noised for; what the
            paper would make of it is the claim.

    References:
        Dubhashi, Johansson, Frost, Retzner, "Classifying Large Graphs with Differential Privacy",
        2015. Blocki, Blum, Datta, Sheffet, "Differentially private data analysis of social networks
        via restricted sensitivity", 2013.
    """

    is_pure: ClassVar[bool] = True
    repeats_edges: ClassVar[bool] = True

    def __init__(
        self,
        features: Sequence[str] = ("w",),
        *,
        length: int = 4,
        max_degree: int | None = None,
        truncation: Literal["canonical", "drop", "none"] = "canonical",
        mechanism: Literal["laplace", "gaussian"] = "laplace",
        shares: Sequence[float] | None = None,
        sampling: Literal["poisson", "edges"] = "poisson",
        sample_rate: float = 0.5,
        num_samples: int = 100,
        mode: Literal["corrected", "paper"] = "corrected",
        paper_epsilon: float | None = None,
    ) -> None:
        super().__init__()
        features = list(features)
        self.save_hyperparameters()
        check_settings(self.hparams)
        self.counts = planned(self.hparams)
        columns = sum(len(one.columns) for one in self.counts)
        self.paper_claim: float | None = None
        self.noise_scales: Tensor
        self.register_buffer("noise_scales", torch.ones(columns, dtype=torch.double))

    def delta_setting(self) -> str | None:
        """Gaussian noise."""
        return "mechanism: gaussian" if self.hparams["mechanism"] == "gaussian" else None

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Also refuse a finite one where an edge can move counts by any amount."""
        super().check_budget(budget, steps)
        check_settings(self.hparams, budget.epsilon)

    def embed(self, data: Any, epsilon: float) -> Embedding:
        """Count and release; ``features`` has a row per graph and a column per count, ``(G, F)``."""
        h = self.hparams
        check_magnitude(h, len(data.graph_of))
        if not self.counts:
            spend_pure(
                self.ledger,
                "num_nodes",
                "number of nodes",
                0.0,
                0.0,
                "it is public",
                "undirected edge",
            )
            return {"features": torch.empty(len(data.sizes), 0, dtype=torch.double)}
        if self.is_sampled:
            noisy = (estimates if math.isinf(epsilon) else sampled)(self, data, epsilon)
            return {"features": noisy}
        counts = list(counted(h, data.edges, data.graph_of, len(data.sizes)))
        if math.isinf(epsilon):
            for one in self.counts:
                self.ledger.spend(self.unprotected(one.name, "it is released without noise"))
            noisy = torch.cat(counts, dim=1).double()
        elif h["mechanism"] == "gaussian":
            noisy = self._gaussian(counts)
        else:
            noisy = self._laplace(counts, self.epsilons(epsilon))
        return {"features": noisy}

    @property
    def is_sampled(self) -> bool:
        """Whether graphlets are counted in a sample."""
        return any(feature.startswith("gk-a") for feature in self.hparams["features"])

    def epsilons(self, epsilon: float) -> list[float]:
        r"""Cost of each release of ``counts``, together ``epsilon``.

        In ``mode: paper`` each of a counts has noise of the scale :math:`a RS / \epsilon'`, where
        :math:`\epsilon'` is what the paper would print; a release that an edge moves by
        :math:`\Delta` then costs :math:`\Delta \epsilon' / (a RS)`.
        """
        if self.hparams["mode"] == "paper":
            costs = self._paper_costs()
            return [epsilon * cost / math.fsum(costs) for cost in costs]
        return [epsilon * share for share in shares(self.counts, self.hparams["shares"])]

    def grams(self, embedding: Embedding, sizes: Tensor) -> list[NDArray[np.float64]]:
        """Kernels of the counts, which are linear within their noise and logarithmic beyond."""
        counts = embedding["features"].cpu().numpy()
        if self.hparams["features"] == ["prw"]:
            return geometric_kernels(counts)
        columns = np.arcsinh(counts / self.noise_scales.cpu().numpy())
        if "nodes" in self.hparams["features"]:
            columns = np.column_stack([columns, np.log1p(sizes.cpu().numpy())])
        return feature_kernels(columns)

    def released_arrays(self) -> dict[str, NDArray[Any]]:
        """What ``features.npz`` holds: also the names and the noise scales of the columns."""
        names = np.array([name for one in self.counts for name in one.columns], dtype=str)
        scales = self.noise_scales.cpu().numpy()
        return super().released_arrays() | {"columns": names, "noise_scales": scales}

    def claimed_epsilon(self, delta: float) -> float | None:
        """Epsilon that the paper would print: its sensitivities know of no stretch, nor of types."""
        if self.hparams["mode"] != "paper" or not self.ledger.entries:
            return None
        if self.is_sampled:
            return self.paper_claim
        return math.fsum(entry.epsilon for entry in self.ledger.entries) / math.fsum(
            self._paper_costs()
        )

    def _laplace(self, counts: Sequence[Tensor], epsilons: Sequence[float]) -> Tensor:
        """Discrete Laplace noise on each release by itself."""
        noisy, scales = [], []
        for one, value, epsilon in zip(self.counts, counts, epsilons, strict=True):
            sensitivity = one.sensitivity * self.max_occurrences
            noisy.append(
                discrete_laplace(
                    value,
                    self.ledger,
                    self.noise,
                    key=one.key,
                    name=one.name,
                    epsilon=epsilon,
                    sensitivity=sensitivity,
                    proof=one.proof,
                )
            )
            scales += [sensitivity / epsilon] * len(one.columns)
        self.noise_scales = torch.tensor(scales, dtype=torch.double)
        return torch.cat(noisy, dim=1).double()

    def _gaussian(self, counts: Sequence[Tensor]) -> Tensor:
        r"""Gaussian noise on all counts at once, each divided by the root of its sensitivity.

        No L2 change is larger than the L1 change :math:`\Delta_i`, so that the L2 sensitivity of the
        quotients is at most :math:`\sqrt{\sum_i \Delta_i}`. Roots make the sum of the variances as
        small as it can be.
        """
        moved = math.sqrt(math.fsum(one.sensitivity for one in self.counts)) * self.max_occurrences
        roots = torch.tensor(
            [math.sqrt(one.sensitivity) for one in self.counts for _ in one.columns],
            dtype=torch.double,
        )
        multiplier = remaining_noise_multiplier(self.ledger)
        noisy = gaussian(
            torch.cat(list(counts), dim=1) / roots,
            self.ledger,
            self.noise,
            key="counts",
            name=COUNTS,
            sensitivity=moved,
            noise_multiplier=multiplier,
            proof="; ".join(dict.fromkeys(one.proof for one in self.counts)),
        )
        self.noise_scales = roots * moved * multiplier
        return noisy * roots

    def _paper_costs(self) -> list[float]:
        """What each release costs where the paper would print an epsilon of 1 for all of them."""
        count = sum(len(one.columns) for one in self.counts)
        return [
            one.sensitivity * self.max_occurrences / (count * one.printed) for one in self.counts
        ]


def geometric_kernels(walks: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    r"""Kernels :math:`\sum_l \lambda^l w_l w'_l` of numbers of walks, plain and of equal lengths.

    They count the walks that two graphs have in common, those in the direct product of both, where
    longer ones weigh less (Gaertner, Flach, Wrobel, "On graph kernels: hardness results and
    efficient alternatives", 2003).

    Args:
        walks: Noisy numbers of walks of length 1, 2, ..., shape ``(G, L)``.
    """
    grams = []
    for base in (2.0, 8.0):  # lambda is 1 / base^2
        x = walks.clip(min=0) / base ** np.arange(1, walks.shape[1] + 1)
        norms = np.linalg.norm(x, axis=1, keepdims=True)
        for vectors in (x, x / np.where(norms > 0, norms, 1)):
            grams.append(vectors @ vectors.T)
    return grams
