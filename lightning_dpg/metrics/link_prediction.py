"""Link prediction quality of scores (reads the private graph)."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data
from torchmetrics import Metric, MetricCollection
from torchmetrics.classification import BinaryAUROC, BinaryAveragePrecision
from torchmetrics.functional.classification import binary_auroc, binary_average_precision
from torchmetrics.utilities import dim_zero_cat

from lightning_dpg.graph.pair_space import space_of

Score: TypeAlias = Callable[[Tensor], Tensor]
"""Scores of pairs of nodes: ``(P, 2)`` to ``(P,)``, higher is likelier."""


class LinkAUC(BinaryAUROC):
    """Area under the ROC curve of scores of any range; nan where either class is empty."""

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Keep scores, and classes that are 1 for edges, both of shape ``(P,)``; P may be 0."""
        # The ancestor puts scores outside of [0, 1] through a sigmoid, which ties the large ones.
        self.preds.append(preds)
        self.target.append(target)

    def compute(self) -> Tensor:  # type: ignore[override]  # as that of the ancestor
        """Return the area over all batches and processes."""
        return _of_ranks(binary_auroc, dim_zero_cat(self.preds), dim_zero_cat(self.target))


class LinkAP(BinaryAveragePrecision):
    """Average precision of scores of any range; nan where either class is empty."""

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Keep scores and classes, as :meth:`LinkAUC.update`."""
        self.preds.append(preds)
        self.target.append(target)

    def compute(self) -> Tensor:  # type: ignore[override]  # as that of the ancestor
        """Return the average precision over all batches and processes."""
        preds, target = dim_zero_cat(self.preds), dim_zero_cat(self.target)
        return _of_ranks(binary_average_precision, preds, target)


class LinkMetrics(MetricCollection):
    """AUC and AP of some scores of pairs, over all batches and processes.

    Args:
        scores: Names of the scores; that of the method is empty.
        prefixes: Prefixes of the names of the figures, one for each kind of non-edges.
    """

    def __init__(self, scores: Iterable[str], prefixes: Iterable[str]) -> None:
        ends = [(prefix, _postfix(name)) for prefix in prefixes for name in scores]
        metrics: dict[str, Metric | MetricCollection] = {}
        for prefix, postfix in ends:
            metrics |= {f"{prefix}auc{postfix}": LinkAUC(), f"{prefix}ap{postfix}": LinkAP()}
        super().__init__(metrics, compute_groups=False)

    def add(self, scores: Mapping[str, Score], edges: Tensor, others: Mapping[str, Tensor]) -> None:
        """Add the pairs of a batch.

        Args:
            scores: The scores by name.
            edges: Held-out edges, shape ``(P, 2)``; P may be 0.
            others: Non-edges of shape ``(Q, 2)`` by prefix; Q may be 0.
        """
        for prefix, pairs in others.items():
            for name, score in scores.items():
                preds, target = _labeled(score(edges), score(pairs))
                for figure in ("auc", "ap"):
                    self[f"{prefix}{figure}{_postfix(name)}"].update(preds, target)


def link_prediction(positive_scores: Tensor, negative_scores: Tensor) -> tuple[float, float]:
    """Return area under the ROC curve and average precision of scores; higher is likelier.

    Args:
        positive_scores: Scores of edges, shape ``(P,)``.
        negative_scores: Scores of non-edges, shape ``(Q,)``.

    Returns:
        AUC and AP, both between 0 and 1; nan where either class is empty. Chance gives an AUC of
        0.5 and an AP of P / (P + Q).
    """
    preds, target = _labeled(positive_scores, negative_scores)
    auc, ap = (
        _of_ranks(function, preds, target) for function in (binary_auroc, binary_average_precision)
    )
    return float(auc), float(ap)


def _postfix(name: str) -> str:
    return f"_{name}" if name else ""


def _labeled(positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
    """Return scores of both classes, and their classes."""
    preds = torch.cat([positive, negative]).detach()
    return preds, (torch.arange(len(preds), device=preds.device) < len(positive)).long()


def _of_ranks(figure: Callable[..., Tensor], preds: Tensor, target: Tensor) -> Tensor:
    """Compute a figure that depends on the order of the scores alone.

    The places of scores among the distinct ones lie in [0, 1], where torchmetrics keeps them.
    """
    if not (target == 1).any() or not (target == 0).any() or preds.isnan().any():
        return torch.tensor(math.nan, device=preds.device)
    distinct, places = torch.unique(preds, return_inverse=True)
    return figure(places.double() / len(distinct), target, validate_args=False)


def degree_product(graph: Data, pairs: Tensor) -> Tensor:
    """Score pairs of nodes by the product of their degrees, of a directed graph out and in.

    It is the baseline of every link-prediction table, and strong against uniform non-edges.

    Args:
        graph: Graph that gives the degrees, without the held-out edges.
        pairs: Pairs of shape ``(P, 2)``.

    Returns:
        Scores of shape ``(P,)`` in double precision.
    """
    space = space_of(graph)
    degrees = space.degrees(space.edges(graph)).double()
    return degrees[space.ends(pairs)].prod(dim=1)
