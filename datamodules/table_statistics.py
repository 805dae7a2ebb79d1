"""Counts of the edges of a table and sums over them by its server, one Ibis expression each."""

from collections.abc import Callable, Sequence
from typing import Any

import ibis  # of the extra 'tables'
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lightning_dpg.datamodules.table_records import EdgeTable
from lightning_dpg.graph.edge_statistics import (
    Pairs,
    cells_of_counts,
    check_mixing,
    mixing_cells,
    mixing_of_counts,
    num_mixing_cells,
    on_grid,
)
from lightning_dpg.graph.wedges import WedgeHash, count_closed

_NODES = "public_nodes"
_MOST_NUMBERS = 2**23
"""Numbers of public rows, 64 MiB of them, that a server gets at a time."""


class TableStatistics:
    """Exact counts of the edges of a table (private), see ``GraphStatisticsSource``.

    Args:
        table: The table.
        read: Reads the edges into memory.
    """

    def __init__(self, table: EdgeTable, read: Callable[[], Tensor]) -> None:
        self._table, self._read = table, read

    @property
    def edges(self) -> Tensor:
        """Records of shape ``(M, 2)`` in lexicographic order."""
        return self._read()

    def num_edges(self) -> int:
        """Count the edges."""
        return self._table.counts.edges

    def degrees(self) -> Tensor:
        """Count the edges at each entry of the degree vector, shape ``(num_ends,)``."""
        table, space = self._table, self._table.space
        # The second ends of ordered pairs have entries of their own, behind the first ones.
        shift = int(space.ends(torch.zeros(1, 2, dtype=torch.long))[0, 1])
        counts = np.zeros(space.num_ends, dtype=np.int64)
        nodes, degrees = table.engine.numbers(_degrees(table.pairs(), shift)).T
        counts[nodes] = degrees
        return torch.from_numpy(counts)

    def mixing(self, classes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count edges by the classes of their ends: shape ``(K, K)``."""
        self._table.engine.upload(_NODES, {"node": np.arange(len(classes)), "class": classes})
        ends = _classes_of_ends(self._table.pairs())
        grouped = ends.group_by(["first", "second"]).aggregate(edges=ends.count())
        size = int(classes.max()) + 1
        counts = np.zeros((size, size), dtype=np.int64)
        first, second, edges = self._table.engine.numbers(grouped).T
        counts[first, second] = edges
        return counts

    def column_mixing(
        self, rows: NDArray[np.int64], sizes: Sequence[int], max_weight: int, pairs: Pairs = None
    ) -> NDArray[np.int64]:
        """Sum weights by the values of private columns, from edges by values and larger degree."""
        check_mixing(self._table.num_nodes, sizes, pairs)
        sums, engine = [], self._table.engine
        columns = [(j, j) for j in range(len(sizes))] if pairs is None else pairs
        for (one, other), size in zip(columns, num_mixing_cells(sizes, pairs), strict=True):
            values = {"class": rows[:, one], "second": rows[:, other]}
            engine.upload(_NODES, {"node": np.arange(len(rows)), **values})
            counted = engine.numbers(
                _edges_by_value_and_degree(self._table.pairs(), ordered=pairs is not None)
            )
            first, second, larger, edges = counted.astype(np.int64).T
            cells = mixing_cells(first, second, None if pairs is None else sizes[other])
            sums.append(mixing_of_counts(cells, larger, edges, size, max_weight))
        return np.concatenate(sums)

    def joint_degrees(self, largest_two: int) -> NDArray[np.int64]:
        """Count edges by the degrees of their ends: shape ``(C,)``."""
        table, ends = self._table, _with_degrees(self._table.pairs())
        ends = ends.select(
            smaller=ibis.least(ends.low_degree, ends.high_degree),
            larger=ibis.greatest(ends.low_degree, ends.high_degree),
        )
        ends = ends.filter(ends.smaller + ends.larger <= largest_two)
        grouped = ends.group_by(["smaller", "larger"]).aggregate(edges=ends.count())
        rows = table.engine.numbers(grouped)
        return cells_of_counts(rows[:, :2], rows[:, 2], largest_two, table.num_nodes)

    def neighbor_sums(self, rows: Tensor) -> Tensor:
        """Sum the rows of each node's neighbors: shape ``(N, k)``, some columns at a time."""
        values, step = on_grid(rows)
        width = max(1, _MOST_NUMBERS // len(values))
        parts = [
            self._added_up(values[:, start : start + width].astype(np.int64))
            for start in range(0, values.shape[1], width)
        ]
        return torch.from_numpy(np.concatenate(parts, axis=1) * step).to(rows)

    def _added_up(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Let the engine sum up public whole numbers of each node's neighbors: ``(N, k)``."""
        names = [f"value_{place}" for place in range(values.shape[1])]
        columns = dict(zip(names, values.T, strict=True))
        self._table.engine.upload(_NODES, {"node": np.arange(len(values)), **columns})
        sums = np.zeros_like(values)
        for batch in self._table.engine.numbers_in_batches(
            _neighbor_sums(self._table.pairs(), names)
        ):
            whole = batch.astype(np.int64)
            sums[whole[:, 0]] = whole[:, 1:]
        return sums

    def wedges(
        self,
        slots: NDArray[np.int64],
        classes: NDArray[np.int64],
        closures_per_edge: int,
        seed: int,
    ) -> NDArray[np.int64]:
        """Count chosen wedges and closed wedges: shape ``(2, K)``.

        The server chooses the wedges, counts them and finds the closed ones. The cap on the wedges
        that a link closes follows a public random order of the slots, which stays here: the server
        hands over the closed wedges by numbers of slots and of nodes.
        """
        table = self._table
        hashing = WedgeHash(slots, seed)
        table.engine.upload(_NODES, {"class": classes, **hashing.columns()})
        chosen = _wedges(table.pairs())
        counts = np.zeros((2, int(classes.max()) + 1), dtype=np.int64)
        per_class = chosen.group_by("class").aggregate(wedges=chosen.count())
        groups, wedges = table.engine.numbers(per_class).T
        counts[0, groups] = wedges
        closed = chosen.join(table.pairs(), ["low", "high"]).select("slot", "class", "low", "high")
        rows = table.engine.numbers(closed)
        links = rows[:, 2] * table.num_nodes + rows[:, 3]
        is_counted = count_closed(rows[:, 0], links, hashing.order, closures_per_edge)
        counts[1] = np.bincount(rows[is_counted, 1], minlength=counts.shape[1])
        return counts


def _classes_of_ends(pairs: Any, *, ordered: bool = False) -> Any:
    """Return the uploaded classes of the ends of each pair beside the pair.

    They are the larger and the smaller one, or with an order the class of the first end and what was
    uploaded as ``second`` of the second end.
    """
    of_second = "second" if ordered else "class"
    nodes = ibis.table(dict.fromkeys(["node", "class", of_second], "int64"), name=_NODES)
    low = nodes.select(low=nodes.node, low_class=nodes["class"])
    high = nodes.select(high=nodes.node, high_class=nodes[of_second])
    ends = pairs.join(low, "low").join(high, "high")
    both = ends.low_class, ends.high_class
    first, second = both if ordered else (ibis.greatest(*both), ibis.least(*both))
    return ends.select("low", "high", first=first, second=second)


def _with_degrees(pairs: Any) -> Any:
    """Add the degrees of both ends to each pair."""
    degrees = _degrees(pairs.select("low", "high"), 0)
    low = degrees.select(low=degrees.node, low_degree=degrees.degree)
    high = degrees.select(high=degrees.node, high_degree=degrees.degree)
    return pairs.join(low, "low").join(high, "high")


def _edges_by_value_and_degree(pairs: Any, *, ordered: bool) -> Any:
    """Count edges by the uploaded values of their ends and by the larger degree of both."""
    ends = _with_degrees(_classes_of_ends(pairs, ordered=ordered))
    ends = ends.mutate(larger=ibis.greatest(ends.low_degree, ends.high_degree))
    return ends.group_by(["first", "second", "larger"]).aggregate(edges=ends.count())


def _degrees(pairs: Any, shift: int) -> Any:
    """Return the number of edges at each node that has any; second nodes are shifted."""
    ends = ibis.union(
        pairs.select(node=pairs.low.cast("int64")),
        pairs.select(node=pairs.high.cast("int64") + shift),
    )
    return ends.group_by("node").aggregate(degree=ends.count())


def _neighbor_sums(pairs: Any, names: Sequence[str]) -> Any:
    """Return the sums of the public columns of all neighbors, at each node that has any."""
    values = ibis.table({"node": "int64", **dict.fromkeys(names, "int64")}, name=_NODES)
    low, high = pairs.low.cast("int64"), pairs.high.cast("int64")
    ends = ibis.union(pairs.select(center=low, other=high), pairs.select(center=high, other=low))
    ends = ends.join(values, ends.other == values.node)
    return ends.group_by("center").aggregate(**{name: ends[name].sum() for name in names})


def _wedges(pairs: Any) -> Any:
    """Return the chosen wedges, a row each: slot, class of the center, and both ends.

    All arithmetic is on whole numbers below 2^63, which each engine has: factors and numbers of 64
    bits are halves of 32 bits, and the halves are multiplied by parts of 16 bits.
    """
    columns = ("node", "class", "slots", "first_bin", "factor_high", "factor_low")
    others = ("node", "number_high", "number_low")
    nodes = ibis.table({name: "int64" for name in (*columns, *others[1:])}, name=_NODES)
    low, high = pairs.low.cast("int64"), pairs.high.cast("int64")
    arms = ibis.union(pairs.select(center=low, other=high), pairs.select(center=high, other=low))
    centers = nodes.filter(nodes.slots > 0).select(**{f"c_{name}": nodes[name] for name in columns})
    ends = nodes.select(**{f"o_{name}": nodes[name] for name in others})
    arms = arms.join(centers, arms.center == centers.c_node)
    arms = arms.join(ends, arms.other == ends.o_node)
    half = 2**32
    mixed = _low_product(arms.c_factor_high, arms.o_number_low)
    mixed = mixed + _low_product(arms.c_factor_low, arms.o_number_high)
    hashed = (mixed + _high_product(arms.c_factor_low, arms.o_number_low)) % half
    arms = arms.mutate(hashed=hashed)
    place = _shifted(arms.hashed * 2 * arms.c_slots, 32)
    arms = arms.mutate(bin=arms.c_first_bin + place)
    window = ibis.window(group_by="bin", order_by=["hashed", "other"])
    arms = arms.mutate(rank=ibis.row_number().over(window))
    first = arms.filter(arms["rank"] == 0)
    first = first.mutate(slot=_shifted(first.bin, 1))
    grouped = first.group_by(["slot", "c_class"]).aggregate(
        bins=first.count(), low=first.other.min(), high=first.other.max()
    )
    grouped = grouped.filter(grouped.bins == 2)
    return grouped.select("slot", "low", "high", **{"class": grouped.c_class})


def _shifted(value: Any, bits: int) -> Any:
    """Divide a number of 0 or more by a power of two, rounded down."""
    return (value - value % 2**bits) // 2**bits


def _low_product(one: Any, other: Any) -> Any:
    """Return the lower 32 bits of the product of two numbers of 32 bits."""
    upper = (one * _shifted(other, 16)) % 2**16 * 2**16
    return (upper + one * (other % 2**16)) % 2**32


def _high_product(one: Any, other: Any) -> Any:
    """Return the upper 32 bits of the product of two numbers of 32 bits."""
    return _shifted(one * _shifted(other, 16) + _shifted(one * (other % 2**16), 16), 16)
