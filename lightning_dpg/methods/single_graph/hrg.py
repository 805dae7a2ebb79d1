"""HRG: a private dendrogram, and private numbers of edges of its branches."""

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from pytorch_lightning.utilities import rank_zero_info
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor

from lightning_dpg.graph.chain_memory import memory_of_start
from lightning_dpg.graph.counts import fitting_counts
from lightning_dpg.graph.dendrogram import (
    MAX_NODES,
    Dendrogram,
    branch_edges,
    branch_pairs,
    dividing_branch,
    draw_branches,
)
from lightning_dpg.interfaces import GraphRecords
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer, num_edges_entry
from lightning_dpg.methods.single_graph.degree_release import check_shares
from lightning_dpg.privacy.calibration import calibrate_gaussian
from lightning_dpg.privacy.ledger import Budget, LedgerEntry
from lightning_dpg.privacy.mechanisms import discrete_laplace, gaussian, pure_entry
from lightning_dpg.privacy.selection import choose_by_chain
from lightning_dpg.privacy.sensitivity import branch_sensitivity, log_likelihood_sensitivity

# Public: seed of the dendrogram from which the chain starts.
_PUBLIC_SEED = 0
_BRANCHES = "edges divided by each branch"
_STEPS_PER_NODE = 1000
# Below it, rounding could make Gaussian noise cost more than its share.
_MARGIN = 1 + 1e-9


def least_steps_per_node(num_nodes: int) -> int:
    r"""Steps for each node below which no guarantee is given: :math:`\max(100, N \ln N / 8)` (public).

    Without edges all dendrograms are alike likely and all moves are made. The correlation of sizes
    of branches with those at the start was then found to fall by a factor of e in about
    :math:`N^2 / 8` steps of all (N from 100 to 5,242), so that as many times :math:`\ln N` leave
    about 1 / N of it. That is necessary: how long the chain takes on a graph nobody knows.

    Args:
        num_nodes: Number of nodes N.
    """
    return max(100, math.ceil(num_nodes * math.log(max(num_nodes, 1)) / 8))


def _check_steps(num_nodes: int, steps_per_node: int) -> None:
    """Refuse so few steps that the chain cannot have forgotten where it started.

    Raises:
        MisconfigurationException: If they are too few.
    """
    least = least_steps_per_node(num_nodes)
    if steps_per_node < least:
        raise MisconfigurationException(
            f"steps_per_node {steps_per_node} is too few for {num_nodes} nodes: the chain cannot have "
            f"forgotten its start before {least}\nset it to {least} or more ({least * num_nodes:,} "
            "steps in all, some 200,000 a second), or leave it out\nPrivGraph and BTER release "
            "communities without a chain"
        )


def _branch_noise(epsilon: float, delta: float) -> float:
    """Noise multiplier of the edges of branches; 0 with an infinite budget."""
    if math.isinf(epsilon):
        return 0.0
    return _MARGIN * calibrate_gaussian(Budget(epsilon, delta))


