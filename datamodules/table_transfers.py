"""Counts of the transfers of a table (private) by its server, one Ibis expression each.

The server orders the transfers of each pair once, by the public order of time, payer and amount. What is
handed over are counts, and for the strengths of nodes a sum for each of them.
"""

from functools import cached_property
from typing import Any

import ibis  # of the extra 'tables'
import numpy as np
import torch

from lightning_dpg.datamodules.table_records import EdgeTable
from lightning_dpg.formats.columns import Columns
from lightning_dpg.graph.counts import Integers
from lightning_dpg.graph.transfer_counts import (
    DAY,
    HOUR,
    HOURS_OF_WEEK,
    EndClasses,
    Strengths,
    Window,
    amount_borders,
    classes_of_degrees,
    count_strengths,
    gap_borders,
    number_bins,
    number_borders,
    window_of,
)
from lightning_dpg.interfaces import TransferBounds

_CLASSES = "classes_of_ends"
_RANKED = "ranked_transfers"


class TableTransfers:
    """The transfers of a table, which its server counts.

    Args:
        table: The table, whose columns of amounts and times are read.

    Attributes:
        bounds: Bounds of amounts and times (public).
    """

    def __init__(self, table: EdgeTable) -> None:
        self._table, self._columns = table, table.columns
        self.bounds = TransferBounds(self._columns.weight_max, self._columns.window)

    def counts(self, most: int | None) -> "TableTransferCounts":
        """Return the counts of the transfers that count, see ``CountsTransfers``."""
        return TableTransferCounts(self._table, self._ranked, self._columns, most)

    @cached_property
    def _ranked(self) -> Any:
        """All transfers with their place in the order of their pair, kept by the server."""
        rows, has_times = _rows(self._table, self._columns), self._columns.time is not None
        self._table.engine.define(_RANKED, _ranked(rows, has_times=has_times), keep=True)
        schema = {**rows.schema(), "place": "int32"}
        if has_times:
            schema |= {"gap": "int64", "is_reply": "int8"}
        return ibis.table(schema, name=_RANKED)


