"""Classes of graphs of similar size and density, from public sizes and released counts."""

import math
from typing import NamedTuple

import numpy as np

from lightning_dpg.methods.graph_set.pooled_set.degree_shapes import Floats
from lightning_dpg.methods.graph_set.pooled_set.edge_estimates import relative_density
from lightning_dpg.methods.graph_set.pooled_set.statistics import Ints


class GraphClasses(NamedTuple):
    """Borders of classes: sizes are cut first, and each part by density.

    Attributes:
        size_cuts: Smallest size of each part but the first, ascending, shape ``(A - 1,)``.
        density_cuts: Smallest density of each class of a part but the first, ascending, shape
            ``(A, B - 1)``.
    """

    size_cuts: Ints
    density_cuts: Floats

    @classmethod
    def fitted(cls, sizes: Ints, num_edges: Ints, graphs_per_class: int) -> "GraphClasses":
        """Cut a set into classes of about equal numbers of graphs.

        Args:
            sizes: Number of nodes of each graph (public), shape ``(G,)``.
            num_edges: Number of edges of each graph (noisy), shape ``(G,)``.
            graphs_per_class: Mean number of graphs of a class; graphs of equal size and density are
                in one class.
        """
        number = max(len(sizes) // graphs_per_class, 1)
        parts = max(math.isqrt(number), 1)
        levels = max(number // parts, 1)
        size_cuts = _borders(sizes.astype(float), parts).astype(np.int64)
        part_of = np.searchsorted(size_cuts, sizes, side="right")
        density = relative_density(num_edges, sizes)
        cuts = [
            _borders(density[part_of == part], levels)
            if (part_of == part).any()
            else np.ones(levels - 1)
            for part in range(parts)
        ]
        return cls(size_cuts, np.array(cuts).reshape(parts, levels - 1))

    @property
    def number(self) -> int:
        """Number of classes."""
        parts, cuts = self.density_cuts.shape
        return int(parts * (cuts + 1))

    def of(self, sizes: Ints, num_edges: Ints) -> Ints:
        """Class of each graph of some sizes and numbers of edges."""
        part = np.searchsorted(self.size_cuts, sizes, side="right")
        above = self.density_cuts[part] <= relative_density(num_edges, sizes)[:, None]
        numbers: Ints = part * (self.density_cuts.shape[1] + 1) + above.sum(axis=1)
        return numbers


def _borders(values: Floats, parts: int) -> Floats:
    """Values at which the next part of about equally many begins."""
    borders: Floats = np.quantile(values, np.arange(1, parts) / parts, method="higher")
    return borders
