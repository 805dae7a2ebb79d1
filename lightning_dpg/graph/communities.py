"""Communities that nodes join in turns, and the links between their classes, from released counts.

Where pairs have two parts, as in a directed or a bipartite graph, block c of K is class c of the first
ends of pairs and class K + c of the second ends.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.graph.counts import fitting_counts, rounded
from lightning_dpg.graph.pair_space import PairSpace
from lightning_dpg.graph.stubs import NO_PAIRS, Level, count_links, ends_of_links, stub_mixing

HUB_PASSES = 3
TURN_GROWTH = 1.05
Cells = tuple[NDArray[np.int64], NDArray[np.int64]]
_STANDARD_DEVIATIONS = 2
_LEAST_LINKS = 0.25  # share of the links between two communities that stays, whatever the estimate
_SCALINGS = 60
_LEAST = 1e-12
_HUB_SHARE = 0.85  # of the ends of edges
_MOST_HUBS = 0.6  # of all nodes
_LEAST_DENSITY = 0.05  # from which on hubs choose more than once, for an epsilon of 1
_BONUS = 0.3  # for the community that a hub is in, by expected edges that it has counted before
_STANDING_OUT = 2  # scales of noise, which is exceeded once in fifteen times


def end_classes(space: PairSpace, blocks: Tensor, num_blocks: int) -> Tensor:
    """Return the class of each entry of the degree vector: ``(N,)`` to ``(num_ends,)``."""
    places = torch.arange(space.num_ends)
    is_second = (places >= space.parts[-1].start) & is_two_sided(space)
    return blocks.cpu()[places % space.num_nodes] + num_blocks * is_second.long()


def is_two_sided(space: PairSpace) -> bool:
    """Return whether the two ends of a pair are of different sorts."""
    return len(space.parts) == 2


def class_cells(space: PairSpace, num_blocks: int) -> Cells:
    """Return rows and columns of the cells of :func:`count_links` that pairs can fall into."""
    if not is_two_sided(space):
        lower: Cells = np.tril_indices(num_blocks)
        return lower
    rows, columns = np.divmod(np.arange(num_blocks**2), num_blocks)
    return num_blocks + rows, columns


def no_pairs(space: PairSpace) -> NDArray[np.int64]:
    """Return both entries of each node that is on both sides, which form no pair: ``(K, 2)``."""
    if space.num_ends == space.num_nodes:
        return NO_PAIRS
    nodes = np.arange(space.num_nodes)
    return np.stack([nodes, nodes + space.num_nodes], axis=1)


def by_role(space: PairSpace, degrees: Tensor) -> list[Tensor]:
    """Split a degree vector by part; nodes outside of a part have 0, each of shape ``(N,)``."""
    roles = []
    for part in space.parts:
        role = degrees.new_zeros(space.num_nodes)
        role[torch.arange(part.start, part.stop) % space.num_nodes] = degrees[
            part.start : part.stop
        ]
        roles.append(role)
    return roles


def turn_order(space: PairSpace, degrees: Tensor, num_first: int) -> Tensor:
    """Order nodes by descending degrees, all N nodes.

    In a bipartite graph nodes are linked to the other side only. So the first ``num_first`` nodes
    are on the smaller side, and all others take turns between the sides, by their ranks in them.

    Args:
        space: Pairs that may be linked.
        degrees: Released degrees of shape ``(num_ends,)``.
        num_first: Number of nodes before all others.
    """
    total = torch.stack(by_role(space, degrees)).sum(dim=0)
    if space.num_left is None:
        return total.argsort(descending=True, stable=True)
    rank = torch.empty(space.num_nodes, dtype=torch.double)
    for part in space.parts:
        order = degrees[part.start : part.stop].argsort(descending=True, stable=True)
        size = part.stop - part.start
        rank[part.start + order] = (torch.arange(size).double() + 0.5) / size
    smaller = min(space.parts, key=lambda part: part.stop - part.start)
    nodes = torch.arange(smaller.start, smaller.stop)
    first = nodes[rank[nodes].argsort(stable=True)][:num_first]
    rank[first] -= 1
    return rank.argsort(stable=True)


def turn_stops(first: int, total: int, growth: float) -> list[int]:
    """Divide ``total`` nodes into turns that grow by at most a factor of ``growth``.

    Args:
        first: Nodes that have no turn, positive.
        total: Number of nodes.
        growth: Factor above 1 by which a turn multiplies the number of nodes so far.

    Returns:
        Ascending stops, the last of them ``total``; empty if all nodes are first ones.
    """
    stops: list[int] = []
    last = first
    while last < total:
        last = min(max(last + 1, int(last * growth)), total)
        stops.append(last)
    return stops


class Turns:
    """Turns in which nodes choose communities, a function of public and released values.

    The first nodes found a community each, and all others choose in the order of :func:`turn_order`.
    In an undirected graph hubs, which are the nodes of the largest degrees, choose several times, forward,
    backward, and forward again, where they are few enough and the budget times the density of edges between
    them is large enough, by the released degrees. They count the edges between hubs only, by the communities
    of those hubs that have had their turn in the same pass, and prefer the community that they are in.
    All others choose once, after the hubs.

    Choices have their places in one sequence: those of each pass in its own order, and those of all others
    behind the last pass.

    Args:
        space: Pairs that may be linked.
        degrees: Released degrees of shape ``(num_ends,)``.
        num_communities: Number of communities C.
        epsilon: Budget of the choices.

    Attributes:
        num_hubs: Number of hubs; 0 if no node chooses twice.
        order: All N nodes, hubs first, shape ``(N,)``.
        last: Place of the first choice of the last pass. From there on choices are in ``order``.
        stops: Numbers of choices after each turn.
    """

    def __init__(
        self, space: PairSpace, degrees: Tensor, num_communities: int, epsilon: float
    ) -> None:
        self._count, self.order = num_communities, turn_order(space, degrees, num_communities)
        roles, size = by_role(space, degrees), len(self.order)
        self._total = torch.stack(roles).sum(dim=0)[self.order].double()
        self._share = self._total.cumsum(0) / self._total.sum().clamp(min=1)
        num_hubs = int((self._share <= _HUB_SHARE).sum())
        # Expected share of the pairs of hubs that are linked.
        density = float(self._share[num_hubs - 1] ** 2 * self._total.sum()) / max(num_hubs, 1) ** 2
        is_carried = num_communities < num_hubs <= _MOST_HUBS * size and not is_two_sided(space)
        self.num_hubs = num_hubs if is_carried and epsilon * density >= _LEAST_DENSITY else 0
        self.last = (HUB_PASSES - 1) * self.num_hubs
        backward = torch.cat([self.order[: self.num_hubs].flip(0), self.order[self.num_hubs :]])
        self._views = [(view, [role[view] for role in roles]) for view in (self.order, backward)]
        self.stops = turn_stops(num_communities, self.num_hubs or size, TURN_GROWTH)
        if self.num_hubs:
            again = [1, *turn_stops(1, self.num_hubs, TURN_GROWTH)]
            others = turn_stops(self.num_hubs, size, TURN_GROWTH)
            self.stops += [self.num_hubs + stop for stop in again]
            self.stops += [self.last + stop for stop in (*again, *others)]

    def utilities(
        self, edges: Tensor, resolution: float
    ) -> Callable[[Tensor, int], tuple[Tensor, Tensor]]:
        """Count edges to nodes that have chosen, less ``resolution`` times those by chance.

        Edges between hubs have a weight of 1 in each pass, and all others a weight of ``HUB_PASSES``.

        Args:
            edges: Edges of shape ``(M, 2)`` (private).
            resolution: Weight of the edges expected by chance.

        Returns:
            Utilities of :func:`lightning_dpg.privacy.selection.choose_in_turns`.
        """
        ends = [earlier_first(edges, view) for view, _ in self._views]
        hubs = self.num_hubs

        def of_turn(chosen: Tensor, stop: int) -> tuple[Tensor, Tensor]:
            number = min(len(chosen) // hubs, HUB_PASSES - 1) if hubs else 0
            own, stop = chosen[number * hubs :], stop - number * hubs
            first, *second = self._views[number % 2][1]
            counts = count_neighbors(ends[number % 2], own, stop, self._count)
            by_chance = expected_neighbors(first, own, stop, self._count, *second)
            if len(own) >= hubs:
                return HUB_PASSES * counts, -HUB_PASSES * resolution * by_chance
            offsets = -resolution * by_chance
            if number:
                rows = torch.arange(stop - len(own))
                # Each pass has the order of the last one, reversed.
                mirrored = hubs - 1 - len(own) - rows
                before = chosen[(number - 1) * hubs : number * hubs][mirrored]
                places, seen = (mirrored, mirrored) if number % 2 else (rows + len(own), hubs - 1)
                offsets[rows, before] += _BONUS * self._total[places] * self._share[seen]
            return counts, offsets

        return of_turn


def earlier_first(edges: Tensor, order: Tensor) -> Tensor:
    """Name nodes by their places and sort edges by the later end.

    Args:
        edges: Edges of shape ``(M, 2)``.
        order: All N nodes, the earliest first, shape ``(N,)``.

    Returns:
        Places of the two ends of each edge, rows ``i < j`` of shape ``(M, 2)`` in ascending order
        of j.
    """
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    ends = place[edges].sort(dim=1).values
    return ends[ends[:, 1].argsort()]


def count_neighbors(ends: Tensor, chosen: Tensor, stop: int, num_communities: int) -> Tensor:
    """Count neighbors by community: of nodes in their turn, among nodes of earlier turns.

    Args:
        ends: Edges as :func:`earlier_first` gives them, shape ``(M, 2)``.
        chosen: Communities of the first S nodes, shape ``(S,)``.
        stop: Nodes S to ``stop - 1`` have their turn.
        num_communities: Number of communities C.

    Returns:
        Counts of shape ``(stop - S, C)``.
    """
    start = len(chosen)
    low, high = torch.searchsorted(ends[:, 1].contiguous(), torch.tensor([start, stop])).tolist()
    earlier, later = ends[low:high].T
    settled = earlier < start
    cells = (later[settled] - start) * num_communities + chosen[earlier[settled]]
    size = (stop - start) * num_communities
    return torch.bincount(cells, minlength=size).view(-1, num_communities)


def expected_neighbors(
    degrees: Tensor,
    chosen: Tensor,
    stop: int,
    num_communities: int,
    receiving: Tensor | None = None,
) -> Tensor:
    """Return the mean of :func:`count_neighbors` over random edges of the given degrees.

    Args:
        degrees: Degrees in the order of the turns, not all zero, shape ``(N,)``.
        chosen: Communities of the first S nodes, shape ``(S,)``.
        stop: Nodes S to ``stop - 1`` have their turn.
        num_communities: Number of communities C.
        receiving: Degrees as second ends of pairs, if ``degrees`` are those as first ends.

    Returns:
        Expected counts of shape ``(stop - S, C)``.
    """
    start, first = len(chosen), degrees.double()
    # A node has edges as their first end and, if the ends differ, as their second end.
    second = first if receiving is None else receiving.double()
    facing = [(first, second), (second, first)][: 1 if receiving is None else 2]
    counts = torch.zeros(stop - start, num_communities, dtype=torch.double)
    for own, others in facing:
        volumes = torch.bincount(chosen, others[:start], minlength=num_communities)
        counts += torch.outer(own[start:stop], volumes / others.sum().clamp(min=1))
    return counts


def nearest_counts(noisy: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Project noisy counts onto nonnegative counts of a given sum.

    Least squares subtracts the same number from all counts and cuts at zero. Noise then does not
    add up to edges where there are none.

    Args:
        noisy: Noisy counts of shape ``(K,)``.
        total: Wanted sum, not negative.

    Returns:
        Counts of shape ``(K,)``, at the least squared distance up to rounding.
    """
    return fitting_counts(noisy.astype(np.float64), np.full_like(noisy, total), total)


