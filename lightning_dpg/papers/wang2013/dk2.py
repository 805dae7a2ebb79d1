"""dK-2: private joint degrees, and graphs with these joint degrees."""

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from lightning_dpg.graph.edge_statistics import (
    GraphStatisticsSource,
    degree_cells,
    fitted_links,
    num_degree_cells,
)
from lightning_dpg.graph.stubs import draw_links, stub_mixing
from lightning_dpg.methods.constraints import SHARE, Constraints
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.mechanisms import integer_noise
from lightning_dpg.privacy.sensitivity.degrees import weighted_joint_degree_sensitivity

_MOST_CELLS = 2**26


def cells_up_to(largest_two: int, num_nodes: int) -> NDArray[np.int64]:
    """Pairs of degrees whose sum is at most T (public), shape ``(C, 2)``.

    Args:
        largest_two: T.
        num_nodes: Number of nodes N.

    Raises:
        MisconfigurationException: If there are too many. T was paid for, and is not named: the run
            releases nothing.
    """
    if num_degree_cells(largest_two, num_nodes - 1) > _MOST_CELLS:
        raise MisconfigurationException(
            f"the noisy degrees have more than {_MOST_CELLS:,} pairs of degrees, which are not counted; "
            "what was read so far is spent\nraise privacy.epsilon, or take BTER, which counts classes "
            "of degrees"
        )
    return degree_cells(largest_two, num_nodes - 1)


class DK2(OneShotSynthesizer):
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
        which needs a delta. Here the noise of a cell grows with its degrees. The sensitivity is then
        the same for every graph.

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
        self.degrees: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))
        self.links: Tensor = nn.Buffer(torch.empty(0, 0, dtype=torch.double))
        self.largest_two = 0

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan degrees and joint degrees; the number of steps has no effect."""
        share = self.hparams["degree_share"]
        parts = budget.split(degrees=share, joint=1 - share)
        joint = self.read(
            "joint_degrees", "joint degrees", parts["joint"], weighted_joint_degree_sensitivity
        )
        return [*degree_entries(parts["degrees"]), joint]

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release degrees, then the joint degrees of all pairs of degrees whose sum is at most T."""
        self.num_edges, self.degrees = release_degrees(self, source, reads)
        self.largest_two = max(int(self.degrees.topk(min(2, len(self.degrees))).values.sum()), 2)
        cells, read = cells_up_to(self.largest_two, len(self.degrees)), reads["joint_degrees"]
        law = integer_noise(read, scales=torch.from_numpy(cells[:, 1]))
        noisy = self.pay(read, torch.from_numpy(source.joint_degrees(self.largest_two)), law)
        noise_scales = cells[:, 1] * int(read.sensitivity) / read.event.pure_epsilon
        links = fitted_links(noisy.numpy(), cells, noise_scales, self.degrees.numpy())
        self.links = torch.from_numpy(links)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Link half-edges of the released degrees at random, by the joint degrees."""
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        classes, totals = _classes(self.degrees)
        mixing = stub_mixing(self.links.cpu().numpy(), totals)
        return torch.from_numpy(draw_links(self.degrees.cpu().numpy(), [(classes, mixing)], rng))

    def score(self, pairs: Tensor) -> Tensor:
        """Expected number of edges of pairs ``(P, 2)``, repeated edges allowed: ``(P,)``."""
        classes, totals = _classes(self.degrees)
        mixing = stub_mixing(self.links.cpu().numpy(), totals)
        share = self.degrees.cpu().numpy() / np.maximum(totals[classes], 1)
        first, second = pairs.cpu().numpy().T
        both = mixing[classes[first], classes[second]]
        return torch.from_numpy(both * share[first] * share[second])


def _classes(degrees: Tensor) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Class of each node, and sum of the degrees of each class."""
    values, classes, sizes = np.unique(
        degrees.cpu().numpy(), return_inverse=True, return_counts=True
    )
    return classes, values * sizes
