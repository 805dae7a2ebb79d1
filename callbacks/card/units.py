"""Unit of protection in words, for each neighboring relation."""

from typing import Any, NamedTuple

from lightning_dpg.callbacks.card.facts import Facts, publishes_names
from lightning_dpg.privacy.budget import Budget, digits_up
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.meaning import group_budget

_EVERYBODY = (
    "What can be learned about somebody from everybody else: a release says what is common in the "
    "data, and that may say much about a person whose own part is protected."
)
_CONTENT = (
    "Amounts, dates, directions, texts and repetitions of a relation: the method reads only "
    "whether two nodes are related."
)
_CONTENT_OF_DIRECTED = (
    "Amounts, dates, texts and repetitions of a relation: the method reads only whether one node "
    "is related to another, and in which direction."
)
_BOTH_DIRECTIONS = (
    "A mutual relation as a whole: one in each direction is two relations, so that the relation of "
    "two nodes in any direction is two units."
)
_PUBLIC_ATTRIBUTES = ("the node attributes,", "Node attributes are public")
"""How the assumption begins, here and in earlier versions."""
_ATTRIBUTES = (
    "Attributes of the nodes are published as they are, such as age or branch. A method that "
    "learns links from them also shows how alike related nodes are."
)


class Unit(NamedTuple):
    """One unit of protection.

    Attributes:
        name: The unit, singular.
        plural: The same, plural.
        question: What an attacker wants to know of one unit.
        description: One unit, and when two data sets differ in it.
        protected: Facts that the guarantee hides.
        unprotected: Facts that it does not hide.
        absent: Facts that the release does not hold at all.
    """

    name: str
    plural: str
    question: str
    description: str
    protected: list[str]
    unprotected: list[str]
    absent: list[str]


def unit_of(statement: dict[str, Any], facts: Facts) -> Unit:
    """Describe the unit of protection of a release."""
    describe = {
        Relation.EDGE: _edge,
        Relation.NODE: _node,
        Relation.LOCAL_GRAPH: _local,
    }[Relation(statement["relation"])]
    unit = describe(statement, facts)
    if statement["epsilon"] != "inf":
        condition = statement.get("condition")
        only = f" All of this holds only if {condition}." if condition else ""
        return unit._replace(description=unit.description + only)
    return unit._replace(
        description="There is no unit of protection, since the release has no guarantee.",
        protected=[],
        unprotected=["Everything: any fact of the private data may be read off the release."],
    )


_EDGES = {
    "directed edge": "directed edge from one node to another",
    "edge between the two sides": "edge between a left and a right node",
}
_KINDS = {"directed edge": "directed", "edge between the two sides": "bipartite"}


def _records(statement: dict[str, Any]) -> list[str]:
    return [str(entry.get("record")) for entry in statement["entries"]]


def _record(statement: dict[str, Any]) -> str:
    """Name the edge of the kind of the graph."""
    named = (_EDGES[record] for record in _records(statement) if record in _EDGES)
    return next(named, "undirected edge between two nodes")


def kind_of(statement: dict[str, Any]) -> str:
    """Kind of one graph: undirected, directed or bipartite."""
    return next((_KINDS[name] for name in _records(statement) if name in _KINDS), "undirected")


def _content(statement: dict[str, Any]) -> str:
    return _CONTENT_OF_DIRECTED if kind_of(statement) == "directed" else _CONTENT


def _attributes(statement: dict[str, Any]) -> list[str]:
    """Name attributes of nodes, which no noise protects."""
    is_public = any(line.startswith(_PUBLIC_ATTRIBUTES) for line in statement["assumptions"])
    return [_ATTRIBUTES] if is_public else []


