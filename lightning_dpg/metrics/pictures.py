"""What the pictures of graphs and of their tables show, of each kind of thing that there is.

All functions take graphs by name and compare them: ``real`` (private) has a dashed line.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import combinations
from typing import NamedTuple

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.graph.drawn_tables import rows_of, transfers_of
from lightning_dpg.graph.graph import component_labels, make_graph, undirected_edges
from lightning_dpg.graph.kind import CENTS, Kind
from lightning_dpg.graph.pair_space import space_of, without_directions
from lightning_dpg.graph.transfer_counts import (
    DAY,
    Counted,
    Window,
    count_days,
    count_gaps,
    count_hours,
    count_new_pairs,
    counted_transfers,
    gap_borders,
    node_sums,
)
from lightning_dpg.metrics.communities import LOUVAIN_SEED
from lightning_dpg.metrics.figures import (
    COLORS,
    INK,
    Axis,
    Bars,
    Chart,
    Draw,
    Grid,
    Network,
    Picture,
    Pictures,
    Series,
)
from lightning_dpg.metrics.functional import LocalClustering, degrees, measure_clustering
from lightning_dpg.metrics.paths import Distances, distances

REAL = "real"
OF_GRAPHS = ("adjacency", "degrees", "clustering", "distances")
OF_ROWS = ("columns", "pairs")
OF_TRANSFERS = ("amounts", "days", "hours", "gaps")
KINDS = ("graph", *OF_GRAPHS, *OF_ROWS, *OF_TRANSFERS)
MAX_SHOWN_NODES = 3000
NETWORK_LIMIT = 300
"""Largest graph that is drawn as nodes and links."""
MATRIX_SIZE = 320
"""Largest width in pixels of an adjacency matrix; a smaller graph has one pixel per node."""
_MAX_POINTS = 60
_MOST_PAIRS = 3
_LAYOUT_SEED = 0
DEGREES = (Axis("degree", True, low=1), Axis("nodes of at least this degree", True, low=1))
_MOST_DAYS = 62
"""Days of a window from which on weeks are shown."""
_GAPS = {1 / DAY: "1 s", 60 / DAY: "1 min", 1 / 24: "1 h", 1: "1 day", 30: "30 d"}
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WEEK = {24.0 * day: name for day, name in enumerate(_DAYS)}


class GraphTransfers(NamedTuple):
    """Transfers of one graph, as far as they have amounts and times.

    Attributes:
        pairs: Payer and payee, shape ``(T, 2)``.
        amounts: Units of the amounts, shape ``(T,)``; None without amounts.
        times: Seconds since the beginning of the window, shape ``(T,)``; None without times.
    """

    pairs: NDArray[np.int64]
    amounts: NDArray[np.int64] | None
    times: NDArray[np.int64] | None

    @classmethod
    def of(cls, pairs: Tensor, *others: Tensor | None) -> "GraphTransfers":
        """Take over the pairs, the amounts and the times of drawn transfers, or of data (private)."""
        return cls(pairs.numpy(), *(None if each is None else each.numpy() for each in others))


def series_of(points: Mapping[str, Sequence[Sequence[float]]]) -> list[Series]:
    """Give each graph its line and color, in the given order."""
    colors = iter(COLORS * (1 + len(points) // len(COLORS)))
    return [
        Series(name, line, "real", is_dashed=True)
        if name == REAL
        else Series(name, line, next(colors))
        for name, line in points.items()
    ]


def pictures_of(sample: Data, original: Data | None = None) -> Pictures:
    """Return the pictures of a synthetic graph and its tables, and of the original beside it.

    Args:
        sample: The synthetic graph, with its drawn rows and transfers.
        original: The real graph (private) on the same nodes; None leaves it out.
    """
    plain = without_directions(sample)
    graphs = {} if original is None else {REAL: without_directions(original)}
    graphs["synthetic"] = plain
    found = dict(graph_pictures(graphs, dict.fromkeys(graphs, plain)))
    if original is None and plain.num_nodes <= NETWORK_LIMIT:
        found = {"graph": lambda: [network(plain)], "degrees": found["degrees"]} | found
    if (rows := rows_of(sample)) is not None:
        found |= row_pictures(rows.domains, {"synthetic": rows.values})
    if (drawn := transfers_of(sample)) is not None:
        found |= transfer_pictures(
            {"synthetic": GraphTransfers.of(*drawn[:3])},
            space_of(sample).kind,
            int(plain.num_nodes),
            drawn.first_day,
        )
    return found


def graph_pictures(
    graphs: Mapping[str, Data],
    leaders: Mapping[str, Data],
    distances_of: Callable[[Data], Distances] = distances,
    clustering_of: Callable[[Data], LocalClustering] = lambda graph: measure_clustering(graph)[1],
) -> Pictures:
    """Return the pictures of graphs without directions.

    Args:
        graphs: Graphs by name.
        leaders: Graph whose communities order the nodes of the matrix of each graph.
        distances_of: Function that measures distances.
        clustering_of: Function that measures local clustering.
    """

    def degree() -> Sequence[Picture]:
        curves = {name: degree_curve(graph) for name, graph in graphs.items()}
        return [Chart("Degrees", *DEGREES, series_of(curves))]

    def clustering() -> Sequence[Picture]:
        curves = {
            name: clustering_curve(degrees(graph), clustering_of(graph))
            for name, graph in graphs.items()
        }
        axes = Axis("degree", is_log=True), Axis("mean local clustering")
        return [Chart("Clustering", *axes, series_of(curves))]

    def distance() -> list[Picture]:
        curves = {name: distance_curve(distances_of(graph)) for name, graph in graphs.items()}
        axes = Axis("distance in edges"), Axis("share of connected pairs")
        return [Chart("Distances", *axes, series_of(curves))]

    def adjacency() -> list[Picture]:
        distinct = {id(each): each for each in leaders.values()}
        orders = {key: community_order(each, LOUVAIN_SEED) for key, each in distinct.items()}
        return [matrix(name, each, orders[id(leaders[name])]) for name, each in graphs.items()]

    found = (adjacency, degree, clustering, distance)
    return dict(zip(OF_GRAPHS, found, strict=True))


def matrix(name: str, graph: Data, order: NDArray[np.int64]) -> Grid:
    """Return the adjacency matrix of a graph.

    Args:
        name: Name of the graph.
        graph: The graph.
        order: Nodes to show; those that the graph lacks are left out.
    """
    order = order[order < graph.num_nodes]
    of_all = "" if len(order) == graph.num_nodes else f" of {graph.num_nodes:,}, of highest degree"
    label = f"{len(order):,} nodes{of_all}"
    return Grid(f"Adjacency, {name}", label, adjacency_pixels(graph, order, MATRIX_SIZE))


def network(graph: Data) -> Network:
    """Return a picture of the nodes and links of the largest component."""
    # The others would be far away, and leave little room.
    labels = component_labels(graph)
    edges = undirected_edges(graph).numpy()
    largest = np.bincount(labels).argmax()
    linked, links = np.unique(edges[labels[edges[:, 0]] == largest], return_inverse=True)
    links = links.reshape(-1, 2)
    shown = f"{len(linked):,} of {graph.num_nodes:,} nodes, in the largest component"
    return Network("Graph", shown, layout(make_graph(torch.from_numpy(links), len(linked))), links)


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


def row_pictures(
    domains: Mapping[str, Sequence[str]], rows: Mapping[str, NDArray[np.int64]]
) -> dict[str, Draw]:
    """Return the pictures of columns of nodes: each by itself, and pairs of the strongest associations.

    Args:
        domains: Values of each column (public).
        rows: Places of the values of each graph, shape ``(N, J)``, by its name.
    """
    names, first = list(domains), next(iter(rows.values()))
    # No columns of two sides:
    tables = {pair: _table(first, pair, domains) for pair in combinations(range(len(names)), 2)}
    strengths = {pair: -_dependence(table) for pair, table in tables.items() if table.any()}

    def columns() -> Sequence[Picture]:
        return [
            Bars(name, "share of nodes", domains[name], series_of(_shares(rows, place, domains)))
            for place, name in enumerate(names)
        ]

    def pairs() -> Sequence[Picture]:
        return [
            Grid(
                f"{names[one]} by {names[other]}, {name}",
                names[other],
                inked(_table(values, (one, other), domains)),
                domains[names[one]],
                domains[names[other]],
            )
            for one, other in sorted(strengths, key=strengths.__getitem__)[:_MOST_PAIRS]
            for name, values in rows.items()
        ]

    return {"columns": columns} | ({"pairs": pairs} if strengths else {})


def _shares(
    rows: Mapping[str, NDArray[np.int64]], place: int, domains: Mapping[str, Sequence[str]]
) -> dict[str, list[tuple[float, float]]]:
    """Return the share of nodes of each value of a column, by graph."""
    size = len([*domains.values()][place])
    return {
        name: [*enumerate(np.bincount(held, minlength=size) / max(len(held), 1))]
        for name, values in rows.items()
        for held in [values[values[:, place] >= 0, place]]
    }


def _table(
    rows: NDArray[np.int64], pair: tuple[int, int], domains: Mapping[str, Sequence[str]]
) -> NDArray[np.float64]:
    """Count nodes by the values of two columns, where they have both."""
    sizes = [len(values) for values in domains.values()]
    counts = np.zeros([sizes[place] for place in pair])
    np.add.at(counts, tuple(rows[:, pair][(rows[:, pair] >= 0).all(axis=1)].T), 1)
    return counts


def _dependence(counts: NDArray[np.float64]) -> float:
    """Return the total variation distance of a table from that of independent columns."""
    shares = counts / max(counts.sum(), 1)
    return float(np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum() / 2)


def transfer_pictures(
    sent: Mapping[str, GraphTransfers], kind: Kind, num_nodes: int, first_day: datetime | None
) -> dict[str, Draw]:
    """Return the pictures of transfers: amounts, days, hours and gaps, as far as they have these.

    Args:
        sent: Transfers of each graph by its name.
        kind: Kind of the graphs.
        num_nodes: Number of nodes of each graph.
        first_day: First day of the window of times; None without times.
    """
    found: dict[str, Draw] = {}
    if all(each.amounts is not None for each in sent.values()):
        found["amounts"] = partial(_amounts, sent, num_nodes)
    if first_day is None or any(each.times is None for each in sent.values()):
        return found
    counted = {
        name: counted_transfers(each.pairs, None, each.times, kind=kind, most=None)
        for name, each in sent.items()
    }
    latest = (int(each.times.max(initial=0)) for each in counted.values() if each.times is not None)
    window = Window(1 + max(latest) // DAY, first_day.weekday())
    step, unit = (1, "day") if window.days <= _MOST_DAYS else (7, "week")
    since = Axis(f"{unit} from {first_day:%Y-%m-%d} on")

    def curves(
        title: str,
        x: Axis,
        y: str,
        count: Callable[[Counted, Window], NDArray[np.int64]],
        step: int,
    ) -> Chart:
        lines = {}
        for name, each in counted.items():
            counts = count(each, window)
            sums = np.add.reduceat(counts, np.arange(0, len(counts), step))
            # A last part of a week would look like a fall.
            lines[name] = [*enumerate(sums[: max(len(counts) // step, 1)].tolist())]
        return Chart(title, x, Axis(y), series_of(lines))

    def days() -> list[Picture]:
        return [
            curves(f"Transfers by {unit}", since, "transfers", count_days, step),
            curves(f"New pairs by {unit}", since, "first transfers", count_new_pairs, step),
        ]

    def hours() -> list[Picture]:
        week = Axis("hour of the week", ticks=_WEEK)
        return [curves("Transfers by hour", week, "transfers", count_hours, 1)]

    def gaps() -> list[Picture]:
        borders = np.maximum(gap_borders(window), 0.5) / DAY  # 0 has no place there
        lines = {
            name: _gap_curve(borders, count_gaps(each, window).sum(axis=0))
            for name, each in counted.items()
        }
        x = Axis("time to the next one of the pair", is_log=True, ticks=_GAPS)
        return [Chart("Gaps", x, Axis("share of gaps"), series_of(lines))]

    return found | {"days": days, "hours": hours, "gaps": gaps}


def _gap_curve(
    borders: NDArray[np.float64], counts: NDArray[np.int64]
) -> list[tuple[float, float]]:
    """Return the smallest gap of each bin that has any, in days, with its share of the gaps."""
    held = np.flatnonzero(counts)
    return [*zip(borders[held].tolist(), (counts[held] / counts.sum()).tolist(), strict=True)]


def _amounts(sent: Mapping[str, GraphTransfers], num_nodes: int) -> list[Picture]:
    amounts = {name: each.amounts for name, each in sent.items() if each.amounts is not None}
    sums = {name: node_sums(sent[name].pairs, each, num_nodes) for name, each in amounts.items()}
    return [
        Chart(
            title,
            Axis(x, is_log=True),
            Axis(f"{y} of at least this", is_log=True, low=1),
            series_of({name: _at_least(each / CENTS) for name, each in values.items()}),
        )
        for title, x, y, values in (
            ("Amounts, in the unit of the data", "amount", "transfers", amounts),
            ("Amounts of nodes, in the unit of the data", "sum", "nodes", sums),
        )
    ]


def distance_curve(measured: Distances) -> list[tuple[float, float]]:
    """Return distances from 1 on, with their share of the connected pairs of nodes."""
    counts = measured.counts[1:]
    total = counts.sum()
    return [(distance, count / total) for distance, count in enumerate(counts.tolist(), 1)]


def clustering_curve(
    degree: NDArray[np.int64], measured: LocalClustering
) -> list[tuple[float, float]]:
    """Return the mean local clustering of nodes in logarithmic bins of degrees from 2 on.

    Where local clustering was sampled, it is the mean over the drawn nodes.

    Args:
        degree: Degree of each node, shape ``(N,)``.
        measured: Local clustering.
    """
    nodes, shares = measured.nodes, measured.shares
    if not len(nodes):
        return []
    degree = degree[nodes]
    ends = np.unique(np.geomspace(2, degree.max() + 1, 16).round().astype(int))
    place = np.digitize(degree, ends)
    sizes, sums, totals = (np.bincount(place, each) for each in (None, shares, degree))
    return [
        (total / size, clustering / size)
        for total, clustering, size in zip(totals, sums, sizes, strict=True)
        if size
    ]


def degree_curve(graph: Data) -> list[tuple[float, float]]:
    """Return degrees above 0 with the number of nodes of at least this degree, thinned for a plot."""
    return _at_least(degrees(graph))


def _at_least(values: NDArray[np.int64] | NDArray[np.float64]) -> list[tuple[float, float]]:
    """Return values above 0 with the number of those that are at least as large, thinned for a plot."""
    found, counts = np.unique(values[values > 0], return_counts=True)
    at_least = counts[::-1].cumsum()[::-1]
    if len(found) > _MAX_POINTS:
        places = np.geomspace(1, len(found), _MAX_POINTS).round().astype(int) - 1
        chosen = np.unique(places)
        found, at_least = found[chosen], at_least[chosen]
    return [*zip(found.tolist(), at_least.tolist(), strict=True)]


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


def adjacency_pixels(graph: Data, order: NDArray[np.int64], largest: int) -> NDArray[np.uint8]:
    """Render the adjacency matrix as transparent pixels, darker with more edges per pixel.

    Args:
        graph: Graph of N nodes.
        order: Nodes to show, from left to right and from top to bottom.
        largest: Maximal width in pixels; a smaller graph has one pixel per node.

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
    return inked(counts, 140)


def inked(counts: NDArray[np.float64], faintest: int = 0) -> NDArray[np.uint8]:
    """Render counts as transparent pixels, darker with more: red, green, blue and opacity.

    Args:
        counts: Counts of shape ``(R, C)``.
        faintest: Opacity of the least count above 0, which must be visible.
    """
    # The fullest pixels must not make the others fade.
    full = max(np.quantile(counts[counts > 0], 0.95) if counts.any() else 1.0, 1.0)
    pixels = np.empty((*counts.shape, 4), dtype=np.uint8)
    pixels[..., :3] = list(bytes.fromhex(INK.removeprefix("#")))
    opacity = faintest + (255 - faintest) * np.minimum(counts / full, 1)
    pixels[..., 3] = np.where(counts > 0, opacity, 0)
    return pixels
