"""BTER: private degrees, private clustering by degree, and blocks that reproduce both."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning.utilities import rank_zero_only
from torch import Tensor, nn

from lightning_dpg.graph.affinity_blocks import (
    block_edges,
    block_starts,
    thinned,
    within_degrees,
)
from lightning_dpg.graph.edge_statistics import CountsWedges, GraphStatisticsSource, NumberedEdges
from lightning_dpg.graph.expected_degrees import sorted_blocks
from lightning_dpg.graph.pair_numbers import near_order, pair_keys, pairs_of_keys
from lightning_dpg.graph.stubs import (
    count_links,
    draw_links,
    link_numbers,
    pair_stubs,
    shuffled,
    stub_mixing,
)
from lightning_dpg.graph.wedges import wedge_slots
from lightning_dpg.methods.planning import Reads, check_shares
from lightning_dpg.methods.single_graph.base import OneShotSynthesizer
from lightning_dpg.methods.single_graph.degree_release import degree_entries, release_degrees
from lightning_dpg.outcome import note
from lightning_dpg.privacy.budget import Budget
from lightning_dpg.privacy.events import LedgerEntry
from lightning_dpg.privacy.sensitivity.degrees import edge_partition_sensitivity
from lightning_dpg.privacy.sensitivity.subgraph_counts import wedge_sensitivity

WedgeCounts = Callable[[CountsWedges], NDArray[np.int64]]
"""Function from the counts of a graph to wedges and closed wedges by group, shape ``(2, G)``."""

# Public seed of the choice of wedges, and of the graphs that fit the densities.
_PUBLIC_SEED = 0
# Tuned on synthetic graphs: lattices, geometric, preferential-attachment and block graphs.
_CLOSURES_PER_EDGE = 2
_SLOTS_PER_NOISE = 10
_FITTING_STEPS = 8
# Large graphs vary so little that no step averages: each one divides by the response of the shares to
# clustering, which is at most one, and at least this much.
_LARGE_GRAPH = 500_000  # edges
_LARGE_FITTING_STEPS = 3
_LEAST_RESPONSE = 0.5
# Of these steps, how many may loosen the order of the nodes, by how much, and from which share of
# links on that override the released mixing. The order is tightened again where blocks of the highest
# density lack more than a share of all triangles.
_LOOSENING_STEPS = 4
_LOOSENING = 0.4
_OVERRIDING = 0.1
_LACKING = 0.05
# Share of stubs for which a graph may have no place before blocks give up half of their surplus.
_LOST = 0.01
_WIDEST = 1.25  # largest ratio of the size of a block to the mean degree in it


class BTER(OneShotSynthesizer):
    r"""Graphs with the private degrees, degree mixing and clustering of the original (BTER).

    Nodes of similar degree form blocks whose inner edges form triangles; the remaining edges of the
    nodes are drawn at random. Five releases with discrete Laplace noise:

    1. The number of edges.
    2. The degrees in descending order.
    3. The degree of each node, see :func:`release_degrees`. Released degrees from :math:`2^{k-1}`
       to :math:`2^k - 1` are class k.
    4. How many edges link classes a and b; sensitivity 1.
    5. The number of wedges and the number of closed wedges, by the class of the center; classes
       with too few wedges are merged. Only some wedges are counted, since an edge is part of many:
       the projection is :func:`count_wedges`. A node of released degree d has
       :math:`\lceil d / 4 \rceil` slots, each with at most one random pair of its neighbors, and an
       edge counts for at most two closures. Adding an edge then changes all counts together by at
       most 6 + 2, see :func:`wedge_sensitivity`.

    The rest is post-processing. Clustering within its noise is shrunk towards zero. The densities
    of blocks are fitted until the clustering of the synthetic graphs, measured like that of the
    private graph, equals the released one. A block has up to a quarter more nodes than their mean
    degree, and within it a node has links in proportion to its degree, see :func:`block_edges`. The
    order of nodes in blocks is the logarithm of their degree plus random numbers, whose deviation is
    0 where the density of a class is 1. It grows until few links override the released mixing, as
    long as the blocks still close the released share of wedges. Where blocks leave hubs too few nodes
    for the rest of their links, the links that override the released mixing are thinned. The
    remaining edges have the released mixing as nearly as blocks and degrees allow, see
    :func:`draw_links`.

    When to use:
        For the shape of a graph (degrees, triangles, clustering, path lengths) from an epsilon of
        0.5 on. For communities take :class:`PrivGraph`. For the links between given nodes take
        :class:`RandomizedResponse`, :class:`PrivGraph` or :class:`ChungLu`: each synthetic graph of
        this class draws its blocks anew.

    Privacy:
        Pure epsilon-DP at the level of edges: one undirected edge is added or removed. The
        guarantee has no condition and needs no delta. The set of nodes is public.

    Cost:
        Time is O((N + M) log(N + M)) and memory O(N + M), with no limit on N. A run draws eight
        graphs to fit the densities, and three of half a million edges or more.

    Differences from the paper:
        The privacy and the mixing of degrees are additions: blocks of equal degrees would link
        classes to themselves more often than the original does, so blocks here mix degrees. The
        paper takes the exact clustering, which one edge can change in many wedges; here an edge
        counts for few of them.
        Densities are fitted on synthetic graphs, because edges outside of blocks also close wedges.

    * Seshadhri, Kolda, Pinar, "Community structure and scale-free collections of Erdos-Renyi
      graphs", 2012.
    * Kolda, Pinar, Plantenga, Seshadhri, "A scalable generative graph model with community
      structure", 2014.

    Args:
        num_nodes: Number of nodes N (public); the command line reads it from the data.
        count_share: Share of the budget for the number of edges.
        sequence_share: Share of the budget for the ordered degrees.
        mixing_share: Share of the budget for the edges between classes.
        clustering_share: Share of the budget for the wedges; the degree of each node gets the rest.
    """

    def __init__(
        self,
        num_nodes: int | None = None,
        count_share: float = 0.05,
        sequence_share: float = 0.2,
        mixing_share: float = 0.05,
        clustering_share: float = 0.3,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        check_shares(
            count_share=count_share,
            sequence_share=sequence_share,
            mixing_share=mixing_share,
            clustering_share=clustering_share,
        )
        self.degrees: Tensor = nn.Buffer(torch.empty(0, dtype=torch.long))
        self.mixing: Tensor = nn.Buffer(torch.empty(0, 0, dtype=torch.long))
        self.densities: Tensor = nn.Buffer(torch.empty(0, dtype=torch.double))
        self.spread: Tensor = nn.Buffer(torch.tensor(0.0, dtype=torch.double))
        self.kept: Tensor = nn.Buffer(torch.tensor(1.0, dtype=torch.double))

    def plan(self, budget: Budget, steps: int) -> list[LedgerEntry]:
        """Plan degrees, mixing and wedges; the number of steps has no effect."""
        h = self.hparams
        mixing, clustering = h["mixing_share"], h["clustering_share"]
        rest = 1 - mixing - clustering
        parts = budget.split(degrees=rest, mixing=mixing, clustering=clustering)
        shares = {name: h[name] / rest for name in ("count_share", "sequence_share")}
        return [
            *degree_entries(parts["degrees"], **shares),
            self.read(
                "degree_mixing",
                "edges between classes of degrees",
                parts["mixing"],
                edge_partition_sensitivity,
            ),
            self.read(
                "wedges",
                "wedges and closed wedges by degree",
                parts["clustering"],
                wedge_sensitivity,
                _CLOSURES_PER_EDGE,
            ),
        ]

    def release(self, source: GraphStatisticsSource, reads: Reads) -> None:
        """Release degrees, mixing and clustering, and fit the densities of blocks."""
        self.num_edges, self.degrees = release_degrees(self, source, reads)
        classes = degree_classes(self.degrees.cpu().numpy())
        mixing = self.pay(reads["degree_mixing"], torch.from_numpy(source.mixing(classes)))
        # Entries above the diagonal are noise only.
        self.mixing = mixing.tril().clamp(min=0)
        counts, groups = wedge_counter(self.degrees.cpu().numpy(), reads["wedges"].scale)
        wedges = self.pay(reads["wedges"], torch.from_numpy(counts(source)))
        self._fit_blocks(wedges, counts, groups, reads)

    def _fit_blocks(
        self, noisy: Tensor, counts: WedgeCounts, groups: NDArray[np.int64], reads: Reads
    ) -> None:
        """Fit the densities and the order of blocks to the released wedges and mixing.

        Args:
            noisy: Wedges and closed wedges of each group, shape ``(2, G)`` (noisy).
            counts: Function that counts them in a graph.
            groups: Group of each class of degrees.
            reads: Planned reads, whose noise the fit allows for.
        """
        noise_scale, mixing_scale = reads["wedges"].scale, reads["degree_mixing"].scale
        degrees = self.degrees.cpu().numpy()
        classes = degree_classes(degrees)
        target = clustering = closed_shares(noisy.numpy(), noise_scale)
        pairs = np.bincount(groups[classes], degrees * (degrees - 1), minlength=len(target))
        wedges = noisy[0].clamp(min=0).numpy()
        self.spread.zero_()
        self.kept.fill_(1)
        least, fitted = math.inf, (clustering, self.spread, self.kept)
        rng = np.random.default_rng(_PUBLIC_SEED)
        is_large = int(self.num_edges) >= _LARGE_GRAPH
        steps, loosening_steps = _FITTING_STEPS, _LOOSENING_STEPS
        if is_large:  # blocks alone say how loose the order has to be, before graphs are drawn
            steps, loosening_steps = _LARGE_FITTING_STEPS, 0
            self.densities = torch.from_numpy(np.cbrt(clustering)[groups])
            for _ in range(_LOOSENING_STEPS):
                if not self._override(self._blocks(rng), mixing_scale):
                    break
                self.spread = self.spread + _LOOSENING
        for step in range(steps):
            if is_large:
                rank_zero_only(note)(f"BTER: drawing graph {step + 1} of {steps} to fit blocks")
            self.densities = torch.from_numpy(np.cbrt(clustering)[groups])
            blocks = self._blocks(rng)
            graph = NumberedEdges(self._completed(blocks, rng), len(degrees))
            lost = np.abs(graph.degrees() - degrees).sum() / max(int(degrees.sum()), 1)
            shares = closed_shares(counts(graph), noise_scale=0.0)
            error = target - shares
            missed = float(np.abs(error) @ wedges)
            if step >= _LOOSENING_STEPS and missed < least:
                least, fitted = missed, (clustering, self.spread, self.kept)
            if is_large:
                change = error / _response(shares, clustering)
            else:  # the last steps decrease, which averages the randomness of single small graphs
                change = error / (1 + max(step - _LOOSENING_STEPS, 0) / 2)
            clustering = np.clip(clustering + change, 0, 1)
            overriding = self._override(blocks, mixing_scale)
            lacking = (np.maximum(error, 0) * pairs)[clustering == 1].sum()
            if lacking > _LACKING * (target @ pairs):
                self.spread = (self.spread - _LOOSENING).clamp(min=0)
            elif step < loosening_steps and overriding:
                self.spread = self.spread + _LOOSENING
            if lost > _LOST:
                self.kept = self.kept / 2
                least, fitted = math.inf, (clustering, self.spread, self.kept)
        # Where links to hubs close more wedges than blocks, steps may lead away from the target.
        if not is_large:
            clustering, self.spread, self.kept = fitted
        self.densities = torch.from_numpy(np.cbrt(clustering)[groups])

    def _override(self, blocks: NDArray[np.int64], mixing_scale: float) -> bool:
        """Whether many edges of blocks, of shape ``(M, 2)``, are beyond the released mixing."""
        classes = degree_classes(self.degrees.cpu().numpy())
        surplus = count_links(classes, blocks) - self.mixing.cpu().numpy() - 2 * mixing_scale
        return bool(np.maximum(surplus, 0).sum() > _OVERRIDING * len(blocks))

    def sample_edges(self, generator: torch.Generator) -> Tensor:
        """Draw blocks of random nodes of similar degrees, then the remaining edges of the nodes."""
        return torch.from_numpy(pairs_of_keys(self._numbers(generator), len(self.degrees)))

    def edge_blocks(self, generator: torch.Generator) -> Iterator[Tensor]:
        """Draw the edges of :meth:`sample_edges`, in lexicographic order and in blocks.

        Memory is O(M), since loops and repeated pairs are found among all pairs of stubs; it is
        several times less than a graph object takes.
        """
        yield from sorted_blocks(self._numbers(generator), len(self.degrees))

    def _numbers(self, generator: torch.Generator) -> NDArray[np.int64]:
        """Draw the numbers of all edges, shape ``(M,)``."""
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        return self._completed(self._blocks(rng), rng)

    def _blocks(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw the edges within blocks, shape ``(M, 2)``, none beyond the degree of a node."""
        degrees, mixing, densities = self._released()
        classes = degree_classes(degrees)
        nodes = shuffled(np.flatnonzero((degrees > 1) & (densities[classes] > 0)), rng)
        slack = 1 - densities[classes[nodes]]
        places = np.log(degrees[nodes])
        places += float(self.spread) * slack * rng.standard_normal(len(nodes))
        places -= places.min(initial=math.inf)
        nodes = nodes[near_order((places * 2**32).astype(np.int64))]
        density = densities[classes[nodes]]
        # Where links to a share s of a block of w d nodes are the share s w of d links, a share
        # s^3 w^2 of all wedges is closed. It is the cube of the density.
        width = 1 / np.maximum(density, 1 / _WIDEST)
        inner = degrees[nodes] * density * np.cbrt(width)
        edges = block_edges(nodes, block_starts(degrees[nodes] * width), inner, rng)
        edges = within_degrees(edges, degrees, rng)
        kept = float(self.kept)
        return thinned(edges, classes, mixing, kept, rng) if kept < 1 else edges

    def _completed(self, edges: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Add the remaining edges of the nodes to the edges ``(M, 2)`` within blocks.

        Links between classes are as near to the released mixing as degrees allow. Between hubs many
        random pairs are repeated: they are exchanged and inserted within their classes, see
        :func:`draw_links`. In a large graph, where this would take most of the time, they go into any edges.

        Args:
            edges: Edges within blocks, shape ``(M, 2)``.
            rng: Source of the draw.

        Returns:
            Numbers of all edges, see :func:`pair_keys`.
        """
        degrees, mixing, _ = self._released()
        classes, num_nodes = degree_classes(degrees), len(degrees)
        lacking = degrees - np.bincount(edges.ravel(), minlength=num_nodes)
        links = np.maximum(mixing - count_links(classes, edges), 0)
        wanted = stub_mixing(links, np.bincount(classes, lacking, len(links)))
        fixed = pair_keys(edges, num_nodes)
        levels = [(classes, wanted)]
        if int(self.num_edges) < _LARGE_GRAPH:
            added = pair_keys(draw_links(lacking, levels, rng, no_pairs=edges), num_nodes)
        else:
            # No name holds the pairs and their numbers, and so they do not outlive their use.
            added = link_numbers(
                pair_keys(pair_stubs(lacking, levels, rng), num_nodes), fixed, num_nodes, rng
            )
        return np.concatenate([fixed, added]) if len(fixed) else added

    def score(self, pairs: Tensor) -> Tensor:
        """Expected links of pairs of shape ``(P, 2)``, by degrees and mixing: shape ``(P,)``.

        Blocks do not count, since each graph draws them anew.
        """
        degrees, links, _ = self._released()
        classes = degree_classes(degrees)
        stubs = np.bincount(classes, degrees, minlength=len(links))
        share = degrees / np.maximum(stubs[classes], 1)
        first, second = pairs.cpu().numpy().T
        mixing = stub_mixing(links, stubs)[classes[first], classes[second]]
        return torch.from_numpy(mixing * share[first] * share[second])

    def _released(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        degrees, mixing = self.degrees.cpu().numpy(), self.mixing.cpu().numpy()
        return degrees, mixing, self.densities.cpu().numpy()


def wedge_counter(
    degrees: NDArray[np.int64], noise_scale: float
) -> tuple[WedgeCounts, NDArray[np.int64]]:
    """Build the function that counts wedges from released values.

    Args:
        degrees: Released degrees of the nodes, shape ``(N,)``.
        noise_scale: Scale of the Laplace noise in the counts.

    Returns:
        Function from the counts of a graph to wedges and closed wedges of each group, shape ``(2,
        G)``, and the group of each class of degrees.
    """
    slots = wedge_slots(degrees)
    classes = degree_classes(degrees)
    sizes = np.bincount(classes, slots).astype(np.float64)
    groups = merged_classes(sizes, _SLOTS_PER_NOISE * noise_scale)

    def counts(source: CountsWedges) -> NDArray[np.int64]:
        return source.wedges(slots, groups[classes], _CLOSURES_PER_EDGE, _PUBLIC_SEED)

    return counts, groups


def _response(shares: NDArray[np.float64], clustering: NDArray[np.float64]) -> NDArray[np.float64]:
    """Estimate how much shares of closed wedges grow with the clustering of blocks, each ``(G,)``."""
    ratio = np.divide(shares, clustering, out=np.ones(len(shares)), where=clustering > 0)
    return np.clip(ratio, _LEAST_RESPONSE, 1)


def degree_classes(degrees: NDArray[np.int64]) -> NDArray[np.int64]:
    """Classes of degrees, powers of two apart: 0; 1; 2 and 3; 4 to 7; and so on."""
    return np.frexp(degrees)[1].astype(np.int64)


def merged_classes(sizes: NDArray[np.float64], least: float) -> NDArray[np.int64]:
    """Merge neighboring classes, from the last one down, until all are large enough.

    Args:
        sizes: Sizes of the classes, shape ``(K,)``.
        least: Least size of a group; a single group may be smaller.

    Returns:
        Group of each class, ascending integers from 0, shape ``(K,)``.
    """
    group, size = np.zeros(len(sizes), dtype=np.int64), 0.0
    for k in range(len(sizes) - 1, 0, -1):
        size += sizes[k]
        is_full = size >= least and sizes[:k].sum() >= least
        group[k - 1] = group[k] + is_full
        size = 0.0 if is_full else size
    return group.max() - group


def closed_shares(counts: NDArray[np.int64], noise_scale: float) -> NDArray[np.float64]:
    r"""Shares of closed wedges, shrunk against noise.

    The shrinkage follows James and Stein, :math:`(1 - (2b / C)^2)_+` for C closed wedges and noise
    of scale b, which exceeds 2b once in fifteen times. Closed wedges are divided by the number of
    wedges, but at least by the number at which classes are merged.

    Args:
        counts: Noisy numbers of wedges and of closed wedges, shape ``(2, G)``.
        noise_scale: Scale b of the Laplace noise in them.

    Returns:
        Shares from 0 to 1, shape ``(G,)``.
    """
    wedges = np.maximum(counts[0], max(_SLOTS_PER_NOISE * noise_scale, 1))
    closed = np.maximum(counts[1], 1)
    signal = np.maximum(1 - (2 * noise_scale / closed) ** 2, 0)
    return np.where(counts[1] > 0, np.minimum(signal * closed / wedges, 1), 0.0)
