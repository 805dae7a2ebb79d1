"""PrivCom by randomized response."""

from typing import ClassVar

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import Tensor, nn

from lightning_dpg.advice import MAX_REPORT_NODES, excess_of_reports
from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.graph.pair_numbers import num_pairs, pair_ranks, pairs_of_ranks
from lightning_dpg.graph.spectral import noise_scale, shrunken, spectrum
from lightning_dpg.methods.constraints import SHARE, Constraints
from lightning_dpg.methods.planning import Reads
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.papers.zhang2020.low_rank_edges import affinity_scores, low_rank_edges
from lightning_dpg.papers.zhang2020.power_method import (
    DEGREE_SHARES,
    checked_num_nodes,
)
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry, Pure
from lightning_dpg.privacy.mechanisms import randomized_response, response_rates
from lightning_dpg.privacy.sensitivity.degrees import pair_bit_sensitivity


class RandomizedResponsePrivCom(OneShotSynthesizer):
    """Graphs with private communities, from eigenvectors of randomized responses.

    The number of edges and the degrees are released first (:func:`release_degrees`), then all pairs
    of nodes by randomized response. The leading eigenvectors of the unbiased estimate, with rows
    weighted by the excess of their degrees over the noise, give the communities. Edges are drawn as
    by :class:`PrivCom`.

    When to use:
        For communities of a graph of up to 100,000 nodes without a delta. At a small epsilon compare
        it with :class:`PrivCom` and :class:`PrivGraph`. For links take :class:`RandomizedResponse`
        with ``denoise: spectral``.

    Privacy:
        Pure epsilon-DP at the level of edges: one undirected edge is added or removed. The
        guarantee has no condition and needs no delta. The set of nodes is public.

    Cost:
        Time is O(N + K reports) up to logarithms, and memory O(N K + reports). More than 100,000
        nodes, or 50,000,000 expected false reports, are refused before anything is spent.

    Differences from the paper:
        Randomized response takes the place of the noisy steps, the relation is that of edges, and
        the matrix is the adjacency matrix in place of a Katz matrix.

    * Zhang, Ni, Fu, "Community Preserved Social Graph Publishing with Node Differential Privacy",
      2020.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        rank: Number of eigenvectors K.
        degree_share: Share of epsilon for the number of edges and the degrees.
    """

    constraints: ClassVar[Constraints] = {"degree_share": SHARE}

    def __init__(
        self, num_nodes: int | None = None, rank: int = 4, degree_share: float = 0.2
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        size = checked_num_nodes(num_nodes, rank)
        if size > MAX_REPORT_NODES:
            raise MisconfigurationException(
                "RandomizedResponsePrivCom reports on all pairs of nodes, which are too many for "
                f"{size} nodes (at most {MAX_REPORT_NODES})\ntake PrivCom or, without a delta, PrivGraph"
            )
        self.vectors: Tensor
        self.rows: Tensor
        self.signs: Tensor
        self.degrees: Tensor
        self.register_buffer("vectors", torch.zeros(size, rank, dtype=torch.double))
        self.register_buffer("rows", torch.zeros(size, rank, dtype=torch.double))
        self.register_buffer("signs", torch.ones(rank, dtype=torch.double))
        self.register_buffer("degrees", torch.zeros(size, dtype=torch.long))

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the number of edges, the degrees and the reports."""
        share = self.hparams["degree_share"]
        parts = budget.split(counts=share, reports=1 - share)
        reports = Pure(parts["reports"].epsilon)
        return [
            *degree_entries(parts["counts"], **DEGREE_SHARES),
            LedgerEntry.proved("edge_reports", "edges", reports, pair_bit_sensitivity),
        ]

    def check_budget(self, budget: Budget, steps: int = 1) -> None:
        """Refuse a budget whose false reports are too many, by public facts alone."""
        super().check_budget(budget, steps)
        excess = excess_of_reports(len(self.rows), budget.epsilon, 1 - self.hparams["degree_share"])
        if excess is not None:
            raise MisconfigurationException(f"{excess}, or take PrivCom or PrivGraph")

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the number of edges, the degrees and the reports; keep their eigenvectors."""
        read, (size, rank) = reads["edge_reports"], self.rows.shape
        self.num_edges, self.degrees = release_degrees(self, source, reads)
        law = randomized_response(read, num_pairs(size))
        numbers = self.pay(read, pair_ranks(source.edges, size), law)
        rates = response_rates(read.event.pure_epsilon)
        scale = noise_scale(self.degrees, *rates)
        eigenpairs = spectrum(pairs_of_ranks(numbers, size), size, rank, *rates, scale=scale)
        padding = (0, rank - len(eigenpairs.values))
        self.rows = nn.functional.pad(shrunken(eigenpairs), padding)
        self.vectors = nn.functional.pad(eigenpairs.vectors, padding)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw ``num_edges`` edges by degrees and angles."""
        rows, signs = self.rows.cpu(), self.signs.cpu()
        return low_rank_edges(rows, signs, self.degrees.cpu(), int(self.num_edges), generator)

    def score(self, pairs: Tensor) -> Tensor:
        """Degrees times affinity of pairs of shape ``(P, 2)``."""
        return affinity_scores(self.rows, self.signs, self.degrees, pairs)
