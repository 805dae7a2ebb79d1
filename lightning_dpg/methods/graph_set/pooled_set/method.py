"""Graphs of a set with private numbers of edges and pooled private shapes."""

import math
from random import Random
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from lightning_dpg.interfaces import GraphSetRecords
from lightning_dpg.methods.graph_set.base import GraphSetSynthesizer
from lightning_dpg.methods.graph_set.pooled_set.classes import GraphClasses
from lightning_dpg.methods.graph_set.pooled_set.degree_shapes import (
    expected_degrees,
    shapes,
    whole_degrees,
)
from lightning_dpg.methods.graph_set.pooled_set.drawing import draw_edges, num_wedges
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
from lightning_dpg.methods.single_graph.degree_release import check_shares
from lightning_dpg.nn.resized_buffers import resized
from lightning_dpg.privacy.ledger import Budget, LedgerEntry
from lightning_dpg.privacy.mechanisms import discrete_laplace, pure_entry
from lightning_dpg.privacy.sensitivity import (
    pooled_component_sensitivity,
    pooled_degree_sensitivity,
    pooled_triangle_sensitivity,
)

_SPREADS = 4.0  # scales of the noise within which all graphs are taken for connected
_TABLES = ("size_cuts", "density_cuts", "shape", "closed_share")


