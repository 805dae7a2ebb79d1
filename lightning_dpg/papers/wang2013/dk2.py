"""dK-2: private joint degrees, and graphs with these joint degrees."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.methods.constraints import SHARE, Constraints
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.degree_mixing import DEGREE_SHARES, JointDegreeSynthesizer
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure
from lightning_dpg.privacy.sensitivity.degrees import weighted_joint_degree_sensitivity


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
        joint = LedgerEntry.proved(
            "joint_degrees",
            "joint degrees",
            Pure(parts["joint"].epsilon),
            weighted_joint_degree_sensitivity,
        )
        return [*degree_entries(parts["degrees"], **DEGREE_SHARES), joint]

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release degrees, then joint degrees."""
        self.num_edges, self.degrees = release_degrees(self, source, reads)
        largest_two = self.degrees.topk(min(2, len(self.degrees))).values.sum()
        self.release_links(source, reads["joint_degrees"], max(int(largest_two), 2))

    def calibration(self, cells: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
        """Sensitivity of the joint degrees, and the scale of the noise of each cell."""
        return weighted_joint_degree_sensitivity(), cells[:, 1]
