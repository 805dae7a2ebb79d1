"""HRG with Gaussian noise in the numbers of edges of branches."""

import math
from typing import ClassVar

from lightning_dpg.papers.xiao2014.dendrogram_chain import DendrogramSynthesizer
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.calibration import calibrate_gaussian
from lightning_dpg.privacy.events import Gaussian

# Below this delta, rounding could make Gaussian noise exceed its share.
_MARGIN = 1 + 1e-9


class GaussianHRG(DendrogramSynthesizer):
    """Hierarchical random graph like HRG, with Gaussian noise in the numbers of edges.

    It makes the same releases as :class:`HRG`, under the same condition on the Markov chain. The
    branch counts have Gaussian noise, which spends the whole delta, as in the baseline HRG of Zhang
    et al. (2020).

    When to use:
        To compare with that baseline. Otherwise take :class:`HRG`, which needs no delta, or
        :class:`PrivGraph` and :class:`BTER`, whose guarantees have no condition.

    Privacy:
        (epsilon, delta)-DP at the level of edges (one undirected edge is added or removed), **if**
        the Markov chain has come to its stationary distribution, which is not checked. The set of
        nodes is public.

    Cost:
        As :class:`HRG`: the larger of 1,000 and N ln(N) / 8 steps for each node by default, memory
        that grows with the square of N, and at most 20,000 nodes.

    Differences from the paper:
        The noise is calibrated to epsilon and delta. The noise of Zhang et al. has the variance of
        the Laplace noise, which holds only at a delta of 1.25 / e.

    * Xiao, Chen, Tan, "Differentially private network data release via structural inference", 2014.
    * Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy",
      2020.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        steps_per_node: Steps of the chain per node (public); a second takes about 200,000 steps. By
            default 1,000, or :func:`least_steps_per_node` if that is more.
        count_share: Share of the budget for the number of edges.
        dendrogram_share: Share of the budget for the dendrogram; the numbers of edges of branches
            get the rest.
    """

    is_pure: ClassVar[bool] = False

    def delta_setting(self) -> str:
        """Setting that spends delta: the noise of the branch counts."""
        return "GaussianHRG"

    def branch_noise(self, budget: Budget) -> Gaussian:
        """Gaussian noise of their share of epsilon and the whole delta."""
        is_protected = math.isfinite(budget.epsilon)
        return Gaussian(_MARGIN * calibrate_gaussian(budget) if is_protected else 0.0)
