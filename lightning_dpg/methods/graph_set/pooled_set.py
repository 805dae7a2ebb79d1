"""Graphs of a set with private numbers of edges and pooled private shapes."""

from collections.abc import Callable, Sequence
from random import Random
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lightning_dpg.graph.counts import Floats
from lightning_dpg.graph.swaps import SwapGraph
from lightning_dpg.methods.constraints import Constraints, at_least
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer, OneShotSet
from lightning_dpg.methods.graph_set.pooled_shapes import (
    UNIT,
    GraphClasses,
    Ints,
    SetStatistics,
    closed_shares,
    estimated_counts,
    expected_degrees,
    place_weights,
    pooled_components,
    pooled_degrees,
    pooled_triangles,
    shapes,
    whole_degrees,
)
from lightning_dpg.methods.planning import check_shares
from lightning_dpg.nn.resized_buffers import resize_on_loading
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure
from lightning_dpg.privacy.sensitivity.subgraph_counts import (
    pooled_component_sensitivity,
    pooled_degree_sensitivity,
    pooled_triangle_sensitivity,
)


def draw_edges(
    size: int,
    num_edges: int,
    shape: Floats,
    closed_share: float,
    component_share: float,
    coins: Random,
) -> list[list[int]]:
    """Draw a graph of given degrees, largest component and triangles.

    Args:
        size: Number of nodes.
        num_edges: Number of edges, at most all pairs.
        shape: Degrees as shares of the possible neighbors, by bin, shape ``(B,)``.
        closed_share: Share of the wedges that triangles close.
        component_share: Share of the nodes that are in the largest component.
        coins: Public source of the draw.

    Returns:
        Pairs of nodes, ``num_edges`` of them.
    """
    degrees = expected_degrees(size, num_edges, shape)
    names = list(range(size))
    coins.shuffle(names)
    edges: list[list[int]] = []
    start = 0
    for part_size, part_edges in _parts(size, num_edges, degrees, component_share):
        stop = start + part_size
        for pair in _draw_part(degrees[start:stop], part_edges, start == 0, closed_share, coins):
            edges.append([names[start + node] for node in pair])
        start = stop
    return edges


