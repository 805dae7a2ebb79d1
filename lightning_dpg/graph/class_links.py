"""Random simple graphs with given degrees and given numbers of links between classes of nodes."""

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from lightning_dpg.graph.pair_numbers import are_among, are_first, pair_keys
from lightning_dpg.graph.stubs import PresentNumbers, stub_mixing, untangle

_TRIES = 300
# A node whose expected links to a class are this share of its nodes may get more than it has.
_CROWDED = 0.5
_CROWDED_AT_MOST = 0.9  # of the nodes of a class, where a node has links elsewhere to go to
_MOST_NEW = 2  # an inserted edge makes at most so many links between different classes


def draw_links(
    degrees: NDArray[np.int64],
    classes: NDArray[np.int64],
    links: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    groups: NDArray[np.int64] | None = None,
    no_pairs: NDArray[np.int64] | None = None,
    two_sided: bool = False,
) -> NDArray[np.int64]:
    """Draw edges with given degrees, and with given numbers of links between classes.

    Numbers of links come from :func:`fitting_links`. Loops and repeated edges are exchanged within a
    pair of classes, and then with any end of the same class, which keeps degrees and links. The rest is
    exchanged with ends of the same group, which keeps links between groups. What is left, since its
    nodes are linked to nearly all nodes that they may be linked to, is inserted into random edges: where
    that is possible, between linked groups only. Each of these changes links between groups by up to two.

    Args:
        degrees: Degrees of shape ``(N,)``.
        classes: Class of each node, integers from 0 below K, shape ``(N,)``.
        links: Wanted links between classes, as :func:`count_links` gives them, shape ``(K, K)``.
        rng: Source of the draw.
        groups: Group of each class, integers from 0 below G, shape ``(K,)``; by default the class.
        no_pairs: Pairs that are no edges, shape ``(P, 2)``.
        two_sided: Whether classes of the first half are linked to those of the second half only.

    Returns:
        Edges, rows ``i < j`` of shape ``(M, 2)`` in no order. Degrees are smaller only where no place
        is found for an edge.
    """
    fitted = fitting_links(links, degrees, classes, two_sided=two_sided)
    pairs = _near_simple(degrees, classes, fitted, rng, no_pairs)
    no_pairs = np.empty((0, 2), dtype=np.int64) if no_pairs is None else no_pairs
    kinds = [classes] if groups is None else [classes, groups[classes]]
    of_class = np.arange(len(links)) if groups is None else groups
    is_linked = np.zeros((of_class.max() + 1,) * 2, dtype=bool)
    row, column = np.nonzero(fitted)
    is_linked[of_class[row], of_class[column]] = is_linked[of_class[column], of_class[row]] = True
    allowed = [is_linked, _possible(len(is_linked), two_sided)]
    return _Repair(pairs, len(classes), no_pairs, rng).simple(kinds, allowed)