def _edge(statement: dict[str, Any], facts: Facts) -> Unit:
    place, others = "", "all other relations"
    if facts.is_set:
        place, others = " of one graph of the set", "all other relations of all graphs"
    description = (
        f"One unit is one relation{place}: one {_record(statement)}. The guarantee "
        "compares the release with that of the same data with this one relation added or removed."
    )
    if (copies := facts.max_occurrences or 1) > 1:
        description = (
            "One unit is one relation of the whole graph, which occurs in up to "
            f"{copies} graphs of the set: all its copies are added or removed together."
        )
    return Unit(
        name="relation",
        plural="relations",
        question="whether a relation exists",
        description=description,
        protected=[
            (
                f"Whether two given nodes are related, even if an attacker knows {others}, the "
                "method and its settings."
            )
        ],
        unprotected=[
            _many(statement, "A customer with 50 relations", "relation"),
            *([_BOTH_DIRECTIONS] if kind_of(statement) == "directed" else []),
            *_nodes(statement, facts),
            *_same_edge(facts),
            *_attributes(statement),
            _EVERYBODY,
        ],
        absent=[_content(statement)],
    )


def _node(statement: dict[str, Any], facts: Facts) -> Unit:
    return Unit(
        name="node",
        plural="nodes",
        question="whether a node has its relations or none",
        description=(
            "One unit is all relations of one node. The guarantee compares the release with that "
            "of the same data in which all relations of this node are removed; the node itself "
            "stays."
        ),
        protected=[
            (
                "Whether a node has any relation, and all its relations together, even if an "
                "attacker knows the relations among all other nodes."
            )
        ],
        unprotected=[
            _twice(statement),
            _many(statement, "A company of 50 nodes", "node"),
            *_nodes(statement, facts),
            *_attributes(statement),
            _EVERYBODY,
        ],
        absent=[_content(statement)],
    )


def _local(statement: dict[str, Any], facts: Facts) -> Unit:
    return Unit(
        name="graph of a client",
        plural="graphs",
        question="which of two graphs a client has",
        description=(
            "One unit is the whole graph of one client, with all its relations and features. The "
            "guarantee compares the release with that of the same data in which this graph is "
            "exchanged for any other one."
        ),
        protected=[
            (
                "Everything in the graph of one client: each relation, each feature of a node, and "
                "all of them together, even if an attacker knows the graphs of all other clients."
            )
        ],
        unprotected=[
            (
                "That a client takes part, the label of its graph, and the size of its graph as "
                "far as the assumptions below say that it is public."
            ),
            _many(statement, "A person in the graphs of 50 clients", "graph"),
            _EVERYBODY,
        ],
        absent=[],
    )


def _twice(statement: dict[str, Any]) -> str:
    """State the protection against two changes of a node."""
    epsilon, delta = _together(statement, 2)
    if delta >= 1:
        proved = f", for which nothing is proved (epsilon {epsilon:.12g}, delta 1)."
    else:
        proved = f" and protected at {_amounts(epsilon, delta)} only."
    return (
        "A single relation that is added or removed, or a node whose relations are exchanged for "
        f"others, is two such changes{proved}"
    )


def _many(statement: dict[str, Any], subject: str, unit: str) -> str:
    epsilon, delta = _together(statement, 50)
    if delta >= 1:
        return (
            f"{subject} is not protected: each {unit} counts, and for 50 of them together nothing "
            f"is proved (epsilon {epsilon:.12g}, delta 1)."
        )
    return f"{subject} is protected at {_amounts(epsilon, delta)} only: each {unit} counts."


def _together(statement: dict[str, Any], size: int) -> Budget:
    return group_budget(float(statement["epsilon"]), float(statement["delta"]), size)


def _amounts(epsilon: float, delta: float) -> str:
    return f"epsilon {epsilon:.12g}" + (f" and delta {digits_up(delta, 3)}" if delta else "")


def _nodes(statement: dict[str, Any], facts: Facts) -> list[str]:
    if facts.is_set:
        return [
            (
                "Which graphs there are, how many nodes each of them has, their labels and the "
                "features of their nodes."
            )
        ]
    if publishes_names(statement, facts):
        return [
            (
                "Who is in the data: all nodes are published by their names. That A is a customer "
                "is known, with whom A is related is protected."
            )
        ]
    return ["How many nodes there are. Their names are not in the release."]


def _same_edge(facts: Facts) -> list[str]:
    if not facts.is_set or (facts.max_occurrences or 1) > 1:
        return []
    return [
        "The same two nodes in several graphs: a relation in each of them is a unit of its own."
    ]
