"""HRG: a private dendrogram, and private numbers of edges of its branches."""

from lightning_dpg.papers.xiao2014.dendrogram_chain import DendrogramSynthesizer
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import Pure


class HRG(DendrogramSynthesizer):
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

    def branch_noise(self, budget: Budget) -> Pure:
        """Discrete Laplace noise of their share of epsilon."""
        return Pure(budget.epsilon)
