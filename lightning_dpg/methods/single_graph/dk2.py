"""dK-2: private joint degrees, and graphs whose edges link such degrees."""

import math
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.graph.communities import untangle
from lightning_dpg.graph.joint_degrees import (
    degree_cells,
    fitted_links,
    joint_degrees,
    num_cells,
)
from lightning_dpg.graph.stubs import fill_links, link_pairs, pair_stubs, stub_mixing
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.degree_release import (
    check_shares,
    degree_entries,
    release_degrees,
)
from lightning_dpg.privacy.calibration import laplace_tail_bound
from lightning_dpg.privacy.ledger import Budget, LedgerEntry
from lightning_dpg.privacy.mechanisms import discrete_laplace, pure_entry
from lightning_dpg.privacy.sensitivity import (
    joint_degree_sensitivity,
    largest_degrees_sensitivity,
    weighted_joint_degree_sensitivity,
)

_MOST_CELLS = 2**26
_DEGREE_SHARES = {"count_share": 0.2, "sequence_share": 0.25}


class DK2(OneShotSynthesizer):
    r"""dK-2 graph model: how many edges link nodes of which degrees, and which node has which degree.

    1. Releases the number of edges and the degree of each node, see :func:`release_degrees`.
    2. Releases the joint degrees, the number of edges between nodes of degrees a and b for all a <= b
       whose sum is at most T, with discrete Laplace noise in each of these cells, empty or not.
    3. Keeps of the noisy joint degrees what stands out from chance, see :func:`fitted_links`.
    4. Gives each node half-edges of its released degree and links them as the joint degrees say; loops
       and repeated edges are undone by exchanges that leave the joint degrees as they are.

    One edge moves all edges of its two ends to other cells. ``noise: weighted`` has noise in proportion
    to the larger degree b of a cell. The sensitivity then is 4, whatever the graph, see
    :func:`weighted_joint_degree_sensitivity`, and the release is of pure epsilon. T is that of the
    released degrees; edges beyond are left out.

    ``noise: uniform`` has the same noise in all cells, as Wang and Wu have it, of (epsilon, delta).
    They calibrate it to a smooth bound of the local sensitivity, which has to be the smoother the more
    cells there are. Here T, the sum of the two largest degrees, is released first, plus what the noise
    falls short of with a probability of delta; then :math:`2T + 1` bounds what an edge moves, see
    :func:`joint_degree_sensitivity`, however many cells there are. T also says in which cells edges may
    be, which nobody may read off the graph. ``weighted`` has about this noise in the cells of the
    largest degrees and less in all others.

    * Wang, Wu, "Preserving differential privacy in degree-correlation based graph generation", 2013.
    * Mahadevan et al., "Systematic topology analysis and generation using degree correlations", 2006.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        noise: ``weighted`` or ``uniform``.
        degree_share: Share of the budget for the number of edges and the degrees.
        bound_share: Share of the budget for T, with ``uniform`` only; the joint degrees get the rest.
    """

    def __init__(
        self,
        num_nodes: int | None = None,
        noise: Literal["weighted", "uniform"] = "weighted",
        degree_share: float = 0.25,
        bound_share: float = 0.05,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        check_shares(degree_share=degree_share, bound_share=bound_share)
        if noise not in ("weighted", "uniform"):
            raise ValueError(f"noise must be weighted or uniform, got {noise!r}")
        self.degrees: Tensor
        self.links: Tensor
        self.register_buffer("degrees", torch.empty(0, dtype=torch.long))
        self.register_buffer("links", torch.empty(0, 0, dtype=torch.double))
        self.largest_two = 0

    def delta_setting(self) -> str | None:
        """A bound of the local sensitivity."""
        return "noise: uniform" if self.hparams["noise"] == "uniform" else None

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Degrees and joint degrees, whatever the number of steps.

        The sensitivity of the joint degrees with ``noise: uniform`` is that of graphs of two edges:
        it grows with the released T, and the noise with it.
        """
        parts = self._parts(budget.epsilon)
        planned = degree_entries(parts["degrees"].epsilon, **_DEGREE_SHARES)
        joint, delta = parts["joint"].epsilon, 0.0
        sensitivity, proof = (
            weighted_joint_degree_sensitivity(),
            "weighted_joint_degree_sensitivity",
        )
        if "bound" in parts:
            delta = budget.delta if math.isfinite(budget.epsilon) else 0.0
            bound, two = parts["bound"].epsilon, "sum of the two largest degrees"
            moved = largest_degrees_sensitivity()
            planned.append(
                pure_entry("largest_degrees", two, bound, moved, "largest_degrees_sensitivity")
            )
            sensitivity, proof = joint_degree_sensitivity(2), "joint_degree_sensitivity"
        entry = pure_entry("joint_degrees", "joint degrees", joint, sensitivity, proof, delta=delta)
        return [*planned, entry]

    def _parts(self, epsilon: float) -> dict[str, Budget]:
        shares = {"degrees": self.hparams["degree_share"]}
        if self.hparams["noise"] == "uniform":
            shares["bound"] = self.hparams["bound_share"]
        shares["joint"] = 1 - math.fsum(shares.values())
        return Budget(epsilon, 0.0).split(**shares)

    def release(self, edges: Tensor, epsilon: float) -> None:
        """Release degrees, then joint degrees."""
        parts, delta = self._parts(epsilon), 0.0
        if "bound" in parts and math.isfinite(epsilon):
            delta = self.budget.delta  # asked for before anything is booked
        self.degrees = release_degrees(self, edges, parts["degrees"].epsilon, **_DEGREE_SHARES)
        if "bound" in parts:
            bound = parts["bound"].epsilon
            self.largest_two = self._release_largest_two(edges, bound, delta)
            self._release_joint(edges, parts["joint"].epsilon, delta)
        else:
            largest_two = self.degrees.topk(min(2, len(self.degrees))).values.sum()
            self.largest_two = max(int(largest_two), 2)
            self._release_joint(edges, parts["joint"].epsilon, 0.0)

    def _release_largest_two(self, edges: Tensor, epsilon: float, delta: float) -> int:
        """A number that is below the sum of the two largest degrees with probability ``delta``."""
        num_nodes = self.hparams["num_nodes"]
        degrees = torch.bincount(edges.flatten(), minlength=max(num_nodes, 2))
        noisy = discrete_laplace(
            degrees.topk(2).values.sum(),
            self.ledger,
            self.noise,
            key="largest_degrees",
            name="sum of the two largest degrees",
            epsilon=epsilon,
            sensitivity=largest_degrees_sensitivity(),
            proof="largest_degrees_sensitivity",
        )
        bound = int(noisy)
        if delta:
            bound += laplace_tail_bound(epsilon, largest_degrees_sensitivity(), delta)
        return min(max(bound, 2), 2 * max(num_nodes - 1, 1))

    def _release_joint(self, edges: Tensor, epsilon: float, delta: float) -> None:
        num_nodes, largest_two = self.hparams["num_nodes"], self.largest_two
        if num_cells(largest_two, num_nodes - 1) > _MOST_CELLS:
            raise MisconfigurationException(
                f"degrees that add up to {largest_two} have more than {_MOST_CELLS} joint degrees\n"
                "raise privacy.epsilon, or take BTER, which counts classes of degrees"
            )
        cells = degree_cells(largest_two, num_nodes - 1)
        degrees = np.bincount(edges.flatten().numpy(), minlength=num_nodes)
        counts = torch.from_numpy(joint_degrees(edges.numpy(), degrees, largest_two))
        sensitivity, scales = self.calibration(cells)
        noisy = discrete_laplace(
            counts,
            self.ledger,
            self.noise,
            key="joint_degrees",
            name="joint degrees",
            epsilon=epsilon,
            sensitivity=sensitivity,
            scales=torch.from_numpy(scales),
            delta=delta,
            proof=(
                "weighted_joint_degree_sensitivity"
                if self.hparams["noise"] == "weighted"
                else "joint_degree_sensitivity"
            ),
        )
        noise_scales = scales * sensitivity / epsilon
        links = fitted_links(noisy.numpy(), cells, noise_scales, self.degrees.numpy())
        self.links = torch.from_numpy(links)

    def calibration(self, cells: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
        """Sensitivity of the joint degrees, and the scale of the noise of each cell."""
        if self.hparams["noise"] == "weighted":
            return weighted_joint_degree_sensitivity(), cells[:, 1]
        return joint_degree_sensitivity(self.largest_two), np.ones_like(cells[:, 1])

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Link half-edges of the released degrees at random, as the joint degrees want it."""
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        classes, totals, degrees = self._classes()
        mixing = stub_mixing(self.links.cpu().numpy(), totals)
        mixing[np.diag_indices(len(mixing))] /= 2
        wanted = np.tril(np.rint(mixing).astype(np.int64))
        stubs = np.repeat(np.arange(len(degrees)), degrees)
        pairs, is_used = fill_links(stubs, classes[stubs], wanted, rng)
        # What is a fraction of a link each, is a matter of chance.
        left, rest = stubs[~is_used], np.maximum(np.tril(mixing) - wanted, 0)
        pairs = np.concatenate([pairs, pair_stubs(left, classes[left], rest, rng)])
        pairs = untangle(pairs, classes, rng)
        nothing = np.empty((0, 2), dtype=np.int64)
        return torch.from_numpy(link_pairs(pairs, nothing, len(degrees), rng))

    def score(self, pairs: Tensor) -> Tensor:
        """Expected number of edges of pairs of shape ``(P, 2)``, could they repeat: ``(P,)``."""
        classes, totals, degrees = self._classes()
        mixing = stub_mixing(self.links.cpu().numpy(), totals)
        share = degrees / np.maximum(totals[classes], 1)
        first, second = pairs.cpu().numpy().T
        links = mixing[classes[first], classes[second]]
        return torch.from_numpy(links * share[first] * share[second])

    def _classes(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Class of each node, sum of the degrees of each class, degree of each node."""
        degrees = self.degrees.cpu().numpy()
        values, classes, sizes = np.unique(degrees, return_inverse=True, return_counts=True)
        return classes, values * sizes, degrees
