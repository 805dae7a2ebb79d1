"""Joint degrees of dK-2 in released cells, and graphs with released joint degrees."""

from abc import abstractmethod
from dataclasses import replace

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
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.mechanisms import integer_noise

_MOST_CELLS = 2**26
TOO_MANY_CELLS = f"more than {_MOST_CELLS:,} pairs of degrees, which are not counted"
FEWER_CELLS = "BTER, which counts classes of degrees"


def cells_up_to(largest_two: int, num_nodes: int) -> NDArray[np.int64]:
    """Pairs of degrees whose sum is at most T (public), shape ``(C, 2)``.

    Args:
        largest_two: T.
        num_nodes: Number of nodes N.

    Raises:
        MisconfigurationException: If there are too many. T was paid for, and is not named: the run
            releases nothing.
    """
    if has_too_many_cells(largest_two, num_nodes):
        raise MisconfigurationException(
            f"the noisy degrees have {TOO_MANY_CELLS}; what was read so far is spent\n"
            f"raise privacy.epsilon, or take {FEWER_CELLS}"
        )
    return degree_cells(largest_two, num_nodes - 1)


def has_too_many_cells(largest_two: int, num_nodes: int) -> bool:
    """Return whether the pairs of degrees with a sum of at most T are too many to count (public)."""
    return num_degree_cells(largest_two, num_nodes - 1) > _MOST_CELLS


class JointDegreeSynthesizer(OneShotSynthesizer):
    """Graphs with private degrees and private joint degrees (dK-2).

    A subclass chooses the cells that are counted, and their noise.
    """

    def __init__(self) -> None:
        super().__init__()
        self.degrees: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))
        self.links: Tensor = nn.Buffer(torch.empty(0, 0, dtype=torch.double))
        self.largest_two = 0

    @abstractmethod
    def calibration(self, cells: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
        """Sensitivity of the joint degrees, and the scale of the noise of each cell.

        Args:
            cells: Pairs of degrees, shape ``(C, 2)``.
        """

    def release_links(
        self, source: GraphStatisticsSource, read: LedgerEntry, largest_two: int
    ) -> None:
        """Release the joint degrees of all pairs of degrees whose sum is at most T.

        Args:
            source: Counts of the training records (private).
            read: Planned read, whose sensitivity follows from T.
            largest_two: T (released).
        """
        self.largest_two = largest_two
        cells = cells_up_to(largest_two, self.hparams["num_nodes"])
        sensitivity, scales = self.calibration(cells)
        read = replace(read, sensitivity=sensitivity)
        law = integer_noise(read, scales=torch.from_numpy(scales))
        noisy = self.pay(read, torch.from_numpy(source.joint_degrees(largest_two)), law)
        noise_scales = scales * sensitivity / read.event.pure_epsilon
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
