"""Counts of amounts and times move within their bounds, for all neighbors of small tables of transfers."""

import datetime
import itertools
import random
from functools import partial

import numpy as np
import pytest
import torch

from lightning_dpg.graph import transfer_counts as counts
from lightning_dpg.interfaces import TransferBounds, Transfers
from lightning_dpg.methods.single_graph.protected_unit import counted as counted_of
from lightning_dpg.privacy.sensitivity import transfers as bounds

C = 0.7  # 70 units
WINDOW = counts.Window(3, 5)
DAYS = datetime.datetime(2022, 1, 1), datetime.datetime(2022, 1, 3)
PAIRS, TIMES, AMOUNTS = [(0, 1), (1, 0), (0, 2)], [0, 50, 90_000], [3, 200]
"""Both directions of one pair, and another pair; two of the times on one day; one amount above C."""
ROWS = list(itertools.product(PAIRS, TIMES, AMOUNTS))
TABLES = [
    table for size in range(4) for table in itertools.combinations_with_replacement(ROWS, size)
]
CLASSES = np.array([0, 1, 1])  # of the nodes: public, or functions of earlier releases


def transfers(table, has_times=True):
    """Transfers of a table; the amounts are clipped by the reader, or later."""
    rows = list(table)
    random.Random(len(rows)).shuffle(rows)  # their order does not count
    return Transfers(
        torch.tensor([pair for pair, _, _ in rows], dtype=torch.long).view(-1, 2),
        torch.tensor([amount for _, _, amount in rows], dtype=torch.long),
        torch.tensor([time for _, time, _ in rows], dtype=torch.long) if has_times else None,
        TransferBounds(C, DAYS if has_times else None),
    )


def cells(counted):
    return CLASSES[counted.pairs[:, 0]] * 2 + CLASSES[counted.pairs[:, 1]]


def amount_counts(counted):
    return counts.count_amounts(counted.amounts, cells(counted), 4, C)


def amount_sums(counted):
    return counts.sum_amounts(counted.amounts, cells(counted), 4)


def strength_counts(counted):
    found = counts.strengths_of(counted.pairs, counted.is_first, counted.amounts, 3)
    return counts.count_strengths(found, slice(0, 3), C)


def side_strengths(counted):
    """Of node 0 alone, to which each pair has one end."""
    found = counts.strengths_of(counted.pairs, counted.is_first, counted.amounts, 3)
    return counts.count_strengths(found, slice(0, 1), C)


def without(table, pair):
    """All transfers of a pair come or go together, in both directions unless the graph is directed."""
    return tuple(row for row in table if row[0] not in pair)


def largest_move(reads, tables, pairs):
    """Largest change between a table and itself without the transfers of a pair, or without one."""
    found = {table: reads(table).ravel() for table in tables}
    moves = [0]
    for table, value in found.items():
        others = (
            {without(table, pair) for pair in pairs}
            if pairs
            else {table[:k] + table[k + 1 :] for k in range(len(table))}
        )
        moves += [np.abs(value - found[other]).sum() for other in others]
    return max(moves)


def read(value, kind, most, table, has_times=True):
    return value(counted_of(transfers(table, has_times), kind, most))


K = 2
RELATIONS = {"undirected": [{(0, 1), (1, 0)}, {(0, 2)}], "directed": [{pair} for pair in PAIRS]}
DAYS_OF = partial(counts.count_days, window=WINDOW)
NEW_PAIRS_OF = partial(counts.count_new_pairs, window=WINDOW)


def by_longer_times(curve):
    """Counts of a curve of days in two bins: the first day, and both others."""
    return lambda counted: np.add.reduceat(curve(counted), [0, 1])


BY_RELATION = [
    (amount_counts, bounds.amount_count_sensitivity(K), 2),
    (amount_sums, bounds.amount_sum_sensitivity(K, 70), 140),
    (strength_counts, bounds.strength_sensitivity(2), 4),
    (side_strengths, bounds.strength_sensitivity(1), 2),
    (partial(counts.count_numbers, most=K), bounds.pair_number_sensitivity(), 1),
    (DAYS_OF, bounds.event_count_sensitivity(K), 2),
    (partial(counts.count_hours, window=WINDOW), bounds.event_count_sensitivity(K), 2),
    (NEW_PAIRS_OF, bounds.relation_contact_sensitivity(), 1),
    (by_longer_times(DAYS_OF), bounds.event_count_sensitivity(K), 2),
    (by_longer_times(NEW_PAIRS_OF), bounds.relation_contact_sensitivity(), 1),
    (partial(counts.count_gaps, window=WINDOW), bounds.relation_gap_sensitivity(K), 1),
]
BY_TRANSFER = [
    (amount_counts, bounds.amount_count_sensitivity(1), 1),
    (amount_sums, bounds.amount_sum_sensitivity(1, 70), 70),
    (strength_counts, bounds.strength_sensitivity(2), 4),
    (side_strengths, bounds.strength_sensitivity(1), 2),
    (partial(counts.count_numbers, most=None), bounds.transfer_number_sensitivity(), 2),
    (DAYS_OF, bounds.event_count_sensitivity(1), 1),
    (partial(counts.count_hours, window=WINDOW), bounds.event_count_sensitivity(1), 1),
    (NEW_PAIRS_OF, bounds.transfer_contact_sensitivity(), 2),
    (by_longer_times(DAYS_OF), bounds.event_count_sensitivity(1), 1),
    (by_longer_times(NEW_PAIRS_OF), bounds.transfer_contact_sensitivity(), 2),
    (partial(counts.count_gaps, window=WINDOW), bounds.transfer_gap_sensitivity(), 3),
]