class TableTransferCounts:
    """Exact counts of the transfers of a table (private), see ``TransferCountsSource``.

    Args:
        table: The table.
        ranked: Its transfers in Ibis, with their places.
        columns: Columns of amounts and times, with their bounds.
        most: Number k of transfers of a pair that count; None for all.
    """

    def __init__(self, table: EdgeTable, ranked: Any, columns: Columns, most: int | None) -> None:
        self._table, self._columns, self._most = table, columns, most
        if most == 1 and columns.time is None:
            ranked = _totals(ranked, columns.largest)
        self._counted = ranked if most is None else ranked.filter(ranked.place < most)

    def numbers(self) -> Integers:
        """Count pairs by the number of their transfers."""
        pairs = self._counted.group_by(["low", "high"]).aggregate(n=self._counted.count())
        counts = np.zeros(len(number_borders(self._most)), dtype=np.int64)
        found = self._table.engine.numbers(pairs.group_by("n").aggregate(pairs=pairs.count()))
        np.add.at(counts, number_bins(found[:, 0], self._most), found[:, 1])
        return counts

    def amounts(self, classes: EndClasses) -> Integers:
        """Count transfers by the classes of their ends and the bin of their amount."""
        borders = amount_borders(self._columns.weight_max or 0.0)
        rows = self._with_cells(classes)
        rows = rows.mutate(bin=_bin(rows.amount, borders))
        return self._table_of(rows, ["cell", "bin"], (classes.num_cells, len(borders)))

    def sums(self, classes: EndClasses) -> Integers:
        """Sum amounts by the classes of the ends."""
        rows = self._with_cells(classes)
        sums = rows.group_by("cell").aggregate(sum=rows.amount.sum().cast("int64"))
        found = np.zeros(classes.num_cells, dtype=np.int64)
        cells, values = self._table.engine.numbers(sums).T
        found[cells] = values
        return found

    def strengths(self, nodes: slice) -> Integers:
        """Count nodes by the class of their degree and the bin of their sum of amounts."""
        found = np.zeros((2, self._table.num_nodes), dtype=np.int64)
        numbers, degrees, sums = self._table.engine.numbers(_node_sums(self._counted)).T
        found[:, numbers] = degrees, sums
        strengths = Strengths(classes_of_degrees(found[0]), found[1])
        return count_strengths(strengths, nodes, self._columns.weight_max or 0.0)

    def days(self) -> Integers:
        """Count transfers by day."""
        return self._by_hour.reshape(-1, 24).sum(axis=1)

    def hours(self) -> Integers:
        """Count transfers by hour of the week."""
        hours = self._window.hours_of_week(np.arange(len(self._by_hour)) * HOUR)
        counts = np.zeros(HOURS_OF_WEEK, dtype=np.int64)
        np.add.at(counts, hours, self._by_hour)
        return counts

    def gaps(self) -> Integers:
        """Count gaps by reply and bin."""
        borders = gap_borders(self._window)
        rows = self._counted.filter(self._counted.place > 0)
        rows = rows.mutate(bin=_bin(rows.gap, borders))
        return self._table_of(rows, ["is_reply", "bin"], (2, len(borders)))

    def new_pairs(self) -> Integers:
        """Count pairs by the day of their first transfer."""
        first = self._counted.filter(self._counted.place == 0)
        return self._by_steps(first, DAY, self._window.days)

    @property
    def _window(self) -> Window:
        """Grid of days and hours, of transfers that have times."""
        assert self._columns.window is not None
        return window_of(*self._columns.window)

    @cached_property
    def _by_hour(self) -> Integers:
        """Transfers by hour of the window."""
        return self._by_steps(self._counted, HOUR, 24 * self._window.days)

    def _by_steps(self, rows: Any, length: int, number: int) -> Integers:
        """Count rows by steps of the window: shape ``(number,)``."""
        steps = rows.mutate(start=rows.time - rows.time % length)
        counts = np.zeros(number, dtype=np.int64)
        starts, found = self._table.engine.numbers(
            steps.group_by("start").aggregate(rows=steps.count())
        ).T
        counts[starts // length] = found
        return counts

    def _table_of(self, rows: Any, names: list[str], shape: tuple[int, int]) -> Integers:
        """Count rows by two columns of whole numbers."""
        counts = np.zeros(shape, dtype=np.int64)
        first, second, found = self._table.engine.numbers(
            rows.group_by(names).aggregate(rows=rows.count())
        ).T
        counts[first, second] = found
        return counts

    def _with_cells(self, classes: EndClasses) -> Any:
        """Add the pair of classes of payer and payee to each transfer."""
        table, space = self._table, self._table.space
        payer, payee = space.ends(torch.arange(table.num_nodes)[:, None].expand(-1, 2)).T.numpy()
        columns = {
            "node": np.arange(table.num_nodes),
            "payer_class": classes.of_end[payer],
            "payee_class": classes.of_end[payee],
        }
        table.engine.upload(_CLASSES, columns)
        nodes = ibis.table(dict.fromkeys(columns, "int64"), name=_CLASSES)
        rows = self._counted
        rows = rows.join(nodes.select(payer=nodes.node, payer_class=nodes.payer_class), "payer")
        rows = rows.join(nodes.select(payee=nodes.node, payee_class=nodes.payee_class), "payee")
        return rows.mutate(cell=rows.payer_class * classes.sizes[1] + rows.payee_class)


def _rows(table: EdgeTable, columns: Columns) -> Any:
    """Return the transfers in numbers: the pair, payer and payee, clipped amount and time."""
    rows = table.numbered_rows()
    payer, payee = rows.source_number, rows.target_number
    low, high = payer, payee
    if table.kind == "undirected":
        low, high = ibis.least(payer, payee), ibis.greatest(payer, payee)
    found = {"low": low, "high": high, "payer": payer, "payee": payee}
    if columns.weight is not None:
        found["amount"] = ibis.least(rows.amount, columns.largest)
    if columns.time is not None:
        found["time"] = rows.time
    return rows.select(**found)


def _ranked(rows: Any, *, has_times: bool) -> Any:
    """Add the place of each transfer in its pair, from 0 on, and the gap to the one before.

    Equal transfers cannot be told apart: it does not matter which of them is first.
    """
    keys = [name for name in ("time", "payer", "amount") if name in rows.columns]
    window = ibis.window(group_by=["low", "high"], order_by=keys)
    places = {"place": ibis.row_number().over(window).cast("int32")}
    if has_times:
        before = rows.payer.lag().over(window)
        places["gap"] = rows.time - rows.time.lag().over(window)
        places["is_reply"] = ibis.ifelse(before == rows.payer, 0, 1).cast("int8")
    return rows.mutate(**places)


def _totals(ranked: Any, largest: int) -> Any:
    """Return one transfer for each pair, of all its amounts, in the direction of its first one."""
    sums = ranked.group_by(["low", "high"]).aggregate(
        payer=ranked.payer.min(), total=ranked.amount.sum().cast("int64")
    )
    return sums.mutate(
        payee=ibis.ifelse(sums.payer == sums.low, sums.high, sums.low),
        amount=ibis.least(sums.total, largest),
        place=ibis.literal(0, "int64"),
    )


def _node_sums(rows: Any) -> Any:
    """Return the number of pairs and the sum of amounts at each node that has any."""
    is_first = ibis.ifelse(rows.place == 0, 1, 0).cast("int64")
    ends = ibis.union(
        rows.select(node=rows.payer, is_first=is_first, amount=rows.amount),
        rows.select(node=rows.payee, is_first=is_first, amount=rows.amount),
    )
    return ends.group_by("node").aggregate(
        pairs=ends.is_first.sum().cast("int64"), sum=ends.amount.sum().cast("int64")
    )


def _bin(values: Any, borders: Integers) -> Any:
    """Return the bin of numbers, given the smallest one of each bin."""
    cases = [(values < border, place) for place, border in enumerate(borders[1:].tolist())]
    return ibis.cases(*cases, else_=len(borders) - 1).cast("int64")
