"""Link prediction quality of scores (reads the private graph)."""

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.pair_space import space_of

Score: TypeAlias = Callable[[Tensor], Tensor]
"""Scores of pairs of nodes: ``(P, 2)`` to ``(P,)``, higher is likelier."""


def link_values(
    score: Score, baselines: Mapping[str, Score], edges: Tensor, others: Mapping[str, Tensor]
) -> dict[str, float]:
    """Compute AUC and AP of a score on held-out edges, and beside them those of its baselines.

    Args:
        score: Score of pairs.
        baselines: Scores that it has to surpass, by name.
        edges: Held-out edges, shape ``(P, 2)``.
        others: Non-edges of shape ``(Q, 2)``, by a prefix of the names of their values.
    """
    values: dict[str, float] = {}
    for prefix, pairs in others.items():
        auc, ap = link_prediction(score(edges), score(pairs))
        values |= {f"{prefix}auc": auc, f"{prefix}ap": ap}
        for name, baseline in baselines.items():
            auc, ap = link_prediction(baseline(edges), baseline(pairs))
            values |= {f"{prefix}auc_{name}": auc, f"{prefix}ap_{name}": ap}
    return values


def link_prediction(positive_scores: Tensor, negative_scores: Tensor) -> tuple[float, float]:
    """Return area under the ROC curve and average precision of scores; higher is likelier.

    Args:
        positive_scores: Scores of edges, shape ``(P,)``.
        negative_scores: Scores of non-edges, shape ``(Q,)``.

    Returns:
        AUC and AP, both between 0 and 1; nan where either class is empty. Chance gives an AUC of
        0.5 and an AP of P / (P + Q).
    """
    # scikit-learn takes almost a second to import, and generating graphs does not need it. Scores
    # may leave [0, 1]: torchmetrics would squash them by a sigmoid, which ties the large ones.
    from sklearn.metrics import average_precision_score, roc_auc_score

    if not (len(positive_scores) and len(negative_scores)):
        return math.nan, math.nan
    scores = torch.cat([positive_scores, negative_scores]).detach().double().cpu().numpy()
    is_edge = [1] * len(positive_scores) + [0] * len(negative_scores)
    return float(roc_auc_score(is_edge, scores)), float(average_precision_score(is_edge, scores))


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
