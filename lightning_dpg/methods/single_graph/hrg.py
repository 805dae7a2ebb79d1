"""HRG: a private dendrogram, and private numbers of edges of its branches."""

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
from lightning_dpg.privacy.ledger import Budget, LedgerEntry
from lightning_dpg.privacy.mechanisms import discrete_laplace, pure_entry
from lightning_dpg.privacy.sensitivity import branch_sensitivity


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

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the number of edges, a dendrogram and its branch counts, for any steps."""
        parts = self._parts(budget.epsilon)
        moved, proof = branch_sensitivity(), "branch_sensitivity"
        branches = pure_entry("branch_edges", BRANCHES, parts["branches"].epsilon, moved, proof)
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
        self.release_num_edges(edges, parts["count"].epsilon)
        self.dendrogram = self.chain.choose(
            edges, self.ledger, self.noise, parts["dendrogram"].epsilon
        )
        noisy = discrete_laplace(
            divided_edges(self.dendrogram, edges),
            self.ledger,
            self.noise,
            key="branch_edges",
            name=BRANCHES,
            epsilon=parts["branches"].epsilon,
            sensitivity=branch_sensitivity(),
            proof="branch_sensitivity",
        )
        self.counts = fitted_counts(self.dendrogram, noisy, int(self.num_edges))

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Place the released numbers of edges at random between the sides of their branches."""
        return placed_edges(self.dendrogram, self.counts, generator)

    def score(self, pairs: Tensor) -> Tensor:
        """Share of the pairs of a branch that are edges, for pairs of shape ``(P, 2)``: ``(P,)``."""
        return edge_shares(self.dendrogram, self.counts, pairs)
