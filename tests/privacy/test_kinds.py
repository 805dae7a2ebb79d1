"""The guarantee of a database: kinds compose in parallel, the private columns of a node add up."""

import itertools
import math

import pytest

from lightning_dpg.release.database import statement_of


def statement(epsilon, delta=0.0, rows=None):
    beside = [] if rows is None else [{"relation": "attributes", "epsilon": rows, "delta": 0.0}]
    return {
        "method": "Attributed",
        "relation": "edge",
        "epsilon": epsilon,
        "delta": delta,
        "guarantee": f"edge-level ({epsilon}, {delta})-DP",
        "beside": beside,
    }


def facts():
    def kind(*between):
        return {
            "between": [*between],
            "keys": ["a", "b"],
            "graph": "bipartite",
            "exactly_one": None,
            "amount": None,
            "time": None,
        }

    def table(*columns):
        return {"id": "id", "size": 3, "names": "numbers", "columns": [*columns]}

    return {
        "nodes": {"person": table("age"), "shop": table("branch"), "account": table()},
        "relations": {
            "owns": kind("person", "account"),
            "buys": kind("person", "shop"),
            "transfers": kind("account", "account"),
        },
    }


def test_a_relation_costs_the_largest_of_its_kinds_and_a_row_the_sum_over_them():
    parts = {
        "owns": statement(1.0, rows=0.5),
        "buys": statement(0.5, 1e-6, rows=0.25),
        "transfers": statement(0.75),
    }
    found = statement_of(facts(), parts)
    assert (found["epsilon"], found["delta"]) == (1.0, 1e-6)
    rows = {table: about["epsilon"] for table, about in found["nodes"].items()}
    assert rows == {"person": 0.75, "shop": 0.25, "account": 0.0}  # without columns
    assert "(1, 1e-06)-DP" in found["guarantee"]
    assert "one person (age): (0.75, 0)-DP" in found["guarantee"]
    assert "account (" not in found["guarantee"]
    parts["buys"] = statement("inf")
    assert statement_of(facts(), parts)["guarantee"] == "none: buys: epsilon is infinite."


def laplace(value, center, epsilon):
    """Probability of a count with discrete Laplace noise."""
    ratio = math.exp(-epsilon)
    return (1 - ratio) / (1 + ratio) * ratio ** abs(value - center)


def second(one):
    """Epsilon of the second kind, which may depend on what the first one has released."""
    return 0.9 if one % 2 else 0.4


def law(database, one, other):
    first, then = database
    return laplace(one, sum(first), 0.7) * laplace(other, sum(then) + one, second(one))


KINDS = [list(itertools.product((0, 1), repeat=size)) for size in (3, 2)]


def test_all_pairs_of_small_databases_are_within_the_largest_epsilon():
    """Two kinds of 3 and 2 possible relations, by counts; all outputs of two runs that follow each other."""
    worst = {0: 0.0, 1: 0.0}
    for database in itertools.product(*KINDS):
        for kind in (0, 1):
            for place in range(len(database[kind])):
                changed = [*database[kind]]
                changed[place] ^= 1
                other = [*database]
                other[kind] = tuple(changed)
                for outputs in itertools.product(range(-2, 6), range(-2, 11)):
                    ratio = abs(math.log(law(database, *outputs) / law(other, *outputs)))
                    worst[kind] = max(worst[kind], ratio)
    assert worst[0] == pytest.approx(0.7)  # what the second run reads of the first one is released
    assert worst[1] == pytest.approx(0.9)
    assert max(worst.values()) < 0.7 + 0.9
