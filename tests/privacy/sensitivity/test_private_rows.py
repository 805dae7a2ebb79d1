"""Tables of private columns move within their bound, for all rows of few nodes."""

import itertools

import numpy as np
import pytest

from lightning_dpg.graph.rows import count_pairs, tables_of_pairs, times_counted
from lightning_dpg.privacy.sensitivity.private_columns import row_table_sensitivity


@pytest.mark.parametrize(("num_columns", "tables"), [(1, 1), (2, 3), (4, 6 + 2 * 4)])
def test_the_columns_of_one_node_move_all_tables_within_their_bound(num_columns, tables):
    """By 2 for each table; those of the class count twice beside four columns."""
    classes, sizes = (0, 1), [2] * (1 + num_columns)
    values = list(itertools.product(range(2), repeat=num_columns))
    found = {
        rows: count_pairs(
            np.array([(each, *row) for each, row in zip(classes, rows, strict=True)]), sizes
        )
        for rows in itertools.product(values, repeat=2)
    }
    moves = [
        np.abs(counts - found[*rows[:node], value, *rows[node + 1 :]]).sum()
        for rows, counts in found.items()
        for node in range(2)
        for value in values
    ]
    assert sum(times_counted(1 + num_columns)) == tables
    assert max(moves) == row_table_sensitivity(tables) == 2 * tables


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
