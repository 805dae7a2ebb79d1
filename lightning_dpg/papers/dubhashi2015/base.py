"""Shared parts of private graph kernels: counts of walks and graphlets, and their kernels."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor, nn

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.counts import Floats
from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.constraints import RATE, Constraints, at_least
from lightning_dpg.methods.graph_features import Embedding, GraphFeatureRelease
from lightning_dpg.methods.planning import Reads
from lightning_dpg.metrics.kernel_svm import column_kernels, feature_kernels, scaled, standardized
from lightning_dpg.nn.resized_buffers import before_loading
from lightning_dpg.papers.dubhashi2015.counts import (
    GRAPHLET_SIZES,
    Counting,
    Estimates,
    check_counting,
    check_magnitude,
    check_truncation,
    counted,
    estimates,
    planned,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, NonPrivate, Pure

_GRAPHS_PER_LABEL = 10  # fewer graphs do not show what a label of nodes says of a count


def joint_kernels(
    counts: Floats, scales: Floats, noise: Floats, sizes: Floats, node_labels: Floats
) -> list[Floats]:
    r"""Kernels of public numbers and of private counts, each with the weight that its noise leaves.

    Counts are linear within their noise and logarithmic beyond. All columns are standardized. A
    column of counts then gets the length w: a linear function of the public numbers is fitted to
    it, and w is the share of the variance left that noise does not explain, less the standard error
    of this share. A column that is noise beside the public numbers is thus left out, or short. No
    weight reads labels of the graphs, or anything private but the released counts.

    Args:
        counts: Released counts of G graphs, shape ``(G, F)``.
        scales: Scale of the noise of each column, shape ``(F,)``; 0 without noise.
        noise: Equally likely values of noise of scale 1, shape ``(Q,)``.
        sizes: Numbers of nodes (public), shape ``(G,)``.
        node_labels: Numbers of nodes with each label (public), shape ``(G, L)``.
    """
    size, labels = np.log1p(sizes)[:, None], np.log1p(node_labels)
    known = [np.ones_like(size), size, size**2]
    if len(sizes) >= _GRAPHS_PER_LABEL * labels.shape[1]:
        known.append(labels)
    varies = np.ptp(counts, axis=0) > 0
    counts, scales = counts[:, varies], scales[varies]
    columns = np.arcsinh(counts / np.where(scales > 0, scales, 1))
    weights, _, rank, _ = np.linalg.lstsq(np.hstack(known), columns)
    fitted = np.hstack(known) @ weights
    free = max(len(columns) - int(rank), 1)  # degrees of freedom of what is left
    left = ((columns - fitted) ** 2).sum(axis=0) / free
    noisy = (scales > 0) * (1 + math.sqrt(2 / free)) * _variance(np.sinh(fitted), noise)
    share = np.clip(1 - noisy / np.maximum(left, np.finfo(float).tiny), 0, 1)
    weighted = standardized(columns) * share
    return column_kernels(np.hstack([standardized(np.hstack([size, labels])), weighted]))


def _variance(means: Floats, noise: Floats) -> Floats:
    """Variance of the noise in each column, after the transform, at given means: ``(F,)``."""
    return np.array([np.arcsinh(column[:, None] + noise).var(axis=1).mean() for column in means.T])


COUNTS = "counts"
"""Key and name of a release of all counts together."""

_QUANTILES = 64
"""Values of the noise over which its variance in a transformed count is averaged."""


class GraphCounts(GraphFeatureRelease):
    """Counts of walks and graphlets of each graph, released by a subclass, and their kernels.

    Subclasses define the settings.

    Attributes:
        counting: Counted features and truncation of each graph.
        counts: The releases, in the order of the columns of the features.
        noise_scales: Scale of the noise of each column (public), shape ``(F,)``; 0 without noise.
        node_labels: Number of nodes of each graph that have each label (public), shape ``(G, L)``: a
            sum for each column of the nodes' features that holds zeros and ones only, and 0 for
            others. Empty where the kernels read no public features.
        noise_law: Law of the noise, of scale 1.
    """

    embedding_names: ClassVar[tuple[str, ...]] = ("features", "node_labels")
    noise_law: ClassVar[Any] = stats.laplace
    capabilities = replace(GraphFeatureRelease.capabilities, repeats_edges=True)
    constraints: ClassVar[Constraints] = {
        "length": at_least(1),
        "num_samples": at_least(1),
        "sample_rate": RATE,
    }

    def _build(self, counting: Counting) -> None:
        check_counting(counting)
        self.counting = counting
        self.counts = planned(counting)
        self.features: Tensor
        self.node_labels: Tensor
        self.noise_scales: Tensor = nn.Buffer(torch.zeros(self.num_columns, dtype=torch.double))
        before_loading(self, _add_node_labels)

    @property
    def reads_public_features(self) -> bool:
        """Whether the kernels read numbers of nodes and labels of nodes beside the counts."""
        return bool(self.hparams.get("public_features", False))

    @property
    def num_columns(self) -> int:
        """Number of columns of the features."""
        return sum(len(one.columns) for one in self.counts)

    @property
    def graphlet_sizes(self) -> list[int]:
        """Numbers of nodes of the graphlets of each release of sampled counts."""
        return [GRAPHLET_SIZES[name] for name in self.counting.features if name != "nodes"]

    @property
    def reading_note(self) -> str | None:
        """Name the public features that the kernels read."""
        if not self.reads_public_features:
            return None
        labels = " and of its nodes with each label" if self.node_labels.numel() else ""
        return (
            "Its kernels also read public features, which cost nothing: the number of nodes of each "
            f"graph{labels}."
        )

    @abstractmethod
    def protected_plan(self, budget: Budget) -> list[LedgerEntry]:
        """Plan the releases of noisy counts, which spend a whole finite budget."""

    @abstractmethod
    def protected_counts(self, records: GraphSetRecords, plan: Sequence[LedgerEntry]) -> Tensor:
        """Release the noisy counts of all graphs, shape ``(G, F)``.

        Args:
            records: The graphs (private).
            plan: The entries of :meth:`protected_plan`.
        """

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the releases of noisy counts, or of exact counts under an infinite budget."""
        if not self.counts:
            return [self._nodes_entry()]
        if math.isfinite(budget.epsilon):
            return self.protected_plan(budget)
        sample = "m / s times the counts of a sample"
        why = sample if self.counting.is_sampled else "it is released without noise"
        # Exact numbers of edges have another key than noisy ones.
        keys = ("num_edges" if one.key == "edge_counts" else one.key for one in self.counts)
        return [
            self.ledger.unprotected(key, one.name, why)
            for key, one in zip(keys, self.counts, strict=True)
        ]

    def _check_budget(self, budget: Budget) -> None:
        """Also refuse a finite budget if one edge can change counts without bound."""
        check_truncation(self.counting, budget.epsilon)
        super()._check_budget(budget)

    def release_features(self, records: GraphSetRecords, reads: Reads) -> Embedding:
        """Count and release; ``features`` has a row per graph and a column per count, ``(G, F)``."""
        check_magnitude(self.counting, len(records.graph_of))
        plan = list(reads.values())
        if not self.counts:
            self.ledger.spend(*plan)
            return {"features": torch.empty(len(records.sizes), 0, dtype=torch.double)}
        exact = [read for read in plan if isinstance(read.event, NonPrivate)]
        if not exact:
            return {"features": self.protected_counts(records, plan)}
        self.ledger.spend(*exact)
        if self.counting.is_sampled:
            return {"features": self.sampled_counts(records, plan[len(exact) :])}
        return {"features": torch.cat(self.private_counts(records), dim=1).double()}

    def public_features(self, records: GraphSetRecords) -> Embedding:
        """Numbers of nodes of each label, from the features of the nodes alone, ``(G, L)``.

        There are no labels where a graph has no features, or graphs have different numbers of them.

        Raises:
            Refusal: If the nodes have other features than those of the graphs of ``fit``.
        """
        features = [graph.x for graph in records.graphs if graph.x is not None]
        widths = {each[0].numel() for each in features}
        num_graphs = len(records.sizes)
        if not self.reads_public_features or len(features) < num_graphs or len(widths) > 1:
            counted = torch.zeros(num_graphs, 0, dtype=torch.long)
        else:
            x = torch.cat([each.reshape(len(each), -1) for each in features])
            counted = torch.zeros(num_graphs, x.shape[1], dtype=torch.long)
            is_label = ((x == 0) | (x == 1)).all(dim=0)
            counted.index_add_(0, records.graph_of, torch.where(is_label, x, 0).long())
        known = self.node_labels
        if self.is_released and known.shape[1] != counted.shape[1]:
            raise Refusal(
                f"the nodes of these graphs have {counted.shape[1]} columns of features, and those of "
                f"fit had {known.shape[1]}\ngive both sets the same columns, or fit with "
                "model.init_args.public_features: false"
            )
        if self.is_released:  # columns that are no labels of the graphs of fit stay without meaning
            counted *= (known != 0).any(dim=0).long().cpu()
        return {"node_labels": counted}

    def private_counts(self, records: GraphSetRecords) -> list[Tensor]:
        """Exact counts of each release, each of shape ``(G, F)`` (private)."""
        return list(counted(self.counting, records.edges, records.graph_of, len(records.sizes)))

    def sampled_counts(self, records: GraphSetRecords, noisy: Sequence[LedgerEntry]) -> Tensor:
        """Estimate counts from drawn edges, shape ``(G, F)`` (private): no guarantee.

        Args:
            records: The graphs (private).
            noisy: Releases of the estimates with noise that protects nothing; empty for exact
                estimates.
        """
        return torch.cat(self.estimates(records).counts, dim=1)

    def estimates(self, records: GraphSetRecords) -> Estimates:
        """Compute the paper's estimates from ``num_samples`` drawn edges per graph (private)."""
        return estimates(
            records.edges,
            records.graph_of,
            len(records.sizes),
            self.counting,
            self.noise,
            sizes=self.graphlet_sizes,
            num_samples=self.hparams["num_samples"],
        )

    def laplace_plan(self, epsilons: Sequence[float]) -> list[LedgerEntry]:
        """Plan releases with discrete Laplace noise, each at its own cost."""
        return [
            one.read(Pure(epsilon), one.sensitivity * self.max_occurrences, one.proof)
            for one, epsilon in zip(self.counts, epsilons, strict=True)
        ]

    def laplace_counts(self, records: GraphSetRecords, plan: Sequence[LedgerEntry]) -> Tensor:
        """Release exact counts with the discrete Laplace noise of a plan, ``(G, F)``."""
        self._keep_scales([read.scale for read in plan])
        return self.laplace(self.private_counts(records), plan)

    def laplace(self, values: Sequence[Tensor], plan: Sequence[LedgerEntry]) -> Tensor:
        """Release integers of shape ``(G, F)`` with discrete Laplace noise, side by side.

        Args:
            values: Integers of each release (private).
            plan: The read of each.
        """
        noisy = [self.pay(read, value) for read, value in zip(plan, values, strict=True)]
        return torch.cat(noisy, dim=1).double()

    def kernels(self, embedding: Embedding, sizes: Tensor) -> list[NDArray[np.float64]]:
        """Kernels of the counts, linear within their noise and logarithmic beyond.

        With public features they are those of :func:`joint_kernels`.
        """
        counts, scales = (each.cpu().numpy() for each in (embedding["features"], self.noise_scales))
        num_nodes = sizes.cpu().numpy().astype(np.float64)
        is_geometric = list(self.counting.features) == ["prw"]
        if not self.reads_public_features:
            if is_geometric:
                return geometric_kernels(counts)
            columns = np.arcsinh(counts / np.where(scales > 0, scales, 1))
            if "nodes" in self.counting.features:
                columns = np.column_stack([columns, np.log1p(num_nodes)])
            return feature_kernels(columns)
        labels = embedding["node_labels"].cpu().numpy().astype(np.float64)
        noise = self.noise_law.ppf((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
        if is_geometric:
            public = joint_kernels(counts[:, :0], scales[:0], noise, num_nodes, labels)
            walks = [scaled(kernel, len(kernel)) for kernel in geometric_kernels(counts)]
            return [*public, *(one + other for one, other in zip(walks, public, strict=True))]
        return joint_kernels(counts, scales, noise, num_nodes, labels)

    def released_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Arrays of ``features.npz``, with the names and the noise scales of the columns."""
        names = np.array([name for one in self.counts for name in one.columns], dtype=str)
        scales = self.noise_scales.cpu().numpy()
        arrays = super().released_arrays() | {"columns": names, "noise_scales": scales}
        return {key: array for key, array in arrays.items() if key != "node_labels" or array.size}

    def _keep_scales(self, scales: Sequence[float]) -> None:
        """Keep the scale of the noise of each release for each of its columns."""
        columns = [len(one.columns) for one in self.counts]
        values = torch.tensor(scales, dtype=torch.double)
        self.noise_scales = values.repeat_interleave(torch.tensor(columns))

    def _nodes_entry(self) -> LedgerEntry:
        """Entry of the public numbers of nodes, at no cost, if nothing else is counted."""
        return LedgerEntry(
            key="num_nodes",
            name="number of nodes",
            relation=self.relation,
            event=Pure(0.0),
            sensitivity=0.0,
            proof="it is public",
        )


def geometric_kernels(walks: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    r"""Kernels :math:`\sum_l \lambda^l w_l w'_l` of numbers of walks, plain and by walk length.

    They count the common walks of two graphs, which are the walks in the direct product of both;
    longer walks have smaller weights (Gaertner, Flach, Wrobel, "On graph kernels: hardness results
    and efficient alternatives", 2003).

    Args:
        walks: Noisy numbers of walks of length 1, 2, ..., shape ``(G, L)``.
    """
    kernels = []
    for base in (2.0, 8.0):  # lambda is 1 / base^2
        x = walks.clip(min=0) / base ** np.arange(1, walks.shape[1] + 1)
        norms = np.linalg.norm(x, axis=1, keepdims=True)
        for vectors in (x, x / np.where(norms > 0, norms, 1)):
            kernels.append(vectors @ vectors.T)
    return kernels


def _add_node_labels(module: nn.Module, state: dict[str, Tensor], prefix: str, *_: object) -> None:
    """Add the node labels that releases of earlier versions lack: their kernels read none."""
    if prefix + "node_labels" not in state and prefix + "sizes" in state:
        empty = torch.zeros(len(state[prefix + "sizes"]), 0, dtype=torch.long)
        state[prefix + "node_labels"] = module.node_labels = empty
