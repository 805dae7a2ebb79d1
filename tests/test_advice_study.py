"""The study of the advice: its marks are those of the rule, and its regrets follow from its tables."""

from itertools import product

import pytest

from lightning_dpg.advice import Facts, recommend
from results import tables

STUDY = tables.read_study(tables.FOLDER / "advice")
GOALS = {"links": "", "links-beyond-degrees": "matched_"}
DATA = {"graphs": "", "families": "families_"}
PARTS = ("fixed", "tested")
TABLES = list(product(GOALS, DATA, PARTS))


def parts_of(row):
    """Graph and epsilon of a row; those of families begin with the epsilon: budget plans leave them out."""
    first, last = row.split(" ", 1), row.rsplit(" ", 1)
    return tuple(reversed(first)) if ":" in row else tuple(last)


def facts_of(row, goal):
    """Facts of a cell, with the mean degree that the study has."""
    graph, epsilon = parts_of(row)
    known = STUDY.table_cells("graphs")
    nodes, degree = (float(known[graph, name].value) for name in ("nodes", "mean degree"))
    attributes = "with attributes" in graph
    return Facts(goal, float(epsilon), int(nodes), nodes * degree / 2, has_attributes=attributes)


def now(facts):
    best = recommend(facts)
    return best.denoise or best.method


def rows_of(table):
    """Values of each row by column."""
    found = {}
    for (row, column), cell in STUDY.table_cells(table).items():
        found.setdefault(row, {})[column] = float(cell.value)
    return found


@pytest.mark.parametrize(("goal", "data", "part"), TABLES)
def test_bold_is_the_recommended_method(goal, data, part):
    table = f"{GOALS[goal]}{DATA[data]}{part}"
    expected = {}
    for row, values in rows_of(table).items():
        name = now(facts_of(row, goal))
        if name in values:
            expected[row] = [name]
    assert STUDY.tables[table].bold == expected


def test_data_of_the_fix_are_not_tested():
    parts = {}
    for part, prefix in product(PARTS, DATA.values()):
        graphs = {parts_of(row)[0] for row in rows_of(f"{prefix}{part}")}
        parts.setdefault(part, set()).update(graphs)
    assert parts["fixed"] and parts["tested"] and not parts["fixed"] & parts["tested"]