@pytest.mark.parametrize("kind", RELATIONS)
@pytest.mark.parametrize(("value", "bound", "by_hand"), BY_RELATION)
def test_a_relation_with_all_its_transfers_moves_each_read_within_its_bound(
    kind, value, bound, by_hand
):
    reads = partial(read, value, kind, K)
    assert largest_move(reads, TABLES, RELATIONS[kind]) == bound == by_hand


@pytest.mark.parametrize(("value", "bound", "by_hand"), BY_TRANSFER)
def test_one_transfer_moves_each_read_within_its_bound(value, bound, by_hand):
    reads = partial(read, value, "undirected", None)
    assert largest_move(reads, TABLES, None) == bound == by_hand


@pytest.mark.parametrize(("value", "by_hand"), [(amount_counts, 1), (amount_sums, 70)])
def test_without_times_a_relation_is_one_clipped_total(value, by_hand):
    reads = partial(read, value, "undirected", 1, has_times=False)
    assert largest_move(reads, TABLES, RELATIONS["undirected"]) == by_hand


def test_a_bound_of_the_data_is_found():
    """The largest amount as C: its owner moves the bins of all others, and the clip of all sums."""

    def reads(value, table):
        found = transfers(table)
        largest = max((amount for _, _, amount in table), default=1) / 100
        held = found._replace(bounds=TransferBounds(largest, DAYS))
        counted = counted_of(held, "undirected", None)
        return value(counted, largest)

    def binned(counted, largest):
        return counts.count_amounts(counted.amounts, cells(counted) * 0, 1, largest)[0, -1:]

    def summed(counted, _):
        return amount_sums(counted)

    few = [(((0, 1), 0, 3),) * size for size in range(4)]
    few += [(*table, ((0, 1), 0, 200)) for table in few]
    assert largest_move(partial(reads, binned), few, None) > bounds.amount_count_sensitivity(1)
    assert largest_move(partial(reads, summed), TABLES, None) > bounds.amount_sum_sensitivity(1, 70)


def test_a_window_of_the_data_is_found():
    """The first time as the beginning of the window: its transfer moves the days of all others."""

    def reads(table):
        first = min((time for _, time, _ in table), default=0) // counts.DAY * counts.DAY
        shifted = [(pair, time - first, amount) for pair, time, amount in table]
        return read(DAYS_OF, "undirected", None, shifted)

    assert largest_move(reads, TABLES, None) > bounds.event_count_sensitivity(1)


def test_a_width_of_the_data_is_found():
    """Bins as wide as the exact number of transfers asks for: one transfer merges the bins of all others."""

    def reads(table):
        days = read(DAYS_OF, "undirected", None, table)
        merged = np.zeros_like(days)
        first = counts.first_days(len(days), 0.2, float(len(table)))
        merged[first] = np.add.reduceat(days, first)
        return merged

    assert largest_move(reads, TABLES, None) > bounds.event_count_sensitivity(1)


def test_a_cap_that_looks_at_other_pairs_is_found():
    """The first transfers of the whole table instead of those of each pair."""

    def reads(table):
        return read(DAYS_OF, "undirected", None, sorted(table, key=lambda row: row[1])[:2])

    assert largest_move(reads, TABLES, [{(0, 2)}]) > bounds.relation_contact_sensitivity()
    kept = partial(read, DAYS_OF, "undirected", 1)
    assert largest_move(kept, TABLES, [{(0, 2)}]) == bounds.event_count_sensitivity(1) == 1


def test_the_order_of_rows_does_not_count():
    table = [((0, 1), 50, 3), ((1, 0), 50, 3), ((0, 1), 50, 9), ((0, 1), 0, 9), ((0, 2), 0, 1)]
    found = set()
    for rows in itertools.permutations(table):
        held = Transfers(
            torch.tensor([pair for pair, _, _ in rows]),
            torch.tensor([amount for _, _, amount in rows]),
            torch.tensor([time for _, time, _ in rows]),
            TransferBounds(C, DAYS),
        )
        counted = counted_of(held, "undirected", 3)
        found.add((tuple(map(tuple, counted.pairs.tolist())), tuple(counted.amounts.tolist())))
    assert found == {(((0, 1), (0, 1), (0, 1), (0, 2)), (9, 3, 9, 1))}


def test_bins_cover_all_amounts_and_depend_on_the_bound_alone():
    borders = counts.amount_borders(1000)
    assert borders[0] == 0 and borders[1] == 100 and borders[-1] == 100_000
    assert len(borders) == 26 and (np.diff(borders) > 0).all()
    assert counts.amount_borders(0.02).tolist() == [0, 1, 2]
    found = counts.count_amounts(np.array([0, 99, 100, 99_999, 100_000]), np.zeros(5, int), 1, 1000)
    assert found[0, [0, 1, 24, 25]].tolist() == [2, 1, 1, 1]


def test_hours_of_the_week_begin_on_monday():
    window = counts.window_of(*DAYS)  # the first of January 2022 was a Saturday
    assert window == (3, 5)
    assert window.hours_of_week(np.array([0, 3600, 2 * counts.DAY])).tolist() == [120, 121, 0]
