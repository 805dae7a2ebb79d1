"""Tables of private columns move within their bound, for all rows of few nodes."""

import itertools

import numpy as np

from lightning_dpg.graph.row_counts import count_pairs, pairs_of_axes, tables_of_pairs
from lightning_dpg.privacy.sensitivity import row_table_sensitivity


def test_the_columns_of_one_node_move_each_table_by_two_at_most():
    classes, sizes = (0, 1, 1), (2, 2, 2)
    values = list(itertools.product(range(2), repeat=2))
    found = {
        rows: count_pairs(
            np.array([(each, *row) for each, row in zip(classes, rows, strict=True)]), sizes
        )
        for rows in itertools.product(values, repeat=3)
    }
    moves = [
        np.abs(counts - found[*rows[:node], value, *rows[node + 1 :]]).sum()
        for rows, counts in found.items()
        for node in range(3)
        for value in values
    ]
    assert max(moves) == row_table_sensitivity(len(pairs_of_axes(3))) == 6


def test_tables_count_nodes_by_two_axes():
    table = np.array([(0, 2, 1), (1, 0, 1), (0, 2, 0), (0, 2, 1)])
    tables = tables_of_pairs(count_pairs(table, (2, 3, 2)), (2, 3, 2))
    assert {pair: counts.shape for pair, counts in tables.items()} == {
        (0, 1): (2, 3),
        (0, 2): (2, 2),
        (1, 2): (3, 2),
    }
    assert tables[0, 1].tolist() == [[0, 0, 3], [1, 0, 0]]
    assert tables[1, 2].tolist() == [[0, 1], [0, 0], [1, 2]]