def near_pairs(
    degrees: NDArray[np.int64],
    classes: NDArray[np.int64],
    links: NDArray[np.int64],
    rng: np.random.Generator,
    no_pairs: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Pair half-edges as :func:`draw_links` does, without its repair: some pairs are no edges.

    Args:
        degrees: Degrees of shape ``(N,)``, of an even sum.
        classes: Class of each node, integers from 0 below K, shape ``(N,)``.
        links: Wanted links between classes, as :func:`count_links` gives them, shape ``(K, K)``.
        rng: Source of the draw.
        no_pairs: Pairs that are no edges, shape ``(P, 2)``.

    Returns:
        Pairs of nodes, shape ``(M, 2)``; few are loops, repeated or no edges.
    """
    fitted = fitting_links(links, degrees, classes)
    return _near_simple(degrees, classes, fitted, rng, no_pairs)


def _near_simple(
    degrees: NDArray[np.int64],
    classes: NDArray[np.int64],
    fitted: NDArray[np.int64],
    rng: np.random.Generator,
    no_pairs: NDArray[np.int64] | None,
) -> NDArray[np.int64]:
    return untangle(pair_exactly(degrees, classes, fitted, rng), classes, rng, no_pairs)


def fitting_links(
    links: NDArray[np.int64],
    degrees: NDArray[np.int64],
    classes: NDArray[np.int64],
    *,
    two_sided: bool = False,
) -> NDArray[np.int64]:
    """Return the links between classes that fit the degrees, as near to wanted ones as can be.

    Links between different classes are the wanted ones. Links within a class take what is left of its
    degrees. Changes are made only where that is impossible: if links to others exceed the degrees of a
    class, all of them are scaled; if a class has more links within itself or to another class than
    its nodes have pairs, the rest goes to classes that it has links to, and then to all others. A class
    has an even number of ends for links within itself: where degrees and links leave an odd one, there
    is one link more or less to another such class.

    Between the two sides of a two-sided graph no class has links within itself. There all wanted links
    are first scaled to the degrees, as :func:`stub_mixing` scales them.

    Args:
        links: Wanted links between classes, as :func:`count_links` gives them, shape ``(K, K)``.
        degrees: Degrees of shape ``(N,)``.
        classes: Class of each node, integers from 0 below K, shape ``(N,)``.
        two_sided: Whether classes of the first half are linked to those of the second half only.

    Returns:
        Links of shape ``(K, K)``, arranged as the wanted ones.
    """
    size = len(links)
    totals = np.bincount(classes, degrees, size).astype(np.int64)
    most = most_links(degrees, classes, size)
    if two_sided:
        fitted = stub_mixing(links, totals, two_sided=True)
        links = np.tril(np.where(links + links.T > 0, np.floor(fitted), 0)).astype(np.int64)
    wanted = np.tril(links, -1) + np.tril(links, -1).T
    most = np.where(_possible(size, two_sided), most, 0)
    if not two_sided:
        return fit_block(wanted, totals, most)
    is_linked = np.minimum(wanted, most) > 0
    rest = _place_rest(wanted, totals, most)
    _reroute(wanted, rest, most, is_linked)
    return np.tril(wanted)


def fit_block(
    wanted: NDArray[np.int64], totals: NDArray[np.int64], most: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return links between classes that have given ends, near to wanted ones, as :func:`fitting_links`.

    Args:
        wanted: Wanted links between classes, symmetric, shape ``(K, K)``; the diagonal does not count.
        totals: Ends of the links of each class, of an even sum, shape ``(K,)``.
        most: Result of :func:`most_links`, shape ``(K, K)``.

    Returns:
        Links as :func:`count_links` gives them, shape ``(K, K)``.
    """
    wanted = wanted - np.diag(np.diag(wanted))
    rest = _place_rest(wanted, totals, most)
    _make_even(wanted, rest)
    return np.tril(wanted) + np.diag(rest // 2)


def _place_rest(
    wanted: NDArray[np.int64], totals: NDArray[np.int64], most: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Change links between different classes, in place, so that the rest of a class fits within it.

    Args:
        wanted: Links between different classes, symmetric, shape ``(K, K)``.
        totals: Ends of the links of each class, shape ``(K,)``.
        most: Result of :func:`most_links`, shape ``(K, K)``; 0 where classes may not be linked.

    Returns:
        Ends that each class has left for links within itself, shape ``(K,)``.
    """
    np.minimum(wanted, most, out=wanted)
    for a in np.flatnonzero(wanted.sum(axis=1) > totals):
        if (row := wanted[a].sum()) > totals[a]:
            wanted[a] = wanted[:, a] = _scaled(wanted[a], totals[a], row)
    rest, within = totals - wanted.sum(axis=1), np.diag(most)
    is_linked = wanted > 0
    for allowed in (is_linked, ~is_linked):
        for a in np.argsort(within - rest, kind="stable"):
            others = np.where(allowed[a], most[a] - wanted[a], 0)
            others[a] = 0
            others = np.clip(others, 0, rest)
            excess = min(int(rest[a] - within[a]), int(others.sum()))
            if excess <= 0:
                continue
            more = _scaled(others, excess, others.sum())
            wanted[a] += more
            wanted[:, a] += more
            rest -= more
            rest[a] -= excess
    return rest


def _reroute(
    wanted: NDArray[np.int64],
    rest: NDArray[np.int64],
    most: NDArray[np.int64],
    is_linked: NDArray[np.bool_],
) -> None:
    """Link the rests of two sides, in place, by way of links of others: from (x, y) to (a, y), (x, b).

    This is for classes a and b that have all the links to each other that they can have.
    """
    half = len(rest) // 2
    links, room, linked = (each[:half, half:] for each in (wanted, most - wanted, is_linked))
    while rest[:half].any() and rest[half:].any():
        a, b = (int(side.argmax()) for side in (rest[:half], rest[half:]))
        fits = (links > 0) & (room[a] > 0) & (room[:, b] > 0)[:, None]
        fits[a] = fits[:, b] = False
        if not fits.any():
            return
        score = fits * (1 + linked[a] + linked[:, b][:, None])
        x, y = np.unravel_index(int(score.argmax()), score.shape)
        for i, j, change in ((x, y, -1), (a, y, 1), (x, b, 1)):
            wanted[i, half + j] += change
            wanted[half + j, i] += change
            room[i, j] -= change
        rest[a] -= 1
        rest[half + b] -= 1


def _possible(size: int, two_sided: bool) -> NDArray[np.bool_]:
    """Mask of the classes that may be linked, shape ``(K, K)``."""
    if not two_sided:
        return np.ones((size, size), dtype=bool)
    is_second = np.arange(size) >= size // 2
    return np.logical_xor.outer(is_second, is_second)


def most_links(
    degrees: NDArray[np.int64], classes: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    """Return how many links two classes can have, where each node has as many as the other has nodes.

    Args:
        degrees: Degrees of shape ``(N,)``.
        classes: Class of each node, integers from 0 below K, shape ``(N,)``.
        size: Number of classes K.

    Returns:
        Symmetric matrix of shape ``(K, K)``; on its diagonal ends of links within a class.
    """
    sizes = np.bincount(classes, minlength=size)
    room = np.zeros((size, size), dtype=np.int64)
    order = np.lexsort((degrees, classes))
    for a, members in enumerate(np.split(degrees[order], np.cumsum(sizes)[:-1])):
        others = sizes - (np.arange(size) == a)
        below = np.searchsorted(members, others)
        sums = np.r_[0, np.cumsum(members)]
        room[a] = sums[below] + (len(members) - below) * np.maximum(others, 0)
    most = np.minimum(room, room.T)
    return most - np.diag(np.diag(most) % 2)


def _scaled(counts: NDArray[np.int64], total: int, old: int) -> NDArray[np.int64]:
    """Scale counts of the sum ``old`` down to a sum."""
    shares = np.cumsum(counts) * (total / old)
    shares[-1] = total
    return np.diff(np.floor(shares + 0.5), prepend=0.0).astype(np.int64)


def _make_even(wanted: NDArray[np.int64], rest: NDArray[np.int64]) -> None:
    """Change links between classes by one, in place, so that each class has an even rest.

    Two odd classes that are linked to each other change these links. In each set of connected classes
    the others change links along a tree, until at most one is odd. It gets a link to the one that is
    left in another set.

    Args:
        wanted: Links between different classes, symmetric, shape ``(K, K)``.
        rest: Ends that each class has left for links within itself, of an even sum, shape ``(K,)``.
    """
    for a in np.flatnonzero(rest % 2).tolist():
        others = wanted[a] * (rest % 2)
        others[a] = 0
        if rest[a] % 2 and others.any():
            _change(wanted, rest, a, int(others.argmax()))
    graph, seen = csr_array(wanted > 0), np.zeros(len(rest), dtype=bool)
    left = []
    for root in range(len(rest)):
        if seen[root]:
            continue
        order, before = breadth_first_order(graph, root, directed=False)
        seen[order] = True
        for a in order[:0:-1]:
            if rest[a] % 2:
                _change(wanted, rest, a, before[a])
        if rest[root] % 2:
            left.append(root)
    for a, b in zip(left[::2], left[1::2], strict=False):
        _add(wanted, rest, a, b, 1)


def _change(wanted: NDArray[np.int64], rest: NDArray[np.int64], a: int, b: int) -> None:
    """Take a link between two linked classes, in place; add one where it is the last."""
    _add(wanted, rest, a, b, 1 if wanted[a, b] == 1 and min(rest[a], rest[b]) > 0 else -1)


def _add(wanted: NDArray[np.int64], rest: NDArray[np.int64], a: int, b: int, change: int) -> None:
    """Add links between two classes, in place."""
    wanted[a, b] += change
    wanted[b, a] += change
    rest[[a, b]] -= change


def pair_exactly(
    degrees: NDArray[np.int64],
    classes: NDArray[np.int64],
    links: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Pair half-edges at random, with exactly the given links between classes.

    Nodes whose degrees would give them more links to a class than it has nodes come first, and get the
    rest of these links to other classes.

    Args:
        degrees: Degrees of shape ``(N,)``.
        classes: Class of each node, integers from 0 below K, shape ``(N,)``.
        links: Links between classes as :func:`fitting_links` gives them, shape ``(K, K)``.
        rng: Source of the draw.

    Returns:
        Pairs of nodes, shape ``(M, 2)``.
    """
    size, sizes = len(links), np.bincount(classes, minlength=len(links))
    ends, order = np.tril(links) + np.tril(links).T, np.argsort(classes, kind="stable")
    parts: list[list[NDArray[np.int64]]] = []
    for a, members in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
        pool, most = ends[a].copy(), sizes - (np.arange(size) == a)
        hubs = _hubs(degrees[members], pool, most)
        by_class: list[list[NDArray[np.int64]]] = [[] for _ in range(size)]
        for hub in members[hubs].tolist():
            counts = _hub_links(int(degrees[hub]), pool, most, rng)
            pool -= counts
            for b in np.flatnonzero(counts).tolist():
                by_class[b].append(np.full(counts[b], hub))
        others = members[np.setdiff1d(np.arange(len(members)), hubs)]
        stubs = rng.permutation(np.repeat(others, degrees[others]))
        for b, rest in enumerate(np.split(stubs, np.cumsum(pool)[:-1])):
            by_class[b].append(rest[: pool[b]])
        parts.append([rng.permutation(np.concatenate(each)) for each in by_class])
    pairs = [np.empty((0, 2), dtype=np.int64)]
    for a, b in zip(*np.nonzero(np.tril(links)), strict=True):
        one = parts[a][b]
        pairs.append(one.reshape(-1, 2) if a == b else np.stack([one, parts[b][a]], axis=1))
    return np.concatenate(pairs)


def _hubs(
    degrees: NDArray[np.int64], pool: NDArray[np.int64], most: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Places of nodes, by descending degrees, that chance may give more links than a class has nodes.

    Args:
        degrees: Degrees of the nodes of a class, shape ``(N,)``.
        pool: Ends of the class that are linked to each class, shape ``(K,)``.
        most: Number of nodes of each class that one of these nodes can be linked to, shape ``(K,)``.
    """
    linked = pool > 0
    if not linked.any():
        return np.empty(0, dtype=np.int64)
    bound = _CROWDED * float((most[linked] / pool[linked]).min()) * int(pool.sum())
    order = np.argsort(-degrees, kind="stable")
    return order[: int((degrees > bound).sum())]


def _hub_links(
    degree: int, pool: NDArray[np.int64], most: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw how many links of a node go to each class, at most as many as it has nodes if possible."""
    counts = np.zeros_like(pool)
    for cut in (most * _CROWDED_AT_MOST, most, pool):
        room = np.minimum(pool, cut.astype(np.int64)) - counts
        room = np.maximum(room, 0)
        lacking = min(degree - int(counts.sum()), int(room.sum()))
        # In proportion to the ends that are left, and never more than there is room for.
        while lacking > 0:
            drawn = rng.multivariate_hypergeometric(np.where(room > 0, pool - counts, 0), lacking)
            drawn = np.minimum(drawn, room)
            counts, room = counts + drawn, room - drawn
            lacking -= int(drawn.sum())
    return counts


class _Repair:
    """Edges that become simple, one bad one after the other.

    Args:
        pairs: Edges, shape ``(M, 2)``; they change.
        num_nodes: Number of nodes N.
        no_pairs: Pairs that are no edges, shape ``(P, 2)``.
        rng: Source of the draw.
    """

    def __init__(
        self,
        pairs: NDArray[np.int64],
        num_nodes: int,
        no_pairs: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> None:
        self._pairs, self._num_nodes = pairs, num_nodes
        keys, barred = (pair_keys(given, num_nodes) for given in (pairs, no_pairs))
        is_edge = (pairs[:, 0] != pairs[:, 1]) & ~are_among(keys, np.sort(barred))
        self._is_good = are_first(keys) & is_edge
        self._present = PresentNumbers(np.sort(np.concatenate([keys[self._is_good], barred])))
        # NumPy's generator takes microseconds for a single number.
        self._draw = random.Random(int(rng.integers(2**62)))

    def simple(
        self, kinds: Sequence[NDArray[np.int64]], allowed: Sequence[NDArray[np.bool_]]
    ) -> NDArray[np.int64]:
        """Repair the bad edges, and drop those that cannot be repaired.

        Args:
            kinds: Classes of each node whose links exchanges keep, tried in turn, each of shape ``(N,)``.
            allowed: Masks of the last of these classes that may be linked where no exchange helps,
                tried in turn, each symmetric of shape ``(K, K)``.

        Returns:
            Edges, rows ``i < j`` of shape ``(M, 2)``.
        """
        self._exchange(kinds[0])
        for classes in kinds[1:]:
            # An exchange that mends both edges changes fewest links of the classes before.
            self._exchange(classes, at_once=True)
        for mask in allowed:
            for most_new in range(_MOST_NEW + 1):
                self._insert(kinds[-1].tolist(), mask.tolist(), most_new)
        return np.sort(self._pairs[self._is_good], axis=1)

    def _bad(self) -> list[int]:
        bad: list[int] = np.flatnonzero(~self._is_good).tolist()
        return bad

    def _exchange(self, classes: NDArray[np.int64], *, at_once: bool = False) -> None:
        """Exchange ends of each bad edge with random ends of the same class until it is no longer bad.

        Degrees and links between classes stay as they are. Each exchange mends the other edge, and the
        bad one becomes another one.

        Args:
            classes: Class of each node, shape ``(N,)``.
            at_once: Whether one exchange has to mend both edges.
        """
        bad = self._bad()
        if not bad:
            return
        of_ends = classes[self._pairs.ravel()]
        of_nodes, ends = classes.tolist(), np.argsort(of_ends, kind="stable")
        starts = np.searchsorted(of_ends[ends], np.arange(of_ends.max() + 2)).tolist()
        for number in bad:
            pair = self._pairs[number].tolist()
            for _ in range(_TRIES):
                side = self._draw.randrange(2)
                kind = of_nodes[pair[side]]
                other, end = divmod(int(ends[self._draw.randrange(*starts[kind : kind + 2])]), 2)
                old = self._pairs[other].tolist()
                if not self._is_good[other] or not self._is_new(old[1 - end], pair[side]):
                    continue
                if at_once and not self._is_new(pair[1 - side], old[end]):
                    continue
                self._remove(*old)
                self._pairs[other, end], pair[side] = pair[side], old[end]
                self._add(*self._pairs[other].tolist())
                if self._is_new(*pair):
                    self._add(*pair)
                    self._is_good[number] = True
                    break
            self._pairs[number] = pair

    def _insert(self, classes: list[int], allowed: list[list[bool]], most_new: int) -> None:
        """Insert each bad edge into a random edge: from a, b and (c, d) come (a, c) and (b, d).

        Args:
            classes: Class of each node.
            allowed: Mask of classes that may be linked, shape ``(K, K)``.
            most_new: How many links between different classes there may be more.
        """
        for number in self._bad():
            a, b = self._pairs[number].tolist()
            i, j = classes[a], classes[b]
            for _ in range(_TRIES):
                other = self._draw.randrange(len(self._pairs))
                if not self._is_good[other]:
                    continue
                c, d = self._draw.sample(self._pairs[other].tolist(), 2)
                k, m = classes[c], classes[d]
                new = (i != k) + (j != m) - (i != j) - (k != m)
                if new > most_new or not (allowed[i][k] and allowed[j][m]):
                    continue
                is_one = {a, c} == {b, d}
                if self._is_new(a, c) and self._is_new(b, d) and not is_one:
                    self._remove(c, d)
                    self._add(a, c)
                    self._add(b, d)
                    self._pairs[other], self._pairs[number] = (a, c), (b, d)
                    self._is_good[number] = True
                    break

    def _is_new(self, i: int, j: int) -> bool:
        """Return whether two nodes can be linked."""
        return i != j and min(i, j) * self._num_nodes + max(i, j) not in self._present

    def _add(self, i: int, j: int) -> None:
        self._present.add(min(i, j) * self._num_nodes + max(i, j))

    def _remove(self, i: int, j: int) -> None:
        self._present.remove(min(i, j) * self._num_nodes + max(i, j))
