"""The study of the advice: its marks are those of the rule, and its regrets follow from its tables."""

import math
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
    nodes, degree, hubs = (
        float(known[graph, name].value) for name in ("nodes", "mean degree", "hubs")
    )
    given = {"has_attributes": "with attributes" in graph, "has_hubs": hubs >= 1}
    return Facts(goal, float(epsilon), int(nodes), nodes * degree / 2, **given)


def now(facts):
    best = recommend(facts)
    return best.denoise or best.method


def before(facts):
    """The rule until links beyond degrees became a goal."""
    if facts.has_attributes:
        return "AttributeEncoder"
    if facts.epsilon >= 5 + math.log(max(facts.num_nodes / 6000, 1)):
        return "spectral" if facts.num_nodes <= 100_000 else "PrivGraph"
    return "PrivGraph" if facts.mean_degree >= 30 / facts.epsilon else "ChungLu"


def rows_of(table):
    """Values of each row by column."""
    found = {}
    for (row, column), cell in STUDY.table_cells(table).items():
        found.setdefault(row, {})[column] = float(cell.value)
    return found


@pytest.mark.parametrize(
    ("goal", "data", "part"),
    [*TABLES, *((goal, "graphs with attributes", "tested") for goal in GOALS)],
)
def test_regrets_follow_from_the_tables(goal, data, part):
    table = f"{GOALS[goal]}{DATA.get(data, '')}{part}"
    regrets = {now: [], before: []}
    for row, values in rows_of(table).items():
        names = {rule: rule(facts_of(row, goal)) for rule in regrets}
        is_meant = ("with attributes" in row) == ("with attributes" in data)
        if is_meant and set(names.values()) <= values.keys():
            for rule, name in names.items():
                regrets[rule].append(round(max(values.values()) - values[name], 1))
    stated = {
        column: float(cell.value)
        for (row, column), cell in STUDY.table_cells("regrets").items()
        if row == f"{goal}, {data}, {part}"
    }
    expected = {"cells": len(regrets[now])}
    for rule, suffix in ((before, " before"), (now, "")):
        found = regrets[rule]
        expected |= {
            f"mean{suffix}": pytest.approx(sum(found) / len(found), abs=0.006),
            f"largest{suffix}": max(found),
            f"above 3{suffix}": sum(each > 3 for each in found),
        }
    assert stated == expected


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
