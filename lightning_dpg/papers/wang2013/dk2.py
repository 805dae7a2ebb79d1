"""dK-2: private joint degrees, and graphs with these joint degrees."""

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.methods.constraints import SHARE, Constraints
from lightning_dpg.methods.planning import Reads, check_shares
from lightning_dpg.methods.single_graph.degree_mixing import (
    FEWER_CELLS,
    TOO_MANY_CELLS,
    JointDegreeSynthesizer,
    has_too_many_cells,
)
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Approximate, LedgerEntry, Pure
from lightning_dpg.privacy.mechanisms import laplace_tail_bound
from lightning_dpg.privacy.sensitivity.degrees import (
    joint_degree_sensitivity,
    largest_degrees_sensitivity,
    weighted_joint_degree_sensitivity,
)


def _delta(budget: Budget) -> float:
    """Probability at most with which T is too small; 0 without noise."""
    return budget.delta if math.isfinite(budget.epsilon) else 0.0


def _least_bound(epsilon: float, delta: float) -> int:
    """Addend of the noisy sum, with which T is too small with a probability of delta at most."""
    sensitivity = largest_degrees_sensitivity()
    return laplace_tail_bound(epsilon, sensitivity, delta) if delta else 0


class UniformDK2(JointDegreeSynthesizer):
    """Graphs with private counts of edges by degrees of both ends (dK-2), one noise for all counts.

    It draws graphs as :class:`DK2` does. One edge moves all edges of its two ends to other cells.
    T, the sum of the two largest degrees, is released first, plus the amount by which the noise
    falls short with a probability of delta; then :math:`2T + 1` bounds the change by an edge, see
    :func:`joint_degree_sensitivity`, for any number of cells. T also fixes the cells that can hold
    edges, which must not depend on the graph itself.

    When to use:
        To compare with the paper. Otherwise take :class:`DK2`, which needs no delta and has about
        this noise in the cells of the largest degrees and less in all others.

    Privacy:
        (epsilon, delta)-DP at the level of edges: one undirected edge is added or removed. The
        guarantee has no condition. The set of nodes is public. Delta is spent with T, which decides
        whether the noise of the joint degrees is enough.

    Cost:
        As :class:`DK2`: time and memory grow with N + M, up to logarithms, and with the square of
        T. More than 2^26 cells are refused: before anything is read if T is likely to have them in
        any graph, and otherwise after T was paid for.

    Differences from the paper:
        Wang and Wu calibrate the noise to a smooth bound of the local sensitivity, which has to be
        smoother with more cells. Here a bound on the local sensitivity is released, which holds for
        any number of cells.

    * Wang, Wu, "Preserving differential privacy in degree-correlation based graph generation",
      2013.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        degree_share: Share of the budget for the number of edges and the degrees.
        bound_share: Share of the budget for T; the joint degrees get the rest.
    """

    capabilities = replace(JointDegreeSynthesizer.capabilities, is_pure=False)

    def __init__(
        self, num_nodes: int | None = None, degree_share: float = 0.25, bound_share: float = 0.05
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        check_shares(degree_share=degree_share, bound_share=bound_share)

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan degrees, T and joint degrees; the number of steps has no effect.

        The planned sensitivity of the joint degrees is that of graphs of two edges: it grows with
        the released T, and the noise with it.
        """
        parts, delta = self._parts(budget), _delta(budget)
        epsilon = parts["bound"].epsilon
        bound = LedgerEntry.proved(
            "largest_degrees",
            "sum of the two largest degrees",
            Approximate(epsilon, delta) if delta else Pure(epsilon),
            largest_degrees_sensitivity,
        )
        joint = self.read(
            "joint_degrees", "joint degrees", parts["joint"], joint_degree_sensitivity, 2
        )
        return [
            *degree_entries(parts["degrees"]),
            replace(bound, proof=f"{bound.proof}, {joint.proof}"),
            joint,
        ]

    def _check_budget(self, budget: Budget) -> None:
        """Refuse a budget whose T most likely has too many cells in any graph of N nodes."""
        super()._check_budget(budget)
        num_nodes = self.hparams["num_nodes"]
        least = _least_bound(self._parts(budget)["bound"].epsilon, _delta(budget))
        if num_nodes is not None and has_too_many_cells(self._possible(least), num_nodes):
            raise MisconfigurationException(
                f"at epsilon {budget.epsilon:g} and delta {budget.delta:g}, the noise alone asks for "
                f"{TOO_MANY_CELLS}\nraise privacy.epsilon, or take {FEWER_CELLS}"
            )

    def _parts(self, budget: Budget) -> dict[str, Budget]:
        degrees, bound = self.hparams["degree_share"], self.hparams["bound_share"]
        rest = 1 - math.fsum((degrees, bound))
        return budget.split(degrees=degrees, bound=bound, joint=rest)

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release degrees, T and joint degrees."""
        self.num_edges, self.degrees = release_degrees(self, source, reads)
        read, degrees = reads["largest_degrees"], source.degrees()
        noisy = self.pay(read, degrees.topk(min(2, len(degrees))).values.sum())
        # T is below the true sum with the probability delta at most.
        bound = int(noisy) + _least_bound(read.event.pure_epsilon, read.event.total_delta)
        self.release_links(source, reads["joint_degrees"], self._possible(bound))

    def _possible(self, bound: int) -> int:
        """The nearest sum of two degrees of a graph with edges."""
        return min(max(bound, 2), 2 * max(self.hparams["num_nodes"] - 1, 1))

    def calibration(self, cells: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
        """Sensitivity of the joint degrees, and the scale of the noise of each cell."""
        return joint_degree_sensitivity(self.largest_two), np.ones_like(cells[:, 1])


class DK2(JointDegreeSynthesizer):
    """Graphs with private counts of edges by degrees of both ends (dK-2), noise by degree.

    1. Releases the number of edges and the degree of each node, see :func:`release_degrees`.
    2. Releases the joint degrees with discrete Laplace noise. A cell holds the number of edges
       between nodes of degrees a <= b; each cell with a + b <= T has noise, empty or not.
    3. Keeps the part of the noisy joint degrees that exceeds chance, see :func:`fitted_links`.
    4. Gives each node half-edges of its released degree and links them by the joint degrees;
       exchanges that keep the joint degrees remove loops and repeated edges.

    One edge moves all edges of its two ends to other cells. The noise is proportional to the larger
    degree b of a cell. The sensitivity then is 4 for every graph, see
    :func:`weighted_joint_degree_sensitivity`. T comes from the released degrees; edges beyond T are
    left out.

    When to use:
        For the exact mixing of degrees at a large epsilon; the paper takes 5 to 20. At a small
        epsilon the noise leaves the degrees alone, which :class:`ChungLu` gives for less.
        :class:`BTER` releases the mixing of classes of degrees with far less noise.

    Privacy:
        Pure epsilon-DP at the level of edges: one undirected edge is added or removed. The
        guarantee has no condition and needs no delta. The set of nodes is public.

    Cost:
        Time and memory grow with N + M, up to logarithms, and with the square of T, the sum of the
        two largest released degrees. More than 2^26 cells are refused; a larger epsilon makes T
        smaller where noise has raised it.

    Differences from the paper:
        Wang and Wu calibrate one noise for all cells to a smooth bound of the local sensitivity,
        which needs a delta. Here the noise of a cell grows with its degrees. The
        sensitivity is then the same for every graph. :class:`UniformDK2` has the same noise in all
        cells.

    * Wang, Wu, "Preserving differential privacy in degree-correlation based graph generation",
      2013.
    * Mahadevan et al., "Systematic topology analysis and generation using degree correlations",
      2006.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        degree_share: Share of the budget for the number of edges and the degrees; the joint degrees
            get the rest.
    """

    constraints: ClassVar[Constraints] = {"degree_share": SHARE}

    def __init__(self, num_nodes: int | None = None, degree_share: float = 0.25) -> None:
        super().__init__()
        self.save_hyperparameters()

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan degrees and joint degrees; the number of steps has no effect."""
        share = self.hparams["degree_share"]
        parts = budget.split(degrees=share, joint=1 - share)
        joint = self.read(
            "joint_degrees", "joint degrees", parts["joint"], weighted_joint_degree_sensitivity
        )
        return [*degree_entries(parts["degrees"]), joint]

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release degrees, then joint degrees."""
        self.num_edges, self.degrees = release_degrees(self, source, reads)
        largest_two = self.degrees.topk(min(2, len(self.degrees))).values.sum()
        self.release_links(source, reads["joint_degrees"], max(int(largest_two), 2))

    def calibration(self, cells: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
        """Sensitivity of the joint degrees, and the scale of the noise of each cell."""
        return weighted_joint_degree_sensitivity(), cells[:, 1]
