"""PrivGraph: private communities, and edges within and between them."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lightning_dpg.graph.communities import (
    HUB_PASSES,
    Turns,
    block_mixing,
    cell_mixing,
    class_cells,
    class_ratios,
    count_class_links,
    end_classes,
    is_two_sided,
    nearest_counts,
    no_pairs,
    right_share,
    sharpened_links,
)
from lightning_dpg.graph.edge_statistics import GraphStatisticsSource
from lightning_dpg.graph.stubs import count_links, draw_links, stub_mixing
from lightning_dpg.graph.wedges import count_label_wedges, wedge_slots
from lightning_dpg.interfaces import ALL_KINDS
from lightning_dpg.methods.constraints import Constraints, at_least, either
from lightning_dpg.methods.planning import Reads, check_shares
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.bter import degree_classes
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.selection import choose_in_turns
from lightning_dpg.privacy.sensitivity.degrees import edge_partition_sensitivity
from lightning_dpg.privacy.sensitivity.neighbor_sums import earlier_neighbor_sensitivity
from lightning_dpg.privacy.sensitivity.subgraph_counts import label_wedge_sensitivity

# Tuned on planted partitions: with fewer communities, selections are more reliable.
_COMMUNITIES_PER_EPSILON = 5
_FEWEST_COMMUNITIES = 3
_MOST_COMMUNITIES = 32
# Beyond so many communities, pairs of communities and classes are too many to count and to draw.
_MOST_WITH_CLASSES = 64
# Public seed of the choice of wedges.
_PUBLIC_SEED = 0


class PrivGraph(OneShotSynthesizer):
    """Graphs with private communities of nodes and private degrees: a block model (PrivGraph).

    1. Releases the number of edges and the degree of each node, see :func:`release_degrees`.
    2. Each node of the largest released degrees starts a community. The others follow by descending
       degrees, in turns: each selects, by permute and flip, the community to which it has the most
       edges beyond ``resolution`` times those expected by chance. Only edges to nodes of earlier
       turns count: each edge is read once, by one end. In an undirected graph whose few hubs are linked
       densely for the budget, these select three times, from the edges between hubs at a third of the budget
       each, see :class:`Turns`.
    3. Releases the edges within and between communities with discrete Laplace noise and rounds them
       to the nearest possible counts of the released sum.
    4. Releases how many of the wedges of :func:`count_wedges` have ends of one community, and how many
       have not, with discrete Laplace noise; sensitivity 4, see :func:`label_wedge_sensitivity`. Labels
       are noisy, so that communities seem to be linked more than they are; these numbers show by how
       much, see :func:`right_share`. The drawn graphs have the links of right labels.
    5. Releases how many edges within communities, and how many between them, link classes a and b of
       degrees, powers of two apart, with discrete Laplace noise; sensitivity 1. These numbers show which
       nodes hold the edges between communities, and whether hubs are linked to each other.
    6. Draws graphs with these degrees and next to as many edges between each two communities, by the
       classes of their ends, see :func:`cell_mixing`; those within a community have the rest of its
       degrees, see :func:`draw_links`. Hubs of more edges than their community has nodes have more of
       them to others.

    In a directed graph a node selects its community by edges in both directions. Its edges are
    counted by the communities of their first and of their second end, as in a bipartite graph.
    There the two sides take turns, and the first communities are on the smaller side. Neither has
    wedges of step 4 or classes of step 5; the selections get their shares. With more than 64
    communities there are no classes either.

    :meth:`score` takes the released links as they are, since it ranks pairs by labels that may be wrong.

    When to use:
        For the communities of a graph, for links from a mean degree of 30 / epsilon on, and for links
        beyond degrees. For both, :class:`RandomizedResponse` is better at a larger epsilon, from 5 on
        or earlier on dense graphs. For triangles and clustering take
        :class:`BTER`. On a sparse graph of many small communities compare it with :class:`PrivCom`
        and :class:`BTER` first.

    Privacy:
        Pure epsilon-DP at the level of edges: one undirected edge is added or removed; of a directed
        graph one ordered pair, of a bipartite one an edge between the sides. The guarantee has no
        condition and needs no delta. The set of nodes, and the side of each, are public.

    Cost:
        Time is O((N + M) log(N + M)) and memory O(N + M) for the default of at most 32 communities,
        with no limit on N. Both also grow with the square of the number of communities. A draw takes
        longer where hubs fill their communities: four seconds for 5,201 nodes and 198,000 edges.

    Differences from the paper:
        The paper starts from communities of random groups of nodes, which carry almost no
        information at small budgets, and counts each edge at both ends in the selections. Here the
        nodes of the largest released degrees start the communities, each edge counts at one end,
        and permute and flip takes the place of the exponential mechanism, since it never chooses
        worse. The paper draws the edges within and between communities by their noisy numbers as they
        are; here the wedges correct these for wrong labels. Classes of degrees are an addition.

    * Yuan et al., "PrivGraph: Differentially Private Graph Data Publication by Exploiting Community
      Information", 2023.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        num_communities: Number of communities (public); by default in proportion to the budget.
        degree_share: Share of the budget for the number of edges and the degrees.
        block_share: Share of the budget for the edges within and between communities.
        wedge_share: Share of the budget for the wedges by communities of their ends, in undirected
            graphs.
        class_share: Share of the budget for the edges between classes of degrees, in undirected graphs;
            the selections of communities get the rest.
        resolution: Weight of the edges expected by chance; larger values favor small communities.
    """

    capabilities = replace(OneShotSynthesizer.capabilities, kinds=ALL_KINDS)

    constraints: ClassVar[Constraints] = {"num_communities": either(None, at_least(1))}

    def __init__(
        self,
        num_nodes: int | None = None,
        num_communities: int | None = None,
        degree_share: float = 0.25,
        block_share: float = 0.05,
        wedge_share: float = 0.05,
        class_share: float = 0.05,
        resolution: float = 0.5,
    ) -> None:
        super().__init__()
        check_shares(
            degree_share=degree_share,
            block_share=block_share,
            wedge_share=wedge_share,
            class_share=class_share,
        )
        self.save_hyperparameters()
        self.degrees: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))
        self.communities: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))
        self.links: Tensor = nn.Buffer(torch.empty(0, 0, dtype=torch.long))
        self.right_share: Tensor = nn.Buffer(torch.tensor(1.0, dtype=torch.double))
        # Empty where no classes were read, as in earlier releases.
        self.class_ratios: Tensor = nn.Buffer(torch.empty(2, 0, 0, dtype=torch.double))

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan degrees, communities, edges between these, wedges and classes; the steps have no effect."""
        h = self.hparams
        shares = {"degrees": h["degree_share"], "blocks": h["block_share"]}
        if self._counts_wedges:
            shares["wedges"] = h["wedge_share"]
        counts_classes = self._counts_wedges and self._number(budget) <= _MOST_WITH_CLASSES
        if counts_classes:
            shares["classes"] = h["class_share"]
        parts = budget.split(**shares, choices=1 - sum(shares.values()))
        entries = [
            *degree_entries(parts["degrees"], self.edge_record),
            self.read(
                "communities",
                "communities",
                parts["choices"],
                earlier_neighbor_sensitivity,
                HUB_PASSES,
            ),
            self.read(
                "community_links",
                "edges within and between communities",
                parts["blocks"],
                edge_partition_sensitivity,
            ),
        ]
        if not self._counts_wedges:
            return entries
        wedges = self.read(
            "community_wedges",
            "wedges by equal or different communities of their ends",
            parts["wedges"],
            label_wedge_sensitivity,
        )
        if not counts_classes:
            return [*entries, wedges]
        classes = self.read(
            "class_links",
            "edges between classes of degrees, within communities and between them",
            parts["classes"],
            edge_partition_sensitivity,
        )
        return [*entries, wedges, classes]

    @property
    def _counts_wedges(self) -> bool:
        return self.kind == "undirected"

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release degrees, communities in their order, edges between these, wedges and classes."""
        self.num_edges, self.degrees = release_degrees(self, source, reads)
        self.release_communities(source.edges, reads["communities"])
        self.release_links(source.edges, reads["community_links"])
        if self._counts_wedges:
            self.release_wedges(source.edges, reads["community_wedges"])
        if "class_links" in reads:
            self.release_classes(source.edges, reads["class_links"])

    def _number(self, budget: Budget) -> int:
        """Number of communities: the public setting, or the one that a budget affords."""
        number: int | None = self.hparams["num_communities"]
        if number is None:
            affordable = min(_COMMUNITIES_PER_EPSILON * budget.epsilon, _MOST_COMMUNITIES)
            number = max(round(affordable), _FEWEST_COMMUNITIES)
        return min(number, self.hparams["num_nodes"])

    def release_communities(self, edges: Tensor, read: LedgerEntry) -> None:
        """Release the community of each node, from edges of shape ``(M, 2)`` (private)."""
        count = self._number(self.budget)
        turns = Turns(self.space, self.degrees, count, read.event.pure_epsilon)
        law = choose_in_turns(read, turns.stops, turns.utilities(edges, self.hparams["resolution"]))
        chosen = self.pay(read, torch.arange(count), law)
        self.communities = torch.empty_like(turns.order)
        self.communities[turns.order] = chosen[turns.last :]

    def release_links(self, edges: Tensor, read: LedgerEntry) -> None:
        """Release the edges of shape ``(M, 2)`` (private) within and between communities."""
        ends, cells = self.space.ends(edges).numpy(), class_cells(self.space, self._num_blocks)
        counts = np.zeros((cells[0].max() + 1,) * 2, dtype=np.int64)
        links = count_links(self._classes.numpy(), ends)
        counts[: len(links), : len(links)] = links
        noisy = self.pay(read, torch.from_numpy(counts[cells]))
        counts[cells] = nearest_counts(noisy.numpy(), int(self.num_edges))
        self.links = torch.from_numpy(counts)

    def release_wedges(self, edges: Tensor, read: LedgerEntry) -> None:
        """Release wedges of the edges ``(M, 2)`` (private) by the communities of their ends."""
        counts = self.wedges_by_labels(edges.numpy())
        noisy = self.pay(read, torch.from_numpy(counts))
        share = right_share(self.links.numpy(), noisy.numpy(), read.scale)
        self.right_share = torch.tensor(share, dtype=torch.double)

    def release_classes(self, edges: Tensor, read: LedgerEntry) -> None:
        """Release the edges ``(M, 2)`` (private) by classes of degrees, within and between communities."""
        counts = torch.from_numpy(self.links_by_classes(edges.numpy()))
        # Entries above the diagonals are noise only.
        noisy = self.pay(read, counts).tril().numpy()
        ratios = class_ratios(noisy, read.scale, *self._nodes, self.links.numpy())
        self.class_ratios = torch.from_numpy(ratios)

    def links_by_classes(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count edges ``(M, 2)`` by classes, between communities and within them: ``(2, C, C)``."""
        _, classes, communities = self._nodes
        return count_class_links(classes, communities, edges)

    def wedges_by_labels(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count wedges with ends of equal and of different communities, in edges ``(M, 2)``: ``(2,)``."""
        slots = wedge_slots(self.degrees.cpu().numpy())
        return count_label_wedges(edges, slots, self.communities.cpu().numpy(), _PUBLIC_SEED)

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw edges with the released degrees and edge counts of communities, see :func:`draw_links`."""
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        links = sharpened_links(self.links.cpu().numpy(), float(self.right_share))
        classes, degrees = self._classes.numpy(), self.degrees.cpu().numpy()
        two_sided, ratios = is_two_sided(self.space), self.class_ratios.cpu().numpy()
        totals = np.bincount(classes, degrees, minlength=len(links))
        mixing = block_mixing(links, totals, two_sided=two_sided)
        levels = [(classes, mixing)]
        if ratios.size:
            levels = [cell_mixing(*self._nodes, mixing, ratios), *levels]
        num_first = self.space.parts[1].start if two_sided else None
        barred = no_pairs(self.space)
        ends = draw_links(degrees, levels, rng, no_pairs=barred, num_first=num_first)
        return self.space.from_ends(torch.from_numpy(ends))

    @property
    def _nodes(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Degree, class of the degree and community of each node."""
        degrees = self.degrees.cpu().numpy()
        return degrees, degree_classes(degrees), self.communities.cpu().numpy()

    @property
    def _num_blocks(self) -> int:
        return int(self.communities.max()) + 1

    @property
    def _classes(self) -> Tensor:
        """Community of each degree: first of the first ends of pairs, then of the second ends."""
        return end_classes(self.space, self.communities, self._num_blocks)

    def score(self, pairs: Tensor) -> Tensor:
        """Expected number of edges of pairs ``(P, 2)``, repeated edges allowed: ``(P,)``."""
        classes, degrees = self._classes, self.degrees.cpu()
        totals = torch.bincount(classes, degrees, minlength=len(self.links))
        half = len(totals) // 2 if is_two_sided(self.space) else None
        mixing = stub_mixing(self.links.cpu().numpy(), totals.long().numpy(), num_first=half)
        rates = torch.from_numpy(mixing) / torch.outer(totals, totals).clamp(min=1)
        ends = self.space.ends(pairs)
        first, second = classes[ends].T
        return rates[first, second] * degrees[ends].double().prod(dim=1)