class PooledSet(GraphSetSynthesizer):
    r"""Graphs with private numbers of edges, and with degrees and triangles pooled by class.

    The noise on a statistic of one small graph hides it. Summed over many graphs of similar size
    and density, the same noise is small. Four releases with discrete Laplace noise:

    1. The number of edges of each graph. One edge is in one graph; sensitivity 1. Posterior medians
       under a prior of densities, fitted to the noisy numbers alone, replace the noisy numbers.
       Graphs are then classes of similar public size and of similar estimated density.
    2. Degrees in descending order as shares of the possible neighbors, summed by class in ten
       bins, the largest degree in a bin of its own; see :func:`pooled_degree_sensitivity`.
    3. Triangles over n - 2, summed by class; see :func:`pooled_triangle_sensitivity`.
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

    is_pure: ClassVar[bool] = True
    is_trained: ClassVar[bool] = False
    repeats_edges: ClassVar[bool] = True

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
        if graphs_per_class < 1 or bins < 2:
            raise ValueError(
                "graphs_per_class must be 1 or more and bins 2 or more, got "
                f"{graphs_per_class} and {bins}"
            )
        self._parts(1.0)  # refuses shares out of range
        # Lightning counts steps and keeps checkpoints under automatic optimization only.
        self.automatic_optimization = True
        self.size_cuts: Tensor
        self.density_cuts: Tensor
        self.shape: Tensor
        self.closed_share: Tensor
        self.largest_share: Tensor
        self.register_buffer("size_cuts", torch.empty(0, dtype=torch.long))
        self.register_buffer("density_cuts", torch.empty(0, 0, dtype=torch.double))
        self.register_buffer("shape", torch.empty(0, bins, dtype=torch.double))
        self.register_buffer("closed_share", torch.empty(0, dtype=torch.double))
        self.register_buffer("largest_share", torch.tensor(1.0, dtype=torch.double))
        self.register_load_state_dict_pre_hook(resized(*_TABLES))  # type: ignore[no-untyped-call]

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the four releases; the number of steps has no effect."""
        parts = self._parts(budget.epsilon)
        return [self.num_edges_entry(parts["edge_share"].epsilon), *self._pooled_entries(parts)]

    def training_step(self, batch: GraphSetRecords, batch_idx: int) -> None:
        """Release all statistics, unless a resumed run has done so."""
        if not len(self.num_edges):
            self._release(batch.edges)
        self.trainer.should_stop = True

    def configure_optimizers(self) -> None:
        """Return None, since there is no gradient."""

    def draw(self, size: int, num_edges: int | None, generator: torch.Generator) -> Tensor:
        """Draw a graph with the degrees, triangles and connection of its class."""
        count = num_edges or 0
        coins = Random(int(torch.randint(2**62, (), generator=generator)))
        (number,) = self._classes().of(np.array([size]), np.array([count]))
        edges = draw_edges(
            size,
            count,
            self.shape[number].cpu().numpy(),
            float(self.closed_share[number]),
            float(self.largest_share),
            coins,
        )
        return torch.tensor(edges, dtype=torch.long).view(-1, 2)

    def released_state(self) -> dict[str, Tensor]:
        """Sizes, estimated numbers of edges, and the statistics of each class."""
        return dict(self.state_dict())

    def _parts(self, epsilon: float) -> dict[str, Budget]:
        """Shares of the four releases."""
        names = ("degree_share", "triangle_share", "component_share")
        shares = {name: self.hparams[name] for name in names}
        check_shares(**shares)
        return Budget(epsilon, 0.0).split(edge_share=1 - sum(shares.values()), **shares)

    def _pooled_entries(self, parts: dict[str, Budget]) -> list[LedgerEntry]:
        times = self.max_occurrences
        return [
            pure_entry(
                "pooled_degrees",
                "ordered degrees, pooled",
                parts["degree_share"].epsilon,
                pooled_degree_sensitivity(times, UNIT),
                "pooled_degree_sensitivity",
            ),
            pure_entry(
                "pooled_triangles",
                "triangles, pooled",
                parts["triangle_share"].epsilon,
                pooled_triangle_sensitivity(times, UNIT),
                "pooled_triangle_sensitivity",
            ),
            pure_entry(
                "pooled_components",
                "largest components, pooled",
                parts["component_share"].epsilon,
                pooled_component_sensitivity(times, UNIT),
                "pooled_component_sensitivity",
            ),
        ]

    def _release(self, edges: Tensor) -> None:
        """Release all statistics of the set (private edges)."""
        parts = self._parts(self.budget.epsilon)
        self.release_num_edges_per_graph(edges, parts["edge_share"].epsilon)
        sizes = self.sizes.cpu().numpy()
        rate = parts["edge_share"].epsilon / self.max_occurrences
        counts = estimated_counts(self.num_edges.cpu().numpy(), sizes, rate)
        self.num_edges = torch.from_numpy(counts).to(self.sizes.device)
        classes = GraphClasses.fitted(sizes, counts, self.hparams["graphs_per_class"])
        self._keep("size_cuts", classes.size_cuts)
        self._keep("density_cuts", classes.density_cuts)
        exact = SetStatistics(edges.cpu().numpy(), sizes)
        of_degrees, of_triangles, of_components = self._pooled_entries(parts)
        self._release_shape(exact, classes, of_degrees)
        self._release_triangles(exact, classes, of_triangles)
        self._release_components(exact, of_components)

    def _release_shape(
        self, exact: SetStatistics, classes: GraphClasses, entry: LedgerEntry
    ) -> None:
        sizes, number = exact.sizes, classes.of(exact.sizes, self.num_edges.cpu().numpy())
        weights = place_weights(sizes, number, classes.number, self.hparams["bins"])
        of_nodes = number[exact.graph_of]
        noisy = self._noisy(
            pooled_degrees(exact.ordered_degrees(), weights, of_nodes, classes.number), entry
        )
        most = (np.repeat(sizes, sizes) - 1).astype(np.int64)
        totals = pooled_degrees(most, weights, of_nodes, classes.number)
        self._keep("shape", shapes(noisy.astype(float), totals.astype(float), _scale(entry)))

    def _release_triangles(
        self, exact: SetStatistics, classes: GraphClasses, entry: LedgerEntry
    ) -> None:
        sizes, counts = exact.sizes, self.num_edges.cpu().numpy()
        number = classes.of(sizes, counts)
        noisy = self._noisy(
            pooled_triangles(exact.triangles(), sizes, number, classes.number), entry
        )
        wedges = np.array(
            [
                num_wedges(
                    whole_degrees(
                        expected_degrees(size, count, self.shape[k].cpu().numpy()), count, 0
                    )
                )
                for size, count, k in zip(
                    sizes.tolist(), counts.tolist(), number.tolist(), strict=True
                )
            ]
        )
        # If all wedges of the drawn degrees were closed: three wedges to a triangle.
        most = pooled_triangles(wedges, sizes, number, classes.number) / 3
        self._keep("closed_share", np.clip(noisy / np.maximum(most, 1), 0, 1))

    def _release_components(self, exact: SetStatistics, entry: LedgerEntry) -> None:
        sizes = exact.sizes
        total = np.array([pooled_components(exact.largest_components(), sizes)])
        noisy = float(self._noisy(total, entry)[0])
        most = pooled_components(sizes, sizes)
        explained = noisy + _SPREADS * _scale(entry) >= most
        share = 1.0 if explained else max(noisy / most, 0.0)
        self.largest_share = torch.tensor(share, dtype=torch.double, device=self.sizes.device)

    def _noisy(self, value: Ints, entry: LedgerEntry) -> Ints:
        """Release integers as an entry says."""
        noisy = discrete_laplace(
            torch.from_numpy(value),
            self.ledger,
            self.noise,
            key=entry.key,
            name=entry.name,
            epsilon=entry.epsilon,
            sensitivity=int(entry.sensitivity),
            proof=entry.proof,
        )
        released: Ints = noisy.numpy()
        return released

    def _keep(self, name: str, value: object) -> None:
        setattr(self, name, torch.as_tensor(value, device=self.sizes.device))

    def _classes(self) -> GraphClasses:
        return GraphClasses(self.size_cuts.cpu().numpy(), self.density_cuts.cpu().numpy())


def _scale(entry: LedgerEntry) -> float:
    """Scale of the noise of a release."""
    return 0.0 if math.isinf(entry.epsilon) else entry.sensitivity / entry.epsilon
