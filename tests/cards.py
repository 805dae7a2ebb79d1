"""Cards of statements, without a release."""

from lightning_dpg.release.card.document import CARD, pages
from lightning_dpg.release.card.topics import Facts, topics

FACTS = Facts(
    method_path="lightning_dpg.methods.Any",
    settings={"share": 0.5},
    is_set=False,
    max_occurrences=1,
    num_graphs=1,
    date="2026-11-22",
    version="0.2.0",
    configuration=None,
)


def entry(mechanism="pure", key="num_edges", relation="edge", **amounts):
    values = {"sensitivity": 1, "proof": "edge_count_sensitivity", "steps": 1, "sample_rate": 1.0}
    values |= {"name": "number of edges", "key": key, "relation": relation, "mechanism": mechanism}
    return values | {"record": "undirected edge", "public": {}} | amounts


def statement(relation="edge", epsilon=1.0, delta=0.0, entries=None, **changes):
    """A statement as of a method with one release."""
    values = {
        "method": "Any",
        "mode": "plain",
        "relation": relation,
        "epsilon": epsilon,
        "delta": delta,
        "conditional": False,
        "accountant": "sum of pure epsilons",
        "steps": 0,
        "guarantee": f"({epsilon}, {delta})-DP",
        "assumptions": ["The node set is public."],
        "entries": [entry(relation=relation, epsilon=epsilon)] if entries is None else entries,
        "noise_source": "os",
    }
    return values | changes


def with_rows(relation="edge", key="rows", **changes):
    """A statement as of a method that reads private columns too."""
    record = "private columns of one node"
    read = entry(relation="attributes", key=key, record=record, epsilon=0.5)
    further = {"relation": "attributes", "epsilon": 0.5, "delta": 0.0, "record": record}
    values = statement(relation, **changes)
    values["beside"] = [further | {"accountant": "sum of pure epsilons", "reads": 1}]
    return values | {"entries": [*values["entries"], read]}


def card_of(statement, **changes):
    """The card of a statement in Markdown, with other facts."""
    return pages(statement | topics(statement, FACTS._replace(**changes)))[CARD]
