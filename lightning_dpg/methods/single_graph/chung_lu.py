"""Chung-Lu: private degrees, and random edges given the degrees."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.graph.expected_degrees import chung_lu_pieces, edges_by_degrees
from lightning_dpg.interfaces import ALL_KINDS
from lightning_dpg.methods.planning import Reads, check_shares
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry


class ChungLu(OneShotSynthesizer):
    """Random graphs with private degrees and nothing else: the degree-only baseline.

    Releases the number of edges, the ordered degrees and the degree of each node with discrete
    Laplace noise, see :func:`release_degrees`, and draws edges in proportion to the products of
    degrees. Of a directed graph these are out-degrees and in-degrees, of a bipartite one the degrees
    of both sides.

    When to use:
        As a baseline: a method that does not beat it has learned nothing beyond the degrees. For
        links among all pairs, if the mean degree is below 30 / epsilon; from 30 / epsilon on
        :class:`PrivGraph` is better, and from an epsilon of 5 on :class:`RandomizedResponse`. Among
        pairs of equal degrees it is chance. For triangles and clustering take :class:`BTER`.

    Privacy:
        Pure epsilon-DP at the level of edges: one undirected edge is added or removed; of a directed
        graph one ordered pair, of a bipartite one an edge between the sides. The guarantee has no
        condition and needs no delta. The set of nodes, and the side of each, are public.

    Cost:
        Time is O((N + M) log(N + M)) and memory O(N + M), with no limit on N. A release of a
        million edges or more is written while it is drawn, with memory O(N) beside a piece of it.

    Differences from the paper:
        The degrees are private. The paper decides on each pair of nodes by itself; here the
        released number of edges is drawn, and the weights of nodes are fitted so that the degrees
        hold although no edge is repeated, see :func:`edge_weights`.

    * Chung, Lu, "The average distances in random graphs with given expected degrees", 2002.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        count_share: Share of the budget for the number of edges.
        sequence_share: Share of the budget for the ordered degrees; the degree of each node gets
            the rest.
    """

    capabilities = replace(OneShotSynthesizer.capabilities, kinds=ALL_KINDS)

    def __init__(
        self,
        num_nodes: int | None = None,
        count_share: float = 0.05,
        sequence_share: float = 0.25,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        check_shares(count_share=count_share, sequence_share=sequence_share)
        self.degrees: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan the degrees; the number of steps has no effect."""
        shares = {name: self.hparams[name] for name in ("count_share", "sequence_share")}
        return degree_entries(budget, self.edge_record, **shares)

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release the degrees with the whole budget."""
        self.num_edges, self.degrees = release_degrees(self, source, reads)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw ``num_edges`` edges in proportion to the products of degrees."""
        return edges_by_degrees(self.space, self.degrees.cpu(), int(self.num_edges), generator)

    def edge_blocks(self, generator: torch.Generator) -> Iterator[Tensor]:
        """Draw the edges in pieces, which are independent of each other, see ``weighted_pairs``.

        The pieces of a graph of a million edges or more are those of :meth:`sample_edges` for an
        equal generator. Directed and bipartite graphs are one piece.
        """
        if len(self.space.parts) > 1:
            yield self.sample_edges(generator)
            return
        yield from chung_lu_pieces(self.degrees.cpu(), int(self.num_edges), generator)

    def score(self, pairs: Tensor) -> Tensor:
        """Product of the released degrees of pairs of shape ``(P, 2)``: shape ``(P,)``."""
        return self.degrees.double()[self.space.ends(pairs)].prod(dim=1)
