"""dK-2 with the same noise for all joint degrees."""

import math
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.graph.joint_degrees import fitted_links
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.degree_mixing import (
    DEGREE_SHARES,
    FEWER_CELLS,
    TOO_MANY_CELLS,
    cells_up_to,
    counted_cells,
    expected_edges,
    has_too_many_cells,
    linked_edges,
)
from lightning_dpg.methods.single_graph.degree_release import (
    check_shares,
    degree_entries,
    release_degrees,
)
from lightning_dpg.privacy.calibration import laplace_tail_bound
from lightning_dpg.privacy.ledger import Budget, LedgerEntry
from lightning_dpg.privacy.mechanisms import discrete_laplace, pure_entry
from lightning_dpg.privacy.sensitivity import joint_degree_sensitivity, largest_degrees_sensitivity

_LARGEST_TWO = "sum of the two largest degrees"
_BOUND_PROOF = "largest_degrees_sensitivity, joint_degree_sensitivity"


def _delta(budget: Budget) -> float:
    """Probability at most with which T is too small; 0 without noise."""
    return budget.delta if math.isfinite(budget.epsilon) else 0.0


def _least_bound(epsilon: float, delta: float) -> int:
    """What is added to the noisy sum, so that T is too small with a probability of delta at most."""
    sensitivity = largest_degrees_sensitivity()
    return laplace_tail_bound(epsilon, sensitivity, delta) if delta else 0


class UniformDK2(OneShotSynthesizer):
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

    is_pure: ClassVar[bool] = False

    def __init__(
        self, num_nodes: int | None = None, degree_share: float = 0.25, bound_share: float = 0.05
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        check_shares(degree_share=degree_share, bound_share=bound_share)
        self.degrees: Tensor
        self.links: Tensor
        self.register_buffer("degrees", torch.empty(0, dtype=torch.long))
        self.register_buffer("links", torch.empty(0, 0, dtype=torch.double))
        self.largest_two = 0

    def delta_setting(self) -> str:
        """Setting that spends delta: the bound of the local sensitivity."""
        return "UniformDK2"

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan degrees, T and joint degrees; the number of steps has no effect.

        The planned sensitivity of the joint degrees is that of graphs of two edges: it grows with
        the released T, and the noise with it.
        """
        parts = self._parts(budget.epsilon)
        bound = pure_entry(
            "largest_degrees",
            _LARGEST_TWO,
            parts["bound"].epsilon,
            largest_degrees_sensitivity(),
            _BOUND_PROOF,
            delta=_delta(budget),
        )
        joint = pure_entry(
            "joint_degrees",
            "joint degrees",
            parts["joint"].epsilon,
            joint_degree_sensitivity(2),
            "joint_degree_sensitivity",
        )
        return [*degree_entries(parts["degrees"].epsilon, **DEGREE_SHARES), bound, joint]

    def _check_settings(self, budget: Budget) -> None:
        """Refuse a budget whose T most likely has too many cells in any graph of N nodes."""
        super()._check_settings(budget)
        num_nodes = self.hparams["num_nodes"]
        least = _least_bound(self._parts(budget.epsilon)["bound"].epsilon, _delta(budget))
        if num_nodes is not None and has_too_many_cells(self._possible(least), num_nodes):
            raise MisconfigurationException(
                f"at epsilon {budget.epsilon:g} and delta {budget.delta:g}, the noise alone asks for "
                f"{TOO_MANY_CELLS}\nraise privacy.epsilon, or take {FEWER_CELLS}"
            )

    def _parts(self, epsilon: float) -> dict[str, Budget]:
        degrees, bound = self.hparams["degree_share"], self.hparams["bound_share"]
        rest = 1 - math.fsum((degrees, bound))
        return Budget(epsilon, 0.0).split(degrees=degrees, bound=bound, joint=rest)

    def release(self, edges: Tensor, epsilon: float) -> None:
        """Release degrees, T and joint degrees."""
        parts, num_nodes = self._parts(epsilon), self.hparams["num_nodes"]
        delta = _delta(self.budget)  # read before anything is booked: it checks the settings
        self.degrees = release_degrees(self, edges, parts["degrees"].epsilon, **DEGREE_SHARES)
        self.largest_two = self._release_largest_two(edges, parts["bound"].epsilon, delta)
        cells = cells_up_to(self.largest_two, num_nodes)
        sensitivity, scales = self.calibration(cells)
        noisy = discrete_laplace(
            torch.from_numpy(counted_cells(edges.numpy(), self.largest_two, num_nodes)),
            self.ledger,
            self.noise,
            key="joint_degrees",
            name="joint degrees",
            epsilon=parts["joint"].epsilon,
            sensitivity=sensitivity,
            scales=torch.from_numpy(scales),
            proof="joint_degree_sensitivity",
        )
        noise_scales = scales * sensitivity / parts["joint"].epsilon
        links = fitted_links(noisy.numpy(), cells, noise_scales, self.degrees.numpy())
        self.links = torch.from_numpy(links)

    def _release_largest_two(self, edges: Tensor, epsilon: float, delta: float) -> int:
        """Release a bound below the sum of the two largest degrees with probability ``delta``."""
        num_nodes = self.hparams["num_nodes"]
        degrees = torch.bincount(edges.flatten(), minlength=max(num_nodes, 2))
        noisy = discrete_laplace(
            degrees.topk(2).values.sum(),
            self.ledger,
            self.noise,
            key="largest_degrees",
            name=_LARGEST_TWO,
            epsilon=epsilon,
            sensitivity=largest_degrees_sensitivity(),
            delta=delta,
            proof=_BOUND_PROOF,
        )
        return self._possible(int(noisy) + _least_bound(epsilon, delta))

    def _possible(self, bound: int) -> int:
        """The nearest sum of two degrees of a graph with edges."""
        return min(max(bound, 2), 2 * max(self.hparams["num_nodes"] - 1, 1))

    def calibration(self, cells: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
        """Sensitivity of the joint degrees, and the scale of the noise of each cell."""
        return joint_degree_sensitivity(self.largest_two), np.ones_like(cells[:, 1])

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Link half-edges of the released degrees at random, by the joint degrees."""
        return linked_edges(self.degrees, self.links, generator)

    def score(self, pairs: Tensor) -> Tensor:
        """Expected number of edges of pairs ``(P, 2)``, repeated edges allowed: ``(P,)``."""
        return expected_edges(self.degrees, self.links, pairs)
