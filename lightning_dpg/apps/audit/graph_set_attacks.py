"""Prediction of hidden links from synthetic sets of graphs.

Yang et al., "Secure Deep Graph Generation with Link Differential Privacy" (DPGGAN), 2021, figure 3:
a method learns graphs with 80 % of their links and draws graphs. The attacker identifies the drawn
nodes by their degrees and predicts the other links.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import diags_array, eye_array
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.apps.audit.link_stealing import (
    CONFIDENCE,
    Estimate,
    Published,
    aligned_by_degree,
    proportion,
    roc,
    share_right,
    with_degrees_alone,
)
from lightning_dpg.datamodules.graph_set import split_graphs
from lightning_dpg.datamodules.tu import write_tu_folder
from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.graph.graph import adjacency, make_graph, undirected_edges
from lightning_dpg.graph.held_out import uniform_non_edges
from lightning_dpg.graph.pair_numbers import num_pairs
from lightning_dpg.metrics.functional import degrees
from lightning_dpg.run.fit import fit_settings, on_data

HIDDEN_SHARE = 0.2
SEED = 0
"""Public: seed of all choices."""


class HiddenLinks(NamedTuple):
    """A set of G graphs without some links (private)."""

    graphs: list[Data]
    """The graphs with the other links, and their labels."""
    links: list[Tensor]
    """Of each graph links that were taken out, shape ``(P_g, 2)``."""
    others: list[Tensor]
    """Of each graph as many pairs that were no links, shape ``(P_g, 2)``."""


def hide_links(graphs: Sequence[Data]) -> HiddenLinks:
    """Remove a share of the links, rounded, from each graph.

    At most as many links are hidden as the graph has pairs without a link: none in a clique.

    Args:
        graphs: Graphs of a set.
    """
    generator = torch.Generator().manual_seed(SEED)
    rests, links, others = [], [], []
    for graph in graphs:
        edges, size = undirected_edges(graph), int(graph.num_nodes)
        edges = edges[torch.randperm(len(edges), generator=generator)]
        hidden = round(HIDDEN_SHARE * len(edges))
        count = min(hidden, num_pairs(size) - len(edges))
        rest = make_graph(edges[hidden:], size)
        rest.y = graph.y
        rests.append(rest)
        links.append(edges[:count])
        others.append(uniform_non_edges(graph, count, generator))
    return HiddenLinks(rests, links, others)


def identified_by_degrees(graphs: Sequence[Data], reference: Sequence[Data]) -> list[Data]:
    """Match the nodes of each graph to the nodes of another graph by the rank of their degrees.

    Args:
        graphs: Synthetic graphs that replace the others, in the same order.
        reference: Graphs whose degrees are known.
    """
    ties = torch.Generator().manual_seed(SEED)
    pairs = zip(graphs, reference, strict=True)
    return [aligned_by_degree(graph, original, ties) for graph, original in pairs]


def predict_hidden_links(sets: Sequence[Sequence[Data]], hidden: HiddenLinks) -> Estimate:
    """Measure the accuracy of :func:`walk_scores` on pairs of which half are links in each graph.

    Args:
        sets: Sets of graphs on the nodes of ``hidden``; the mean scores over the sets count.
        hidden: Pairs to classify.

    Raises:
        Refusal: If no graph has a hidden link and a pair without one.
    """
    right, total = 0.0, 0
    for k, (links, others) in enumerate(zip(hidden.links, hidden.others, strict=True)):
        if not len(links):
            continue
        pairs = torch.cat([links, others])
        scores = torch.zeros(len(pairs), dtype=torch.double)
        for graphs in sets:
            scores += walk_scores(graphs[k], pairs)
        right += len(pairs) * share_right(*roc(scores[: len(links)], scores[len(links) :]))
        total += len(pairs)
    if not total:
        raise Refusal("no graph has both a hidden link and a pair without a link")
    return proportion(right, total)


def walk_scores(graph: Data, pairs: Tensor) -> Tensor:
    r"""Score pairs of nodes by lazy walks of four steps.

    The scores are entries of :math:`((I + S) / 2)^4`. :math:`S` is the adjacency matrix divided by
    the square roots of the degrees of both ends, each increased by the mean degree. The matrix has
    no negative eigenvalue, as in a spectral embedding that cuts them off. It needs no eigenvectors,
    whose iteration can fail on small sparse graphs.

    Args:
        graph: Graph of N nodes.
        pairs: Pairs of nodes, shape ``(P, 2)``.

    Returns:
        Scores of shape ``(P,)``.
    """
    degree = degrees(graph)
    scale = diags_array(1 / np.sqrt(np.maximum(degree + degree.mean(), 1)))
    half = (eye_array(graph.num_nodes) + scale @ adjacency(graph) @ scale) / 2
    rows = (half @ half).tocsr()
    first, second = pairs.numpy().T
    return torch.from_numpy(np.asarray(rows[first].multiply(rows[second]).sum(axis=1)).ravel())


NUM_SETS = 10


def attack_set(real: Data, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Run the link prediction of Yang et al., 2021, figure 3, and return plain values.

    Args:
        real: Union of the graphs, with their ``sizes`` and labels ``y``.
        settings: Configuration to fit with, see ``attacks.settings_for_parts``.
    """
    graphs = split_graphs(real, real.sizes.tolist())
    hidden = hide_links(graphs)
    if not sum(map(len, hidden.links)):
        raise CommandError("no graph of the set has links to hide and pairs without one")
    with TemporaryDirectory() as folder:
        write_tu_folder(hidden.graphs, Path(folder))
        method = fit_settings(on_data(settings, folder)).method
    with torch.no_grad():
        seeds = [torch.Generator().manual_seed(seed) for seed in range(NUM_SETS)]
        samples = [method.eval().sample_set(seed) for seed in seeds]
    by_chance = list(with_degrees_alone(Published(hidden.graphs)).graphs)
    sets: dict[str, list[list[Data]]] = {
        "real": [hidden.graphs],
        "generated": [identified_by_degrees(each, hidden.graphs) for each in samples],
        "degrees_alone": [by_chance],
    }
    return {
        "graphs": len(graphs),
        "edges": real.num_edges // 2,
        "hidden": sum(map(len, hidden.links)),
        "sets": NUM_SETS,
        "confidence": CONFIDENCE,
        "link_prediction": {
            name: predict_hidden_links(graph_sets, hidden)._asdict()
            for name, graph_sets in sets.items()
        },
    }