def right_share(links: NDArray[np.int64], wedges: NDArray[np.int64], noise_scale: float) -> float:
    r"""Estimate how much of the links beyond chance noisy labels of communities leave.

    Say that both ends of a link have the right labels with a probability :math:`r`, independently of
    all else, and labels by chance otherwise. Noisy labels then show :math:`r` times the
    links beyond chance of the right labels, and :math:`r` times their pairs of ends of a wedge, which
    are two links apart. Let P be the matrix of shares: of the links of each community, those that go to
    each. Right labels make pairs of ends follow from links: they are :math:`P^2`, while released links
    have :math:`r P` beyond chance. With :math:`q` for the share of equal labels beyond chance by the
    square of the released shares, and :math:`x` for the same share by the wedges, :math:`r = q / x`:
    nothing needs to be known of the labels.

    Against noise, x is shrunk after James and Stein, :math:`(1 - (2 \sigma / x)^2)_+` for a standard
    deviation :math:`\sigma`. Then r is larger, up to 1, which changes nothing.

    Args:
        links: Released links between communities, as :func:`count_links` gives them, ``(K, K)``.
        wedges: Noisy numbers of wedges whose ends have equal and different labels, shape ``(2,)``.
        noise_scale: Scale of the Laplace noise in them.

    Returns:
        The share r, from above 0 to 1.
    """
    ends = ends_of_links(links).astype(np.float64)
    totals, total = ends.sum(axis=1), float(np.maximum(wedges, 0).sum())
    if not totals.any() or not total:
        return 1.0
    volumes = totals / totals.sum()
    shares = ends / np.maximum(totals, 1)[:, None]
    chance = float(volumes @ volumes)
    expected = float(volumes @ np.einsum("ab,ba->a", shares, shares)) - chance
    equal, different = np.maximum(wedges, 0) / total
    excess = float(equal) - chance
    deviation = math.sqrt(2) * noise_scale / total * math.hypot(equal, different)
    if excess <= _STANDARD_DEVIATIONS * deviation or expected <= 0:
        return 1.0
    return min(expected / (excess - (_STANDARD_DEVIATIONS * deviation) ** 2 / excess), 1.0)


