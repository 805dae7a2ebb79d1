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

    All is of pure epsilon, as the authors have it; :class:`GaussianHRG` spends a delta.

    * Xiao, Chen, Tan, "Differentially private network data release via structural inference", 2014.
    * Clauset, Moore, Newman, "Hierarchical structure and the prediction of missing links in networks",
      2008.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        steps_per_node: Steps of the chain, for each node (public); some 200,000 of all a second. By
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

    def training_step(self, batch: GraphRecords, batch_idx: int) -> None:
        """Release, and log how the chain went (private)."""
        super().training_step(batch, batch_idx)
        self.chain.log(self.trainer.loggers)

    def on_fit_start(self) -> None:
        """Take over the public facts of the data; say what the chain would remember without edges."""
        super().on_fit_start()
        line = self.chain.memory()
        if not self.is_released:
            rank_zero_info(line)
        self.assumptions.append(f"{line} Edges may slow it down, which is not checked.")

    def condition(self) -> str:
        """That the chain is stationary."""
        return self.chain.condition()

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Also refuse too short a chain: here, since releases of 0.1.0 that had one still open."""
        super().check_budget(budget, steps)
        self.chain.check()

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """The number of edges, a dendrogram and the edges of its branches, whatever the steps."""
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
        """Release the number of edges, a dendrogram, and the numbers of edges of its branches."""
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
