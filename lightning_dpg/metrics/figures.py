"""Figures of graphs: degree distributions and adjacency matrices."""

import io
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.metrics.functional import degrees

if TYPE_CHECKING:  # matplotlib takes a third of a second, and is needed only where figures are
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_SHOWN_NODES = 3000
MAX_DEGREES_SHOWN = 60
NODE_LINK_LIMIT = 300
"""Largest graph that is drawn as nodes and links."""
INK = "#3478be"
"""Seen on white and on black."""
_MATRIX_SIZE = 600
# Left, bottom, width and height: a layout that matplotlib computes takes most of the time of a figure.
_PLACE = (0.19, 0.13, 0.78, 0.84)
_LAYOUT_SEED = 0
_COLORS = {"synthetic": "#1f5fa8", "original": "#d9822b"}


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure that a notebook shows, whatever the user has set for matplotlib.

    Args:
        width: Width in inches.
        height: Height in inches.
    """
    from matplotlib.figure import Figure

    class Shown(Figure):
        """A figure that shows itself: without pyplot, notebooks do not."""

        def _repr_png_(self) -> bytes:
            content = io.BytesIO()
            self.savefig(content, format="png")
            return content.getvalue()

    return Shown(figsize=(width, height), layout="constrained")


def degree_figure(graphs: dict[str, Data]) -> "Figure":
    """Plot the number of nodes of at least each degree, on log axes.

    Args:
        graphs: Graphs by their names, ``synthetic`` and perhaps ``original``.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4))
    _plot_degrees(figure.add_axes(_PLACE), graphs)
    return figure


def _plot_degrees(axes: "Axes", graphs: dict[str, Data]) -> None:
    from matplotlib.ticker import LogFormatter, StrMethodFormatter

    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):  # not powers, for which matplotlib loads a parser
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.set_minor_formatter(LogFormatter())
    for name, graph in graphs.items():
        label = name
        if isolated := int((degrees(graph) == 0).sum()):
            label += f" (and {isolated:,} of degree 0)"
        curve = np.array(degree_curve(graph)).reshape(-1, 2)
        axes.plot(*curve.T, ".-", color=_COLORS[name], label=label, lw=1, alpha=0.8)
    axes.set(xlabel="degree", ylabel="nodes of at least this degree")
    axes.grid(which="major", color="0.9")
    axes.legend(frameon=False)


def synthetic_figure(graph: Data, title: str, seed: int) -> "Figure":
    """Draw a synthetic graph beside its degrees: nodes and links, or of a large one the matrix.

    Nodes without an edge are not drawn as nodes and links. The matrix has the nodes of highest degree.

    Args:
        graph: The graph, without directions.
        title: Title of the figure.
        seed: Seed of the communities, by which the nodes of a large graph are ordered.
    """
    figure = new_figure(9.2, 4.4)
    figure.suptitle(title)
    left, right = figure.subplots(1, 2)
    if graph.num_nodes <= NODE_LINK_LIMIT:
        # Nodes without an edge would be far away, and leave little room for the others.
        linked, links = np.unique(undirected_edges(graph).numpy(), return_inverse=True)
        places = layout(make_graph(torch.from_numpy(links), len(linked)))
        gaps = np.full((len(links), 1, 2), np.nan)
        lines = np.concatenate([places[links], gaps], axis=1).reshape(-1, 2)
        left.plot(*lines.T, color=INK, lw=0.6, alpha=0.35)
        left.plot(*places.T, "o", color=INK, ms=4, mec="white", mew=0.5)
        shown = f"{len(linked):,} of {graph.num_nodes:,} nodes with an edge"
    else:
        order = community_order(graph, seed)
        left.imshow(adjacency_pixels(graph, order, _MATRIX_SIZE), interpolation="nearest")
        shown = f"{len(order):,} of {graph.num_nodes:,} nodes, by community"
    left.set(xticks=[], yticks=[], xlabel=f"{shown}\n{graph.num_edges // 2:,} edges")
    left.spines[:].set_visible(False)
    _plot_degrees(right, {"synthetic": graph})
    return figure


