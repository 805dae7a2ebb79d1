"""HRG: a private dendrogram, and private numbers of edges of its branches."""

import math
from typing import ClassVar

import numpy as np
import torch
from pytorch_lightning.utilities import rank_zero_only
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from lightning_dpg.graph.counts import fitting_counts
from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.interfaces import GraphRecords
from lightning_dpg.methods.base import needed_num_nodes
from lightning_dpg.methods.constraints import Constraints, at_least, either
from lightning_dpg.methods.planning import Reads, check_shares
from lightning_dpg.methods.single_graph.base import (
    OneShotSynthesizer,
    noisy_num_edges,
    num_edges_entry,
)
from lightning_dpg.outcome import note
from lightning_dpg.papers.xiao2014.dendrogram import (
    MAX_NODES,
    Dendrogram,
    branch_edges,
    branch_pairs,
    dividing_branch,
    draw_branches,
    memory_of_start,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure
from lightning_dpg.privacy.selection import choose_by_chain
from lightning_dpg.privacy.sensitivity.degrees import branch_sensitivity
from lightning_dpg.privacy.sensitivity.fitting import log_likelihood_sensitivity

_BRANCHES = "edges divided by each branch"
# Public seed of the dendrogram at the start of the chain.
_PUBLIC_SEED = 0
_STEPS_PER_NODE = 1000


def least_steps_per_node(num_nodes: int) -> int:
    r"""Steps for each node below which no guarantee is given: :math:`\max(100, N \ln N / 8)` (public).

    Without edges, all dendrograms are equally likely and all moves are made. In measurements, the
    correlation of branch sizes with those at the start fell by a factor of e in about :math:`N^2 /
    8` steps (N from 100 to 5,242); :math:`\ln N` times as many leave about 1 / N of it.
    This is a necessary number: the mixing time on a graph with edges is unknown.

    Args:
        num_nodes: Number of nodes N.
    """
    return max(100, math.ceil(num_nodes * math.log(max(num_nodes, 1)) / 8))


class HRG(OneShotSynthesizer):
    r"""Graphs from a privately selected binary tree of the nodes: hierarchical random graph (HRG).

    1. Releases the number of edges.
    2. Selects a dendrogram by the exponential mechanism, with the log-likelihood as utility and a
       Markov chain (:func:`choose_by_chain`). ``fit`` reports the chain's memory of its start on
       the graph without edges (:func:`memory_of_start`), which reads nothing private. The
       log-likelihood of the chain is private and is logged as ``nonprivate/log_likelihood``: if it
       still rises, the chain needs more steps.
    3. Releases the number of edges that each branch divides, with discrete Laplace noise, and
       rounds these to the nearest possible counts of the released sum.
    4. Places these edges at random between the two sides of their branches.

    The exponent of the selection is :math:`\epsilon / 2 \Delta` with
    :math:`\Delta \approx 1 + 2 \ln (N / 2)`, see :func:`log_likelihood_sensitivity`: for a thousand
    nodes and an epsilon of 1, the selection uses about the 50th root of the likelihood, which finds
    little structure.

    When to use:
        To compare with published results of this method. For communities take :class:`PrivGraph`,
        and for the shape of a graph :class:`BTER`: their guarantees have no condition, and they
        need no chain.

    Privacy:
        Pure epsilon-DP at the level of edges (one undirected edge is added or removed), **if** the
        Markov chain has come to its stationary distribution, which is not checked; the privacy
        statement says so. The number of steps is public, and too few are refused
        (:func:`least_steps_per_node`). The set of nodes is public.

    Cost:
        The chain takes the larger of 1,000 and N ln(N) / 8 steps for each node by default. Memory
        grows with the square of N, and more than 20,000 nodes are refused.

    Differences from the paper:
        The number of steps is a public setting, because the likelihood, by which one would see that
        the chain is stationary, is private. The condition of the guarantee is named. The number of
        edges is released first, and the counts of branches are rounded to possible counts of that
        sum.

    * Xiao, Chen, Tan, "Differentially private network data release via structural inference", 2014.
    * Clauset, Moore, Newman, "Hierarchical structure and the prediction of missing links in
      networks", 2008.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        steps_per_node: Steps of the chain per node (public); a second takes about 200,000 steps. By
            default 1,000, or :func:`least_steps_per_node` if that is more.
        count_share: Share of the budget for the number of edges.
        dendrogram_share: Share of the budget for the dendrogram; the numbers of edges of branches
            get the rest.
    """

    constraints: ClassVar[Constraints] = {"steps_per_node": either(None, at_least(1))}

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
        _check_size(num_nodes)
        self.trace: list[tuple[int, float]] = []  # log-likelihoods by steps of the chain (private)
        self.dendrogram: Tensor = nn.Buffer(torch.empty(0, 3, dtype=torch.long))
        self.counts: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))

    @property
    def chain_steps(self) -> int:
        """Steps of the chain."""
        num_nodes = needed_num_nodes(self.hparams["num_nodes"])
        least = max(_STEPS_PER_NODE, least_steps_per_node(num_nodes))
        return num_nodes * (self.hparams["steps_per_node"] or least)

    def take_num_nodes(self, num_nodes: int) -> None:
        """Keep the public number of nodes, if a chain can have as many."""
        super().take_num_nodes(num_nodes)
        _check_size(num_nodes)

    def training_step(self, batch: GraphRecords, batch_idx: int) -> None:
        """Make the releases, and log the progress of the chain (private)."""
        super().training_step(batch, batch_idx)
        for step, value in self.trace:
            for logger in self.trainer.loggers:
                logger.log_metrics({"nonprivate/log_likelihood": value}, step=step)

    def on_fit_start(self) -> None:
        """Copy the public facts of the data; report the chain's memory of its start."""
        super().on_fit_start()
        steps = self.chain_steps
        memory, usual = memory_of_start(self.hparams["num_nodes"], steps, _PUBLIC_SEED)
        line = (
            f"Without edges, which is public, {steps:,} steps of the chain over dendrograms "
            f"leave a correlation of {memory:.3f} with its start, where chains that have forgotten "
            f"it have up to {usual:.3f} in 19 of 20 cases."
        )
        if not self.is_released:
            rank_zero_only(note)(line)
        fact = f"that {line[0].lower()}{line[1:].removesuffix('.')}"
        self.assumptions.append(f"{fact} (edges may slow it down, which is not checked)")

    def condition(self) -> str:
        """Condition of the guarantee: the chain is stationary."""
        return (
            "the Markov chain over dendrograms has come to its stationary law within its "
            f"{self.chain_steps:,} steps"
        )

    def _check_budget(self, budget: Budget) -> None:
        """Also refuse a chain that is too short to have mixed; its release still opens."""
        super()._check_budget(budget)
        num_nodes, steps_per_node = self.hparams["num_nodes"], self.hparams["steps_per_node"]
        if num_nodes is None or steps_per_node is None:
            return
        least = least_steps_per_node(num_nodes)
        if steps_per_node < least:
            raise MisconfigurationException(
                f"steps_per_node {steps_per_node} is too few for {num_nodes} nodes: the chain cannot "
                f"have forgotten its start before {least}\nset it to {least} or more "
                f"({least * num_nodes:,} steps in all, some 200,000 a second), or leave it out\n"
                "PrivGraph and BTER release communities without a chain"
            )

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the number of edges, a dendrogram and its branch counts, for any steps."""
        count, dendrogram = self.hparams["count_share"], self.hparams["dendrogram_share"]
        rest = 1 - count - dendrogram
        parts = budget.split(count=count, dendrogram=dendrogram, branches=rest)
        return [
            num_edges_entry(parts["count"].epsilon),
            LedgerEntry.proved(
                "dendrogram",
                "dendrogram",
                Pure(parts["dendrogram"].epsilon),
                log_likelihood_sensitivity,
                needed_num_nodes(self.hparams["num_nodes"]),
                public={"steps of the chain": self.chain_steps},
            ),
            self.read("branch_edges", _BRANCHES, parts["branches"], branch_sensitivity),
        ]

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the number of edges, a dendrogram, and the edge counts of its branches."""
        self.num_edges = noisy_num_edges(self, source, reads)
        read, public = reads["dendrogram"], np.random.default_rng(_PUBLIC_SEED)
        start = Dendrogram(source.edges.numpy(), self.hparams["num_nodes"], public)
        law = choose_by_chain(
            read, self.chain_steps, watch=lambda step, value: self.trace.append((step, value))
        )
        self.dendrogram = self.pay(read, start, law)
        tree = self.dendrogram.numpy()
        divided = torch.from_numpy(branch_edges(tree, source.edges.numpy()))
        noisy = self.pay(reads["branch_edges"], divided).double().numpy()
        counts = fitting_counts(noisy, branch_pairs(tree), int(self.num_edges))
        self.counts = torch.from_numpy(counts)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Place the released numbers of edges at random between the sides of their branches."""
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        tree, counts = self.dendrogram.cpu().numpy(), self.counts.cpu().numpy()
        return torch.from_numpy(draw_branches(tree, counts, rng))

    def score(self, pairs: Tensor) -> Tensor:
        """Share of the pairs of a branch that are edges, for pairs of shape ``(P, 2)``: ``(P,)``."""
        tree = self.dendrogram.cpu().numpy()
        shares = self.counts.cpu().numpy() / np.maximum(branch_pairs(tree), 1)
        return torch.from_numpy(shares[dividing_branch(tree, pairs.cpu().numpy())])


def _check_size(num_nodes: int | None) -> None:
    if num_nodes is not None and num_nodes > MAX_NODES:
        raise MisconfigurationException(
            f"HRG keeps a bit for each node in each branch, which is too much for {num_nodes} "
            f"nodes (at most {MAX_NODES})\ntake PrivGraph or BTER"
        )
