"""NodeDegrees: the degree distribution, with noise for all edges of a node and no assumption."""

import math
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor, nn

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.degrees import project_degrees
from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.graph.stubs import draw_links
from lightning_dpg.methods.constraints import Constraints, either
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.degree_release import smooth_descent
from lightning_dpg.methods.single_graph.max_degree import MAX_DEGREE
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.sensitivity.degrees import projected_degree_sensitivity

# From this share of the nodes on, the noise of a count is most of what is released.
_LARGE_NOISE = 0.1


class NodeDegrees(OneShotSynthesizer):
    r"""Random graphs with a degree distribution that is private at the level of nodes.

    1. Goes through the edges in a public pseudo-random order, and keeps an edge if both its ends
       have fewer than D kept edges, see :func:`project_degrees`.
    2. Counts, for each j from 1 to D, the nodes with j or more kept edges, and releases these D
       counts with discrete Laplace noise. One node, with whatever edges come and go, changes all of
       them together by at most 2D, see :func:`projected_degree_sensitivity`.
    3. Smooths the counts, see :func:`smooth_descent`, and reads off the degrees and half their sum,
       the number of edges.

    A graph is *unlabeled*: each drawn one gives the degrees to the nodes in a new random order, and
    pairs half-edges at random. All pairs of nodes are equally likely to be linked.

    When to use:
        For the degrees and the number of edges of a large graph, if a person with all their
        relations is a node and has to be protected. The noise of a count has scale 2D / epsilon,
        beside N nodes: with the default of D it is below a tenth of N from N = 400 / epsilon on,
        and a run warns if it is not. Degrees beyond D lose their edges. For links take
        :class:`NodeAttributeMoments`, if attributes are public and degrees are known to be bounded.
        For the protection of single edges take :class:`BTER` or :class:`ChungLu`.

    Privacy:
        Pure epsilon-DP at the level of nodes: all edges of one node are removed, or exchanged for
        any others; the node stays. The guarantee has no condition: edges beyond D are left out, not
        assumed to be absent. It needs no delta. The set of nodes is public. One changed link is one
        change of this relation, since one of its ends is rewired.

    Cost:
        Time is O((N + M) log(N + M)) and memory O(N + M), with no limit on N.

    Differences from the paper:
        The paper protects a node that comes or goes with its edges, and has smaller bounds: D + 1
        for cumulative counts. They do not hold for a node that stays. It chooses D privately; here D
        is a rule of public facts. Triangles are not released. One node may change which edges the
        projection keeps all over the graph, and no useful bound on triangles is known.

    * Day, Li, Lyu, "Publishing graph degree distribution with node differential privacy", 2016.
    * Hay, Li, Miklau, Jensen, "Accurate estimation of the degree distribution of private networks",
      2009.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        max_degree: Degree D (public) beyond which edges are left out; by default
            :math:`\sqrt{\epsilon N}`, chosen on degrees that follow Pareto, log-normal and Poisson
            laws. A larger D loses fewer edges and needs more noise. It must be chosen without
            looking at the graph.
    """

    relation = Relation.NODE

    constraints: ClassVar[Constraints] = {"max_degree": either(None, MAX_DEGREE)}

    def __init__(self, num_nodes: int | None = None, max_degree: int | None = None) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.degrees: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the counts; the number of steps has no effect."""
        return [
            self.read(
                "degree_counts",
                "nodes of each degree or more",
                budget,
                projected_degree_sensitivity,
                self.degree_bound(budget.epsilon),
            )
        ]

    def degree_bound(self, epsilon: float) -> int:
        """Degree D beyond which edges are left out: the setting, or the rule, below N in any case."""
        num_nodes: int | None = self.hparams["num_nodes"]
        bound: int | None = self.hparams["max_degree"]
        if num_nodes is None:
            if bound is None:
                raise Refusal("max_degree follows from num_nodes: give one of both")
            return bound
        if bound is None:
            bound = (
                math.ceil(math.sqrt(epsilon * num_nodes)) if math.isfinite(epsilon) else num_nodes
            )
        return max(min(bound, num_nodes - 1), 1)

    def on_fit_start(self) -> None:
        """Copy the public facts of the data; warn of noise that drowns the counts."""
        super().on_fit_start()
        num_nodes, epsilon = self.hparams["num_nodes"], self.budget.epsilon
        bound = self.degree_bound(epsilon)
        (read,) = self.plan(self.budget, 1)
        scale = read.scale
        if not self.is_released and scale > _LARGE_NOISE * num_nodes:
            rank_zero_warn(
                f"each count of nodes has noise of scale {scale:.3g}, beside {num_nodes:,} nodes\n"
                f"take more than {scale / _LARGE_NOISE:,.0f} nodes, a larger epsilon, or a max_degree "
                f"below {bound}"
            )

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the counts, and keep the degrees that they imply."""
        read, num_nodes = reads["degree_counts"], self.hparams["num_nodes"]
        bound = self.degree_bound(self.budget.epsilon)
        counts = counts_at_least(source.edges.numpy(), num_nodes, bound)
        noisy = self.pay(read, torch.from_numpy(counts))
        self.degrees = torch.from_numpy(degrees_by_counts(noisy.numpy(), num_nodes, read.scale))
        self.num_edges = self.degrees.sum() // 2

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Give the degrees to the nodes in a random order, and pair half-edges at random."""
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        degrees = rng.permutation(self.degrees.cpu().numpy())
        return torch.from_numpy(draw_links(degrees, [], rng))

    def score(self, pairs: Tensor) -> Tensor:
        """Return equal scores for all pairs of shape ``(P, 2)``: shape ``(P,)``."""
        return torch.zeros(len(pairs))


def counts_at_least(edges: NDArray[np.int64], num_nodes: int, max_degree: int) -> NDArray[np.int64]:
    """Count the nodes with j or more kept edges, for j from 1 to D, shape ``(D,)`` (private)."""
    projected = edges[project_degrees(edges, num_nodes, max_degree)]
    degrees = np.bincount(projected.ravel(), minlength=num_nodes)
    sizes = np.bincount(degrees, minlength=max_degree + 1)
    return num_nodes - np.cumsum(sizes)[:-1]


def degrees_by_counts(
    noisy: NDArray[np.int64], num_nodes: int, noise_scale: float
) -> NDArray[np.int64]:
    """Read degrees off noisy numbers of nodes of at least each degree.

    Args:
        noisy: Noisy numbers of nodes of degree j or more, for j from 1 to D, shape ``(D,)``.
        num_nodes: Number of nodes N.
        noise_scale: Scale of the Laplace noise.

    Returns:
        Descending degrees of even sum, shape ``(N,)``.
    """
    # All nodes have a degree of at least 0, which is where the interpolation begins.
    smooth, _ = smooth_descent(np.concatenate([[num_nodes], noisy]), noise_scale)
    counts = np.rint(np.clip(np.minimum.accumulate(smooth[1:]), 0, num_nodes)).astype(np.int64)
    # The k-th largest degree is the number of j that k or more nodes reach.
    degrees = len(counts) - np.searchsorted(counts[::-1], np.arange(1, num_nodes + 1))
    if degrees.sum() % 2:
        degrees[np.flatnonzero(degrees)[-1]] -= 1
    return degrees
