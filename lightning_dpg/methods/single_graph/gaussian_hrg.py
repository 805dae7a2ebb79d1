"""HRG with Gaussian noise in the numbers of edges of branches."""

import math
from typing import ClassVar

import torch
from pytorch_lightning.utilities import rank_zero_info
from torch import Tensor

from lightning_dpg.interfaces import GraphRecords
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer, num_edges_entry
from lightning_dpg.methods.single_graph.degree_release import check_shares
from lightning_dpg.methods.single_graph.dendrogram_chain import (
    BRANCHES,
    DendrogramChain,
    divided_edges,
    edge_shares,
    fitted_counts,
    hrg_parts,
    placed_edges,
)
from lightning_dpg.privacy.calibration import calibrate_gaussian
from lightning_dpg.privacy.ledger import Budget, LedgerEntry
from lightning_dpg.privacy.mechanisms import gaussian
from lightning_dpg.privacy.sensitivity import branch_sensitivity

# Below this delta, rounding could make Gaussian noise exceed its share.
_MARGIN = 1 + 1e-9


class GaussianHRG(OneShotSynthesizer):
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

    def __init__(
        self,
        num_nodes: int | None = None,
        steps_per_node: int | None = None,
        count_share: float = 0.05,
        dendrogram_share: float = 0.5,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        check_shares(count_share=count_share, dendrogram_share=dendrogram_share)
        self.chain = DendrogramChain(num_nodes, steps_per_node)
        self.dendrogram: Tensor
        self.counts: Tensor
        self.register_buffer("dendrogram", torch.empty(0, 3, dtype=torch.long))
        self.register_buffer("counts", torch.empty(0, dtype=torch.long))

    def take_num_nodes(self, num_nodes: int) -> None:
        """Keep the public number of nodes, also for the chain."""
        super().take_num_nodes(num_nodes)
        self.chain = DendrogramChain(num_nodes, self.hparams["steps_per_node"])

    def training_step(self, batch: GraphRecords, batch_idx: int) -> None:
        """Make the releases, and log the progress of the chain (private)."""
        super().training_step(batch, batch_idx)
        self.chain.log(self.trainer.loggers)

    def on_fit_start(self) -> None:
        """Copy the public facts of the data; report the chain's memory of its start."""
        super().on_fit_start()
        line = self.chain.memory()
        if not self.is_released:
            rank_zero_info(line)
        said = f"that {line[0].lower()}{line[1:].removesuffix('.')}"
        self.assumptions.append(f"{said} (edges may slow it down, which is not checked)")

    def condition(self) -> str:
        """Condition of the guarantee: the chain is stationary."""
        return self.chain.condition()

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Also refuse a short chain; a release of 0.1.0 with a short chain still opens."""
        super().check_budget(budget, steps)
        self.chain.check()

    def delta_setting(self) -> str:
        """Setting that spends delta: the noise of the branch counts."""
        return "GaussianHRG"

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the number of edges, a dendrogram and its branch counts, for any steps."""
        parts = self._parts(budget.epsilon)
        branches = LedgerEntry(
            key="branch_edges",
            name=BRANCHES,
            relation=self.relation,
            mechanism="gaussian",
            sensitivity=branch_sensitivity(),
            noise_multiplier=branch_noise(parts["branches"].epsilon, budget.delta),
            proof="branch_sensitivity",
        )
        return [
            num_edges_entry(parts["count"].epsilon),
            self.chain.planned(parts["dendrogram"].epsilon),
            branches,
        ]

    def _parts(self, epsilon: float) -> dict[str, Budget]:
        return hrg_parts(epsilon, self.hparams["count_share"], self.hparams["dendrogram_share"])

    def release(self, edges: Tensor, epsilon: float) -> None:
        """Release the number of edges, a dendrogram, and the edge counts of its branches."""
        parts = self._parts(epsilon)
        delta = self.budget.delta  # read before anything is booked
        self.release_num_edges(edges, parts["count"].epsilon)
        self.dendrogram = self.chain.choose(
            edges, self.ledger, self.noise, parts["dendrogram"].epsilon
        )
        noisy = gaussian(
            divided_edges(self.dendrogram, edges),
            self.ledger,
            self.noise,
            key="branch_edges",
            name=BRANCHES,
            sensitivity=branch_sensitivity(),
            noise_multiplier=branch_noise(parts["branches"].epsilon, delta),
            proof="branch_sensitivity",
        )
        self.counts = fitted_counts(self.dendrogram, noisy, int(self.num_edges))

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Place the released numbers of edges at random between the sides of their branches."""
        return placed_edges(self.dendrogram, self.counts, generator)

    def score(self, pairs: Tensor) -> Tensor:
        """Share of the pairs of a branch that are edges, for pairs of shape ``(P, 2)``: ``(P,)``."""
        return edge_shares(self.dendrogram, self.counts, pairs)


def branch_noise(epsilon: float, delta: float) -> float:
    """Noise multiplier of the edges of branches; 0 for an infinite epsilon."""
    return _MARGIN * calibrate_gaussian(Budget(epsilon, delta)) if math.isfinite(epsilon) else 0.0
