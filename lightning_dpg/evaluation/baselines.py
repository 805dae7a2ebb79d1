"""Baselines of an evaluation: fits of methods that learn nothing but sizes or degrees.

They read the private graph for a measurement, as the fits of ``compare`` do. Nothing of them is a
release, is written or is booked, and the evaluation is not private with or without them.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from pytorch_lightning.utilities.seed import isolate_rng
from torch_geometric.data import Data

from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.errors import Refusal
from lightning_dpg.evaluation.purposes import LINK_AUC, PURPOSES, Purposes, judge
from lightning_dpg.graph.pair_space import space_of
from lightning_dpg.methods import ChungLu, ErdosRenyi
from lightning_dpg.metrics.alignment import add_nodes
from lightning_dpg.metrics.glossary import glossary
from lightning_dpg.metrics.link_prediction import link_prediction
from lightning_dpg.metrics.queries import Answer
from lightning_dpg.release.release import Release
from lightning_dpg.run.fit import fit_method

_METHODS = (ErdosRenyi, ChungLu)
BASELINES = tuple(method.__name__ for method in _METHODS)
QUICK = 20_000
"""Edges of a baseline up to which networkx finds communities; a random graph of more takes minutes."""
_FITS = 3
_FEW_EDGES = 2_000
"""Edges up to which noise may decide on a comparison, and each baseline is fitted several times."""
_MOST_PAIRS = 10_000
_SEED = 0
_GROUPS = {group for groups in PURPOSES.values() for group in groups}

Compare = Callable[[Data], Mapping[str, Answer]]


class Baselines:
    """Baselines on one real graph, fitted once for each epsilon.

    Args:
        real: Real graph (private).
        compare: Function that compares a drawn graph with the real one.
    """

    def __init__(self, real: Data, compare: Compare) -> None:
        self.real, self._compare = real, compare
        self.num_fits = _FITS if len(space_of(real).edges(real)) <= _FEW_EDGES else 1
        self._fitted: dict[tuple[float, tuple[str, ...]], dict[str, dict[str, list[float]]]] = {}

    def judge(
        self,
        epsilon: float,
        method: str,
        release: Release | None,
        graph: Data,
        answers: Mapping[str, Answer],
    ) -> Purposes:
        """Judge a synthetic graph.

        Args:
            epsilon: Epsilon of its release, for one edge.
            method: Method of its release. A baseline is not compared with itself: it would be as
                near by definition.
            release: The release, opened, if its pairs of nodes are to be scored.
            graph: The graph, which names the public nodes.
            answers: Its answers to the queries.
        """
        real = self._on_nodes_of(graph)
        key = (epsilon, tuple(real.node_names))
        if key not in self._fitted:
            self._fitted[key] = self._fit(real, epsilon)
        scores = _scores(answers) | {LINK_AUC.name: _link_auc(release, real)}
        own = method if method in BASELINES else ""
        rivals = {name: found for name, found in self._fitted[key].items() if name != own}
        verdicts = judge(scores, rivals)
        kind = space_of(self.real).kind
        fitted = self._fitted[key]
        return Purposes(epsilon, real.num_nodes, kind, self.num_fits, own, verdicts, fitted)

    def _on_nodes_of(self, graph: Data) -> Data:
        """Add the public nodes of a release; the sides of those of a bipartite graph may differ."""
        is_bipartite = space_of(self.real).kind == "bipartite"
        if is_bipartite or {*self.real.node_names}.isdisjoint(graph.node_names):
            return self.real
        return add_nodes(self.real, graph.node_names)

    def _fit(self, real: Data, epsilon: float) -> dict[str, dict[str, list[float]]]:
        """Return the score of each fit, by baseline and query."""
        found: dict[str, dict[str, list[float]]] = {}
        with isolate_rng():
            for method_class in _METHODS:
                scores = found.setdefault(method_class.__name__, {})
                for seed in range(self.num_fits):
                    method = method_class()
                    data = EdgeListDataModule(real, kind=space_of(real).kind)
                    fit_method(method, data, epsilon, 0.0)
                    release = Release(method, {})
                    answers = self._compare(release.sample(seed))
                    values = _scores(answers) | {LINK_AUC.name: _link_auc(release, real)}
                    for query, score in values.items():
                        scores.setdefault(query, []).append(score)
        return found


def epsilon_of(statement: Mapping[str, Any]) -> float | None:
    """Return the epsilon for one edge, at which baselines can be fitted; None if there is none.

    Args:
        statement: Privacy statement of a release; empty without one.
    """
    epsilon = statement.get("epsilon")
    if statement.get("relation") != "edge" or not isinstance(epsilon, int | float):
        return None
    return float(epsilon) if 0 < epsilon < math.inf else None


def _scores(answers: Mapping[str, Answer]) -> dict[str, float]:
    """Return the scores of the queries that speak for a purpose."""
    return {
        name: answer.score
        for name, answer in answers.items()
        if glossary("graphs")[name].group in _GROUPS
    }


def _link_auc(release: Release | None, real: Data) -> float:
    """Score some edges of the real graph and as many other pairs; nan where there are no scores."""
    if release is None:
        return math.nan
    space, generator = space_of(real), torch.Generator().manual_seed(_SEED)
    edges = space.edges(real)
    count = min(len(edges), _MOST_PAIRS, space.num_pairs - len(edges))
    chosen = edges[torch.randperm(len(edges), generator=generator)[:count]]
    others = space.draw(edges, count, generator)
    names = np.array(real.node_names, dtype=str)
    try:
        scores = [release.edge_score(names[pairs.numpy()]) for pairs in (chosen, others)]
    except Refusal:  # no scores, or other nodes
        return math.nan
    return link_prediction(*scores)[0]
