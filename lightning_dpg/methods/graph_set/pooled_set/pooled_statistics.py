"""The private release of the statistics of a set, pooled by classes of graphs."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lightning_dpg.methods.constraints import Constraints, at_least
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.graph_set.pooled_set.classes import GraphClasses
from lightning_dpg.methods.graph_set.pooled_set.closed_shares import closed_shares
from lightning_dpg.methods.graph_set.pooled_set.degree_shapes import (
    expected_degrees,
    shapes,
    whole_degrees,
)
from lightning_dpg.methods.graph_set.pooled_set.drawing import num_wedges
from lightning_dpg.methods.graph_set.pooled_set.edge_estimates import estimated_counts
from lightning_dpg.methods.graph_set.pooled_set.statistics import (
    UNIT,
    Ints,
    SetStatistics,
    place_weights,
    pooled_components,
    pooled_degrees,
    pooled_triangles,
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

    size_cuts: Tensor
    density_cuts: Tensor
    shape: Tensor
    closed_share: Tensor
    largest_share: Tensor

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
        self.register_buffer("size_cuts", torch.empty(0, dtype=torch.long))
        self.register_buffer("density_cuts", torch.empty(0, 0, dtype=torch.double))
        self.register_buffer("shape", torch.empty(0, bins, dtype=torch.double))
        self.register_buffer("closed_share", torch.empty(0, dtype=torch.double))
        self.register_buffer("largest_share", torch.tensor(1.0, dtype=torch.double))
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
        number = classes.of(sizes, counts)
        self._release_shape(method, exact, number, classes.number, of_degrees)
        self._release_triangles(method, exact, number, classes.number, of_triangles)
        self._release_components(method, exact, of_components)

    def classes(self) -> GraphClasses:
        """Classes of graphs by public size and estimated density."""
        return GraphClasses(self.size_cuts.cpu().numpy(), self.density_cuts.cpu().numpy())

    def _release_shape(
        self,
        method: GraphSetSynthesizer,
        exact: SetStatistics,
        number: Ints,
        num_classes: int,
        read: LedgerEntry,
    ) -> None:
        sizes = exact.sizes
        weights = place_weights(sizes, number, num_classes, self.bins)
        of_nodes = number[exact.graph_of]
        noisy = _noisy(
            method, pooled_degrees(exact.ordered_degrees(), weights, of_nodes, num_classes), read
        )
        most = (np.repeat(sizes, sizes) - 1).astype(np.int64)
        totals = pooled_degrees(most, weights, of_nodes, num_classes)
        self._keep("shape", shapes(noisy.astype(float), totals.astype(float), read.scale))

    def _release_triangles(
        self,
        method: GraphSetSynthesizer,
        exact: SetStatistics,
        number: Ints,
        num_classes: int,
        read: LedgerEntry,
    ) -> None:
        sizes, counts = exact.sizes, method.num_edges.cpu().numpy()
        noisy = _noisy(
            method, pooled_triangles(exact.triangles(), sizes, number, num_classes), read
        )
        wedges = released_wedges(sizes, counts, self.shape.cpu().numpy()[number])
        # If all wedges of the drawn degrees were closed: three wedges to a triangle.
        most = pooled_triangles(wedges, sizes, number, num_classes) / 3
        self._keep("closed_share", closed_shares(noisy.astype(float), most, read.scale))

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