def layout(graph: Data) -> NDArray[np.float64]:
    """Place nodes in the unit square by springs along the edges, shape ``(N, 2)``."""
    if not graph.num_nodes:
        return np.zeros((0, 2))
    linked = nx.empty_graph(graph.num_nodes)
    linked.add_edges_from(undirected_edges(graph).tolist())
    positions = nx.spring_layout(linked, seed=_LAYOUT_SEED, iterations=80)
    places = np.array([positions[node] for node in range(graph.num_nodes)])
    spread = np.ptp(places, axis=0)
    return (places - places.min(axis=0)) / np.where(spread > 0, spread, 1)


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
    figure = Figure(figsize=(4.4 * len(graphs), 4.6))
    figure.subplots_adjust(left=0.02, right=0.98, bottom=0.05, top=0.95, wspace=0.04)
    for axes, (name, graph) in zip(
        np.atleast_1d(figure.subplots(1, len(graphs))), graphs.items(), strict=True
    ):
        axes.imshow(
            adjacency_pixels(graph, order, _MATRIX_SIZE, _COLORS[name]), interpolation="nearest"
        )
        axes.set(title=name, xticks=[], yticks=[])
    shown = f"{len(order):,} nodes"
    if len(order) < graphs["synthetic"].num_nodes:
        shown += " of highest degree"
    figure.supxlabel(f"{shown}, by community of the synthetic graph", fontsize="medium")
    return figure


def community_order(graph: Data, seed: int) -> NDArray[np.int64]:
    """Order the shown nodes: largest community first, in each the highest degree first."""
    degree = degrees(graph)
    shown = np.argsort(-degree, kind="stable")[:MAX_SHOWN_NODES]
    edges = undirected_edges(graph).numpy()
    edges = edges[np.isin(edges, shown).all(axis=1)]
    links = nx.Graph()
    links.add_nodes_from(shown.tolist())
    links.add_edges_from(edges.tolist())
    communities = nx.community.louvain_communities(links, seed=seed)
    # Break ties of sizes: sets have no order.
    ordered = sorted(communities, key=lambda nodes: (-len(nodes), min(nodes)))
    by_degree = [sorted(nodes, key=lambda node: (-degree[node], node)) for nodes in ordered]
    return np.array([node for nodes in by_degree for node in nodes], dtype=np.int64)


def adjacency_pixels(
    graph: Data, order: NDArray[np.int64], largest: int, ink: str = INK
) -> NDArray[np.uint8]:
    """Render the adjacency matrix as transparent pixels, darker with more edges per pixel.

    Args:
        graph: Graph of N nodes.
        order: Nodes to show, from left to right and from top to bottom.
        largest: Maximal width in pixels; a smaller graph has one pixel per node.
        ink: Color of an edge.

    Returns:
        Red, green, blue and opacity, shape ``(S, S, 4)``.
    """
    size = min(largest, len(order))
    place = np.full(graph.num_nodes, -1)
    place[order] = np.arange(len(order)) * size // len(order)
    rows, columns = place[graph.edge_index.cpu().numpy()]
    shown = (rows >= 0) & (columns >= 0)
    counts = np.zeros((size, size))
    np.add.at(counts, (rows[shown], columns[shown]), 1)
    # A single edge must be visible, and the fullest pixels must not make the others fade.
    full = max(np.quantile(counts[counts > 0], 0.95) if shown.any() else 1.0, 1.0)
    pixels = np.empty((size, size, 4), dtype=np.uint8)
    pixels[..., :3] = list(bytes.fromhex(ink.removeprefix("#")))
    pixels[..., 3] = np.where(counts > 0, 105 + 150 * np.minimum(counts / full, 1), 0)
    return pixels


def degree_curve(graph: Data) -> list[list[int]]:
    """Degrees above 0 with the number of nodes of at least this degree, thinned for a plot."""
    degree = degrees(graph)
    values, counts = np.unique(degree[degree > 0], return_counts=True)
    at_least = counts[::-1].cumsum()[::-1]
    if len(values) > MAX_DEGREES_SHOWN:
        places = np.geomspace(1, len(values), MAX_DEGREES_SHOWN).round().astype(int) - 1
        chosen = np.unique(places)
        values, at_least = values[chosen], at_least[chosen]
    return np.stack([values, at_least], axis=1).tolist() if len(values) else []