def num_wedges(degrees: Ints) -> int:
    """Number of pairs of edges that share a node."""
    return int((degrees * (degrees - 1) // 2).sum())


def _draw_part(
    expected: Floats, num_edges: int, connected: bool, closed_share: float, coins: Random
) -> list[tuple[int, int]]:
    """Draw from a random graph, or from one with more triangles where swaps fall short."""
    if not num_edges:
        return []
    degrees = whole_degrees(expected, num_edges, int(connected))
    target = closed_share * num_wedges(degrees) / 3
    attempts = []
    for shuffled in (True, False):
        graph = SwapGraph(degrees.tolist(), num_edges, coins)
        if shuffled:
            graph.shuffle()
        if connected:
            graph.connect()
        lacking = graph.reach_triangles(target, connected=connected)
        if lacking <= 0.5:
            return graph.edges
        attempts.append((lacking, graph.edges))
    return min(attempts)[1]


def _parts(
    size: int, num_edges: int, degrees: Floats, component_share: float
) -> list[tuple[int, int]]:
    """Nodes and edges of the largest component, which has the largest degrees, and of the rest.

    The rest is one part or several, none larger than the first one.
    """
    largest = min(max(round(component_share * size), 1), num_edges + 1, size)
    most_inside = largest * (largest - 1) // 2
    sizes = [min(largest, size - start) for start in range(largest, size, largest)]
    rest = []
    for number, part_size in enumerate(sizes):
        start = largest * (number + 1)
        own_edges = round(float(degrees[start : start + part_size].sum()) / 2)
        rest.append(min(own_edges, part_size * (part_size - 1) // 2))
    inside = num_edges - sum(rest)
    if not largest - 1 <= inside <= most_inside:
        return _spread(size, num_edges, largest)
    return [(largest, inside), *zip(sizes, rest, strict=True)]


def _spread(size: int, num_edges: int, largest: int) -> list[tuple[int, int]]:
    """The largest component with all edges, and nodes without any; larger where they do not fit."""
    while largest * (largest - 1) // 2 < num_edges:
        largest += 1
    return [(largest, num_edges), (size - largest, 0)]


_SPREADS = 4.0  # scales of the noise within which all graphs are taken for connected
# Key, name and proof of the pooled reads, by the setting of their share.
_POOLED: dict[str, tuple[str, str, Callable[[int, int], int]]] = {
    "degree_share": (
        "pooled_degrees",
        "ordered degrees, pooled",
        pooled_degree_sensitivity,
    ),
    "triangle_share": ("pooled_triangles", "triangles, pooled", pooled_triangle_sensitivity),
    "component_share": (
        "pooled_components",
        "largest components, pooled",
        pooled_component_sensitivity,
    ),
}
POOLED_SETTINGS: Constraints = {"graphs_per_class": at_least(1), "bins": at_least(2)}
_TABLES = ("size_cuts", "density_cuts", "shape", "closed_share")


class PooledStatistics(nn.Module):
    """Released statistics of a set of graphs; all buffers are functions of released values.

    Args:
        degree_share: Share of the budget for the ordered degrees.
        triangle_share: Share of the budget for the triangles.
        component_share: Share of the budget for the components; the numbers of edges get the rest.
        graphs_per_class: Number of graphs that a class has in the mean (public).
        bins: Number of bins of the ordered degrees.

    Raises:
        Refusal: If a share is out of range.
    """

    def __init__(
        self,
        degree_share: float,
        triangle_share: float,
        component_share: float,
        graphs_per_class: int,
        bins: int,
    ) -> None:
        super().__init__()
        self.shares = {
            "degree_share": degree_share,
            "triangle_share": triangle_share,
            "component_share": component_share,
        }
        check_shares(**self.shares)
        self.graphs_per_class, self.bins = graphs_per_class, bins
        self.size_cuts: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))
        self.density_cuts: Tensor = nn.Buffer(torch.empty(0, 0, dtype=torch.double))
        self.shape: Tensor = nn.Buffer(torch.empty(0, bins, dtype=torch.double))
        self.closed_share: Tensor = nn.Buffer(torch.empty(0, dtype=torch.double))
        self.largest_share: Tensor = nn.Buffer(torch.tensor(1.0, dtype=torch.double))
        resize_on_loading(self, *_TABLES)

    def plan(self, method: GraphSetSynthesizer, budget: Budget) -> list[LedgerEntry]:
        """Plan the four reads of a method."""
        parts = budget.split(edge_share=1 - sum(self.shares.values()), **self.shares)
        return [
            method.num_edges_entry(parts["edge_share"].epsilon),
            *(
                LedgerEntry.proved(
                    key, name, Pure(parts[share].epsilon), proof, method.max_occurrences, UNIT
                )
                for share, (key, name, proof) in _POOLED.items()
            ),
        ]

    def release(
        self, method: GraphSetSynthesizer, edges: Tensor, reads: Sequence[LedgerEntry]
    ) -> None:
        """Release all statistics of the set, and the estimated number of edges of each graph.

        Args:
            method: The method, which pays, draws the noise and keeps the numbers of edges.
            edges: Edges of all graphs, shape ``(M, 2)`` (private).
            reads: The entries of :meth:`plan`.
        """
        of_edges, of_degrees, of_triangles, of_components = reads
        method.release_num_edges_per_graph(edges, of_edges)
        sizes = method.sizes.cpu().numpy()
        rate = of_edges.event.pure_epsilon / of_edges.sensitivity
        counts = estimated_counts(method.num_edges.cpu().numpy(), sizes, rate)
        method.num_edges = torch.from_numpy(counts).to(method.sizes.device)
        classes = GraphClasses.fitted(sizes, counts, self.graphs_per_class)
        self._keep("size_cuts", classes.size_cuts)
        self._keep("density_cuts", classes.density_cuts)
        exact = SetStatistics(edges.cpu().numpy(), sizes)
        number, num_classes = classes.of(sizes, counts), classes.number
        weights = place_weights(sizes, number, num_classes, self.bins)
        of_nodes = number[exact.graph_of]
        degrees = pooled_degrees(exact.ordered_degrees(), weights, of_nodes, num_classes)
        noisy = _noisy(method, degrees, of_degrees)
        most = (np.repeat(sizes, sizes) - 1).astype(np.int64)
        totals = pooled_degrees(most, weights, of_nodes, num_classes)
        self._keep("shape", shapes(noisy.astype(float), totals.astype(float), of_degrees.scale))
        triangles = pooled_triangles(exact.triangles(), sizes, number, num_classes)
        noisy = _noisy(method, triangles, of_triangles)
        wedges = released_wedges(sizes, counts, self.shape.cpu().numpy()[number])
        # If all wedges of the drawn degrees were closed: three wedges to a triangle.
        closed = pooled_triangles(wedges, sizes, number, num_classes) / 3
        self._keep("closed_share", closed_shares(noisy.astype(float), closed, of_triangles.scale))
        self._release_components(method, exact, of_components)

    def classes(self) -> GraphClasses:
        """Classes of graphs by public size and estimated density."""
        return GraphClasses(self.size_cuts.cpu().numpy(), self.density_cuts.cpu().numpy())

    def _release_components(
        self, method: GraphSetSynthesizer, exact: SetStatistics, read: LedgerEntry
    ) -> None:
        sizes = exact.sizes
        total = np.array([pooled_components(exact.largest_components(), sizes)])
        noisy = float(_noisy(method, total, read)[0])
        most = pooled_components(sizes, sizes)
        explained = noisy + _SPREADS * read.scale >= most
        share = 1.0 if explained else max(noisy / most, 0.0)
        self._keep("largest_share", torch.tensor(share, dtype=torch.double))

    def _keep(self, name: str, value: object) -> None:
        setattr(self, name, torch.as_tensor(value, device=self.size_cuts.device))


def released_wedges(sizes: Ints, num_edges: Ints, shape: NDArray[np.float64]) -> Ints:
    """Number of wedges of each graph, if its degrees have the released shape.

    Args:
        sizes: Numbers of nodes, shape ``(G,)``.
        num_edges: Estimated numbers of edges, shape ``(G,)``.
        shape: Released shape of each graph's class, shape ``(G, bins)``.
    """
    return np.array(
        [
            num_wedges(whole_degrees(expected_degrees(size, count, row), count, 0))
            for size, count, row in zip(sizes.tolist(), num_edges.tolist(), shape, strict=True)
        ]
    )


def _noisy(method: GraphSetSynthesizer, value: Ints, read: LedgerEntry) -> Ints:
    """Release integers."""
    released: Ints = method.pay(read, torch.from_numpy(value)).numpy()
    return released


class PooledSet(OneShotSet):
    r"""Graphs with private numbers of edges, and with degrees and triangles pooled by class.

    The noise on a statistic of one small graph hides it. Summed over many graphs of similar size
    and density, the same noise is small. Four releases with discrete Laplace noise:

    1. The number of edges of each graph. One edge is in one graph; sensitivity 1. Posterior medians
       under a prior of densities, fitted to the noisy numbers alone, replace the noisy numbers.
       Graphs are then classes of similar public size and of similar estimated density.
    2. Degrees in descending order as shares of the possible neighbors, summed by class in ten
       bins, the largest degree in a bin of its own; see :func:`pooled_degree_sensitivity`.
    3. Triangles over n - 2, summed by class; see :func:`pooled_triangle_sensitivity`. They shrink
       to none where noise explains them, and to the mean of the set where it explains that
       classes differ; see :func:`closed_shares`.
    4. Nodes of the largest component over half the nodes, summed over the set; see
       :func:`pooled_component_sensitivity`. The graphs are taken for connected where the noise
       explains that the sum is smaller.

    A graph is drawn in four steps, all of them post-processing. The shape of the class, shifted to
    the number of edges, gives degrees. A simple graph of these degrees is drawn, shuffled by swaps
    of edges, and connected. Further swaps keep all degrees and bring the number of triangles to the
    share of closed wedges of the class.

    When to use:
        For a set of a hundred graphs or more whose triangles and degrees matter. Graphs of one class
        differ in size and number of edges only. For a set of few graphs take
        :class:`ErdosRenyiSet`, which is the baseline and should stand beside this method.

    Privacy:
        Pure epsilon-DP at the level of edges: one undirected edge of one graph is added or removed.
        If one private edge is several edges of the set, the noise covers all of them. The guarantee
        has no condition and needs no delta. The number of graphs and their numbers of nodes are
        public.

    Cost:
        Time O(M log M) to fit, and O(M) swaps to draw the set, of a few microseconds each for
        graphs of up to a thousand nodes. Where graphs have no node that is linked to all others,
        each swap also looks at all nodes of the graph.

    Args:
        degree_share: Share of the budget for the ordered degrees.
        triangle_share: Share of the budget for the triangles.
        component_share: Share of the budget for the components; the numbers of edges get the rest.
        graphs_per_class: Number of graphs that a class has in the mean (public).
        bins: Number of bins of the ordered degrees.
    """

    constraints: ClassVar[Constraints] = POOLED_SETTINGS

    def __init__(
        self,
        degree_share: float = 0.15,
        triangle_share: float = 0.15,
        component_share: float = 0.05,
        graphs_per_class: int = 100,
        bins: int = 10,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.pooled = PooledStatistics(
            degree_share, triangle_share, component_share, graphs_per_class, bins
        )

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the four releases; the number of steps has no effect."""
        return self.pooled.plan(self, budget)

    def release(self, edges: Tensor, reads: Sequence[LedgerEntry]) -> None:
        """Release all statistics."""
        self.pooled.release(self, edges, reads)

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw a graph with the degrees, triangles and connection of its class."""
        count = num_edges or 0
        coins = Random(int(torch.randint(2**62, (), generator=generator)))
        (number,) = self.pooled.classes().of(np.array([size]), np.array([count]))
        edges = draw_edges(
            size,
            count,
            self.pooled.shape[number].cpu().numpy(),
            float(self.pooled.closed_share[number]),
            float(self.pooled.largest_share),
            coins,
        )
        return torch.tensor(edges, dtype=torch.long).view(-1, 2)
