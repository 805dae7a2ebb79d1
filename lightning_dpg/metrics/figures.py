"""Figures of graphs: degree distributions and adjacency matrices."""

from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.metrics.functional import degrees

if TYPE_CHECKING:  # matplotlib takes a third of a second, and is needed only where figures are
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_SHOWN_NODES = 3000
_COLORS = {"synthetic": "#1f5fa8", "original": "#d9822b"}


def degree_figure(graphs: dict[str, Data]) -> "Figure":
    """Plot the number of nodes of at least each degree, on log axes.

    Args:
        graphs: Graphs by their names, ``synthetic`` and perhaps ``original``.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log")
    for name, graph in graphs.items():
        degree = degrees(graph)
        values, counts = np.unique(degree[degree > 0], return_counts=True)
        at_least = counts[::-1].cumsum()[::-1]
        label = name
        if isolated := int((degree == 0).sum()):
            label += f" (and {isolated:,} of degree 0)"
        axes.plot(values, at_least, ".-", color=_COLORS[name], label=label, lw=1, alpha=0.8)
    axes.set(xlabel="degree", ylabel="nodes of at least this degree")
    axes.grid(which="major", color="0.9")
    axes.legend(frameon=False)
    return figure


def adjacency_figure(graphs: dict[str, Data], seed: int) -> "Figure":
    """Draw adjacency matrices, nodes ordered by the communities of the synthetic graph.

    The original is shown in the same order. Of large graphs only the :data:`MAX_SHOWN_NODES` nodes
    of the highest degrees in the synthetic graph are shown.

    Args:
        graphs: Graphs by their names, ``synthetic`` and perhaps ``original``, of equal nodes.
        seed: Seed of the communities.
    """
    from matplotlib.figure import Figure

    order = community_order(graphs["synthetic"], seed)
    figure = Figure(figsize=(4.4 * len(graphs), 4.6), layout="constrained")
    for axes, (name, graph) in zip(
        np.atleast_1d(figure.subplots(1, len(graphs))), graphs.items(), strict=True
    ):
        _draw_matrix(axes, graph, order, _COLORS[name])
        axes.set_title(name)
    shown = f"{len(order):,} nodes"
    if len(order) < graphs["synthetic"].num_nodes:
        shown += " of highest degree"
    figure.supxlabel(f"{shown}, by community of the synthetic graph", fontsize="medium")
    return figure


def community_order(graph: Data, seed: int) -> NDArray[np.int64]:
    """Order the shown nodes: largest community first, in each the highest degree first."""
    degree = degrees(graph)
    kept = np.argsort(-degree, kind="stable")[:MAX_SHOWN_NODES]
    edges = undirected_edges(graph).numpy()
    edges = edges[np.isin(edges, kept).all(axis=1)]
    links = nx.Graph()
    links.add_nodes_from(kept.tolist())
    links.add_edges_from(edges.tolist())
    communities = nx.community.louvain_communities(links, seed=seed)
    # Break ties of sizes: sets have no order.
    ordered = sorted(communities, key=lambda nodes: (-len(nodes), min(nodes)))
    by_degree = [sorted(nodes, key=lambda node: (-degree[node], node)) for nodes in ordered]
    return np.array([node for nodes in by_degree for node in nodes], dtype=np.int64)


def _draw_matrix(axes: "Axes", graph: Data, order: NDArray[np.int64], color: str) -> None:
    place = np.full(graph.num_nodes, -1)
    place[order] = np.arange(len(order))
    rows, columns = place[graph.edge_index.cpu().numpy()]
    shown = (rows >= 0) & (columns >= 0)
    # A square fills its cell, but stays visible.
    points = max(290 / max(len(order), 1), 0.7)
    axes.plot(columns[shown], rows[shown], "s", color=color, markersize=points, markeredgewidth=0)
    limits = (-0.5, len(order) - 0.5)
    axes.set(xlim=limits, ylim=limits[::-1], aspect="equal", xticks=[], yticks=[])