def sharpened_links(links: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Return the links between different communities that right labels would have.

    Links beyond chance, or below it, are divided by the share that noisy labels leave of them. Where that
    takes more than three quarters of the links of two communities, a quarter stays, and all links are
    scaled to the sum that the division gives, which is at least a quarter, too. Communities without links
    get none.

    Args:
        links: Released links between communities, as :func:`count_links` gives them, ``(K, K)``.
        share: Result of :func:`right_share`.

    Returns:
        Links arranged likewise; those within communities stay as they are.
    """
    if share >= 1:
        return links
    totals = ends_of_links(links).astype(np.float64).sum(axis=1)
    chance = np.tril(np.outer(totals, totals) / max(totals.sum(), 1), -1)
    between = np.tril(links, -1).astype(np.float64)
    right = chance + (between - chance) / share
    total = max(float(right.sum()), _LEAST_LINKS * float(between.sum()))
    wanted = np.where(between > 0, np.maximum(right, _LEAST_LINKS * between), 0)
    wanted *= min(total / max(float(wanted.sum()), 1), 1)
    return rounded(wanted.ravel()).reshape(links.shape) + np.diag(np.diag(links))


def block_mixing(
    links: NDArray[np.int64], totals: NDArray[np.int64], *, two_sided: bool = False
) -> NDArray[np.float64]:
    """Return the ends of links by class and class, which have the degrees of their nodes.

    Links between different classes are the wanted ones, and those within a class take the rest of
    its degrees. Only where that is impossible all are scaled, as between the two sides of a
    two-sided graph, where no class has links within itself, see :func:`stub_mixing`.

    Args:
        links: Wanted links between classes, as :func:`count_links` gives them, shape ``(K, K)``.
        totals: Sum of the degrees of each class, shape ``(K,)``.
        two_sided: Whether classes of the first half are linked to those of the second half only.

    Returns:
        Symmetric matrix of shape ``(K, K)``.
    """
    if two_sided:
        return stub_mixing(links, totals, num_first=len(totals) // 2)
    between = np.tril(links, -1)
    within = np.maximum(totals - ends_of_links(between).sum(axis=1), 0) / 2
    return stub_mixing(between + np.diag(within), totals)


def count_class_links(
    classes: NDArray[np.int64], communities: NDArray[np.int64], edges: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count edges between and within communities by the classes of their ends.

    Args:
        classes: Class of each node, integers from 0 below C, shape ``(N,)``.
        communities: Community of each node, shape ``(N,)``.
        edges: Edges of shape ``(M, 2)`` (private).

    Returns:
        Edges as :func:`count_links` gives them, between communities and then within them, shape
        ``(2, C, C)`` (private).
    """
    is_within = communities[edges[:, 0]] == communities[edges[:, 1]]
    return np.stack([count_links(classes, edges[is_within == part]) for part in (False, True)])


def class_ratios(
    counts: NDArray[np.int64],
    noise_scale: float,
    degrees: NDArray[np.int64],
    classes: NDArray[np.int64],
    communities: NDArray[np.int64],
    links: NDArray[np.int64],
) -> NDArray[np.float64]:
    r"""Estimate how many times as many links two classes have as the communities make likely.

    Within two communities chance links nodes in proportion to their degrees. The difference r of a
    count to what that gives is shrunk against noise of scale b, :math:`(1 - (2 b / r)^2)_+` after James
    and Stein.

    Args:
        counts: Noisy numbers of :func:`count_class_links`, shape ``(2, C, C)``.
        noise_scale: Scale of the Laplace noise in them.
        degrees: Degrees of the nodes, shape ``(N,)``.
        classes: Class of each node, shape ``(N,)``.
        communities: Community of each node, integers from 0 below K, shape ``(N,)``.
        links: Released links between communities, as :func:`count_links` gives them, ``(K, K)``.

    Returns:
        Ratios between communities and within them, symmetric matrices, shape ``(2, C, C)``.
    """
    mixing = ends_of_links(links.astype(np.float64))
    expected = _by_chance(degrees, classes, communities, mixing)[1]
    difference = ends_of_links(counts.astype(np.float64)) - expected
    # Ends within a class are twice as many as links, and so is their noise.
    scale = noise_scale * (1 + np.eye(counts.shape[-1]))
    threshold = _STANDING_OUT * scale / np.maximum(np.abs(difference), _LEAST)
    difference *= np.maximum(1 - threshold**2, 0)
    ratios = 1 + np.divide(difference, expected, out=0 * expected, where=expected > 0)
    return np.asarray(np.maximum(ratios, 0))


def cell_mixing(
    degrees: NDArray[np.int64],
    classes: NDArray[np.int64],
    communities: NDArray[np.int64],
    mixing: NDArray[np.float64],
    ratios: NDArray[np.float64],
) -> Level:
    """Return cells of nodes, one for each community and class, and the ends of links between them.

    They start from chance within each two communities, and are scaled in turns to the ratios of the
    classes, to the links between communities and to the degrees, and cut where cells have too few
    pairs of nodes. The ratios are left alone in the second half of the turns, since they need not
    agree with the others.

    Args:
        degrees: Degrees of the nodes, shape ``(N,)``.
        classes: Class of each node, integers from 0 below C, shape ``(N,)``.
        communities: Community of each node, integers from 0 below K, shape ``(N,)``.
        mixing: Result of :func:`block_mixing` for the communities, shape ``(K, K)``.
        ratios: Result of :func:`class_ratios`, shape ``(2, C, C)``.

    Returns:
        Cell of each node, integers from 0 below L, shape ``(N,)``; and ends of links by cell and
        cell, symmetric, shape ``(L, L)``.
    """
    size, count = ratios.shape[-1], len(mixing)
    used, cells = np.unique(communities * size + classes, return_inverse=True)
    of_community, of_class = np.divmod(used, size)
    totals, sizes = np.bincount(cells, degrees), np.bincount(cells)
    room = np.outer(sizes, sizes) - np.diag(sizes)
    chance, expected = _by_chance(degrees, classes, communities, mixing)
    links_of_cells = chance[np.ix_(used, used)]
    pairs = of_community[:, None] * count + of_community
    is_within = (of_community[:, None] == of_community).astype(np.int64)
    margins = (is_within * size + of_class[:, None]) * size + of_class
    targets = [(margins, (expected * ratios).ravel()), (pairs, mixing.ravel())]
    for turn in range(_SCALINGS):
        for places, wanted in targets[turn >= _SCALINGS // 2 :]:
            sums = np.bincount(places.ravel(), links_of_cells.ravel(), len(wanted))
            links_of_cells = links_of_cells * (wanted / np.maximum(sums, _LEAST))[places]
        links_of_cells = np.minimum(links_of_cells, room)
        scale = np.sqrt(totals / np.maximum(links_of_cells.sum(axis=1), _LEAST))
        links_of_cells *= np.outer(scale, scale)
    return cells, links_of_cells


def _by_chance(
    degrees: NDArray[np.int64],
    classes: NDArray[np.int64],
    communities: NDArray[np.int64],
    mixing: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of links between cells ``(K C, K C)`` and classes ``(2, C, C)`` by chance in communities."""
    count, size = len(mixing), int(classes.max()) + 1
    stubs = np.bincount(communities * size + classes, degrees, count * size).reshape(count, size)
    shares = stubs / np.maximum(stubs.sum(axis=1, keepdims=True), 1)
    cells = np.einsum("ab,ac,bd->acbd", mixing, shares, shares)
    within = np.einsum("acad->cd", cells)
    between = cells.sum(axis=(0, 2)) - within
    return cells.reshape(count * size, count * size), np.stack([between, within])