class HRG(OneShotSynthesizer):
    r"""Hierarchical random graph: a dendrogram chosen by how likely it makes the edges.

    1. Releases the number of edges.
    2. Chooses a dendrogram by the exponential mechanism, where the utility is the log-likelihood,
       with a Markov chain (:func:`choose_by_chain`). **The guarantee is that of the chain's stationary
       law**, and holds if the chain has come to it; the privacy statement says so. The number of
       steps is public, and too few are refused (:func:`least_steps_per_node`). ``fit`` says how much
       of its start the chain would remember on the graph without edges (:func:`memory_of_start`),
       which reads nothing private. The log-likelihood on the way is private and is logged as
       ``nonprivate/log_likelihood``: where it still rises, the chain has further to go.
    3. Releases how many edges each branch divides, with discrete Laplace noise, and makes them the
       nearest possible counts of the released sum.
    4. Places these edges at random between the two sides of their branches.

    The exponent of the choice is :math:`\epsilon / 2 \Delta` with :math:`\Delta \approx 1 + 2 \ln (N /
    2)`, see :func:`log_likelihood_sensitivity`: for a thousand nodes and an epsilon of 1 likelihoods
    count by their fiftieth power, which finds little.

    ``noise: laplace`` is of pure epsilon, as the authors have it. ``noise: gaussian`` spends the whole
    delta on Gaussian noise in step 3, as Zhang et al. (2020) use HRG, but with the noise that epsilon
    and delta ask for; theirs has the variance of the Laplace noise, at a delta of 1.25 / e.

    * Xiao, Chen, Tan, "Differentially private network data release via structural inference", 2014.
    * Clauset, Moore, Newman, "Hierarchical structure and the prediction of missing links in networks",
      2008.
    * Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy",
      2020.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        noise: ``laplace`` or ``gaussian``, in the numbers of edges of branches.
        steps_per_node: Steps of the chain, for each node (public); some 200,000 of all a second. By
            default 1,000, or :func:`least_steps_per_node` if that is more.
        count_share: Share of the budget for the number of edges.
        dendrogram_share: Share of the budget for the dendrogram; the numbers of edges of branches
            get the rest.
    """

    def __init__(
        self,
        num_nodes: int | None = None,
        noise: Literal["laplace", "gaussian"] = "laplace",
        steps_per_node: int | None = None,
        count_share: float = 0.05,
        dendrogram_share: float = 0.5,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        check_shares(count_share=count_share, dendrogram_share=dendrogram_share)
        if noise not in ("laplace", "gaussian"):
            raise ValueError(f"noise must be laplace or gaussian, got {noise!r}")
        if steps_per_node is not None and steps_per_node < 1:
            raise ValueError(f"steps_per_node must be positive, got {steps_per_node}")
        if num_nodes is not None and num_nodes > MAX_NODES:
            raise MisconfigurationException(
                f"HRG keeps a bit for each node in each branch, which is too much for {num_nodes} "
                f"nodes (at most {MAX_NODES})\ntake PrivGraph or BTER"
            )
        self.dendrogram: Tensor
        self.counts: Tensor
        self.register_buffer("dendrogram", torch.empty(0, 3, dtype=torch.long))
        self.register_buffer("counts", torch.empty(0, dtype=torch.long))
        self._trace: list[tuple[int, float]] = []

    def training_step(self, batch: GraphRecords, batch_idx: int) -> None:
        """Release, and log how the chain went (private)."""
        super().training_step(batch, batch_idx)
        for step, value in self._trace:
            for logger in self.trainer.loggers:
                logger.log_metrics({"nonprivate/log_likelihood": value}, step=step)

    def on_fit_start(self) -> None:
        """Take over the public facts of the data; say what the chain would remember without edges."""
        super().on_fit_start()
        memory, usual = memory_of_start(self.hparams["num_nodes"], self._steps, _PUBLIC_SEED)
        line = (
            f"Without edges, which is public, {self._steps:,} steps of the chain over dendrograms "
            f"leave a correlation of {memory:.3f} with its start, where chains that have forgotten "
            f"it have up to {usual:.3f} in 19 of 20 cases."
        )
        if not self.is_released:
            rank_zero_info(line)
        self.assumptions.append(f"{line} Edges may slow it down, which is not checked.")

    def condition(self) -> str:
        """That the chain is stationary."""
        return (
            "the Markov chain over dendrograms has come to its stationary law within its "
            f"{self._steps:,} steps"
        )

    @property
    def _steps(self) -> int:
        size, per_node = self.hparams["num_nodes"], self.hparams["steps_per_node"]
        if per_node is None:
            per_node = max(_STEPS_PER_NODE, least_steps_per_node(size))
        return int(per_node * size)

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Also refuse too short a chain: here, since releases of 0.1.0 that had one still open."""
        super().check_budget(budget, steps)
        h = self.hparams
        if h["num_nodes"] is not None and h["steps_per_node"] is not None:
            _check_steps(h["num_nodes"], h["steps_per_node"])

    def delta_setting(self) -> str | None:
        """Gaussian noise."""
        return "noise: gaussian" if self.hparams["noise"] == "gaussian" else None

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """The number of edges, a dendrogram and the edges of its branches, whatever the steps."""
        parts = self._parts(budget.epsilon)
        dendrogram = pure_entry(
            "dendrogram",
            "dendrogram",
            parts["dendrogram"].epsilon,
            log_likelihood_sensitivity(self.hparams["num_nodes"]),
            "log_likelihood_sensitivity",
        )
        rest = parts["branches"].epsilon
        moved, proof = branch_sensitivity(), "branch_sensitivity"
        branches = pure_entry("branch_edges", _BRANCHES, rest, moved, proof)
        if self.hparams["noise"] == "gaussian":
            sigma = _branch_noise(rest, budget.delta)
            branches = replace(branches, mechanism="gaussian", epsilon=0.0, noise_multiplier=sigma)
        return [num_edges_entry(parts["count"].epsilon), dendrogram, branches]

    def _parts(self, epsilon: float) -> dict[str, Budget]:
        count, dendrogram = self.hparams["count_share"], self.hparams["dendrogram_share"]
        return Budget(epsilon, 0.0).split(
            count=count, dendrogram=dendrogram, branches=1 - count - dendrogram
        )

    def release(self, edges: Tensor, epsilon: float) -> None:
        """Release the number of edges, a dendrogram, and the numbers of edges of its branches."""
        h = self.hparams
        parts = self._parts(epsilon)
        self.release_num_edges(edges, parts["count"].epsilon)
        self.dendrogram = choose_by_chain(
            Dendrogram(edges.numpy(), h["num_nodes"], np.random.default_rng(_PUBLIC_SEED)),
            self._steps,
            self.ledger,
            self.noise,
            key="dendrogram",
            name="dendrogram",
            epsilon=parts["dendrogram"].epsilon,
            sensitivity=log_likelihood_sensitivity(h["num_nodes"]),
            proof="log_likelihood_sensitivity",
            watch=lambda step, value: self._trace.append((step, value)),
        )
        noisy = self._release_branches(edges, parts["branches"].epsilon).double().numpy()
        pairs = branch_pairs(self.dendrogram.numpy())
        self.counts = torch.from_numpy(fitting_counts(noisy, pairs, int(self.num_edges)))

    def _release_branches(self, edges: Tensor, epsilon: float) -> Tensor:
        """Release how many edges of shape ``(M, 2)`` (private) each branch divides: ``(N,)``."""
        counts = torch.from_numpy(branch_edges(self.dendrogram.numpy(), edges.numpy()))
        if self.hparams["noise"] == "laplace":
            return discrete_laplace(
                counts,
                self.ledger,
                self.noise,
                key="branch_edges",
                name=_BRANCHES,
                epsilon=epsilon,
                sensitivity=branch_sensitivity(),
                proof="branch_sensitivity",
            )
        return gaussian(
            counts,
            self.ledger,
            self.noise,
            key="branch_edges",
            name=_BRANCHES,
            sensitivity=branch_sensitivity(),
            noise_multiplier=_branch_noise(epsilon, self.budget.delta),
            proof="branch_sensitivity",
        )

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Place the released numbers of edges at random between the sides of their branches."""
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        dendrogram, counts = self.dendrogram.cpu().numpy(), self.counts.cpu().numpy()
        return torch.from_numpy(draw_branches(dendrogram, counts, rng))

    def score(self, pairs: Tensor) -> Tensor:
        """Share of the pairs of a branch that are edges, for pairs of shape ``(P, 2)``: ``(P,)``."""
        dendrogram = self.dendrogram.cpu().numpy()
        shares = self.counts.cpu().numpy() / np.maximum(branch_pairs(dendrogram), 1)
        return torch.from_numpy(shares[dividing_branch(dendrogram, pairs.cpu().numpy())])
