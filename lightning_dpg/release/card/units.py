"""Unit of protection in words, for each neighboring relation."""

from typing import Any

from lightning_dpg.privacy.budget import Budget, digits_up
from lightning_dpg.privacy.events import PROVED_FOR, WITH_TRANSFERS, Relation
from lightning_dpg.privacy.meaning import (
    epsilon_by_edges,
    group_budget,
    in_words,
    joint_budget,
)
from lightning_dpg.privacy.reports import LABEL_REPORTS
from lightning_dpg.release.card.facts import Facts, publishes_names
from lightning_dpg.release.card.sentences import chosen, say
from lightning_dpg.release.statement import COUNTED, Proved, entries_of, proved_by

_PUBLIC_ATTRIBUTES = ("the node attributes,", "Node attributes are public")
"""How the assumption begins, here and in earlier versions."""
_KINDS = {"directed edge": "directed", "edge between the two sides": "bipartite"}


def unit_of(statement: dict[str, Any], facts: Facts) -> dict[str, Any]:
    """Describe the unit of protection of a release.

    Returns:
        The unit, singular and plural, what it is and how many edges it holds at most; further units,
        where there are any; facts that the guarantee hides, facts that it does not hide, and facts
        that the release does not hold.
    """
    relation, others = Relation(statement["relation"]), list[Proved]()
    if statement["epsilon"] == "inf":
        description, protected = say("no_guarantee.description"), []
        not_protected = [say("no_guarantee.not_protected")]
    else:
        _, *others = proved_by(statement)
        description, protected = _description(statement, facts), [_protected(relation, facts)]
        protected += [say(f"{each.relation}.protected", record=each.record) for each in others]
        not_protected = _not_protected(statement, facts)
    content = "directed_content" if kind_of(statement) == "directed" else "content"
    if has_transfers(statement):
        content = "transfer_content"
    return {
        "unit": say(f"{relation}.unit"),
        "plural": say(f"{relation}.plural"),
        "description": description,
        **({"beside": [_beside(each) for each in others]} if others else {}),
        "max_occurrences": facts.max_occurrences if facts.is_set else 1,
        "protected": protected,
        "not_protected": not_protected,
        "not_in_the_release": chosen("absent", {content: relation is not Relation.LOCAL_GRAPH}),
    }


def _beside(proved: Proved) -> dict[str, Any]:
    """Describe a further unit of protection."""
    return {
        "unit": say(f"{proved.relation}.unit"),
        "plural": say(f"{proved.relation}.plural"),
        "description": say(f"{proved.relation}.description", record=proved.record),
    }


def kind_of(statement: dict[str, Any]) -> str:
    """Return the kind of one graph: undirected, directed or bipartite."""
    entries = statement["entries"]
    records = [
        str(entry.get("public", {}).get(PROVED_FOR, entry.get("record"))) for entry in entries
    ]
    return next((_KINDS[record] for record in records if record in _KINDS), "undirected")


def has_transfers(statement: dict[str, Any]) -> bool:
    """Return whether amounts or times of transfers are read."""
    is_transfer = statement["relation"] == Relation.TRANSFER
    return is_transfer or any(
        WITH_TRANSFERS in str(entry.get("record")) for entry in statement["entries"]
    )


def _record(statement: dict[str, Any]) -> str:
    """Name one edge by the kind of the graph, with all that belongs to it."""
    main, *_ = proved_by(statement)
    _, mark, rest = main.record.partition(WITH_TRANSFERS)
    return say(f"record.{kind_of(statement)}") + mark + rest


def _is_copied(facts: Facts) -> bool:
    return (facts.max_occurrences or 1) > 1


def _description(statement: dict[str, Any], facts: Facts) -> str:
    relation = Relation(statement["relation"])
    if relation is Relation.EDGES_OF_NODE:
        return _of_edges(statement)
    is_copied = relation is Relation.EDGE and _is_copied(facts)
    description = say(
        f"{relation}.{'copied_description' if is_copied else 'description'}",
        place=say("edge.place") if facts.is_set else "",
        record=_record(statement),
        copies=facts.max_occurrences,
    )
    if condition := statement.get("condition"):
        return say("protected.only_if", description=description, condition=condition)
    return description


def _of_edges(statement: dict[str, Any]) -> str:
    """Describe the edges of one node that are a unit, with the epsilon of other numbers of them."""
    entries = entries_of(statement, statement["relation"])
    found = epsilon_by_edges(entries, float(statement["delta"]))
    return say(
        f"{Relation.EDGES_OF_NODE}.description",
        record=entries[0].record,
        by_edges=say(f"{Relation.EDGES_OF_NODE}.by_edges", each=in_words(found)) if found else "",
    )


def _protected(relation: Relation, facts: Facts) -> str:
    others = say("edge.others_of_set" if facts.is_set else "edge.others")
    return say(f"{relation}.protected", others=others)


def _not_protected(statement: dict[str, Any], facts: Facts) -> list[str]:
    relation, epsilon, delta = (statement[name] for name in ("relation", "epsilon", "delta"))
    two, fifty = (group_budget(float(epsilon), float(delta), size) for size in (2, 50))
    is_edge, is_node = relation == Relation.EDGE, relation == Relation.NODE
    is_counted = relation in COUNTED
    is_several = relation == Relation.EDGES_OF_NODE
    _, *others = proved_by(statement)
    with_rows = [joint_budget(fifty, each.budget) for each in others] if is_counted else []
    is_graph = (is_counted or is_node or is_several) and not facts.is_set
    has_names = publishes_names(statement, facts)
    has_labels = any(entry.get("key") == LABEL_REPORTS for entry in statement["entries"])
    attributes = any(line.startswith(_PUBLIC_ATTRIBUTES) for line in statement["assumptions"])
    return chosen(
        "not_protected",
        {
            "participation": relation == Relation.LOCAL_GRAPH,
            "exchange": is_node and two.delta < 1,
            "exchange_unproved": is_node and two.delta >= 1,
            "group": fifty.delta < 1,
            "group_unproved": fifty.delta >= 1,
            "with_rows": with_rows and with_rows[0].delta < 1,
            "with_rows_unproved": with_rows and with_rows[0].delta >= 1,
            "domains": others and not has_labels,
            "labels": has_labels,
            "both_directions": is_edge and kind_of(statement) == "directed",
            "graphs": (is_edge or is_node) and facts.is_set,
            "names": is_graph and has_names,
            "numbers": is_graph and not has_names,
            "same_nodes": is_edge and facts.is_set and not _is_copied(facts),
            "attributes": (is_counted or is_node or is_several) and attributes,
            "everybody": True,
        },
        two=_amounts(two),
        fifty=_amounts(fifty),
        rows_and_fifty=_amounts(with_rows[0]) if with_rows else "",
        many=say(f"{relation}.many"),
        counted=say(f"{relation}.counted"),
        plural=say(f"{relation}.plural"),
    )


def _amounts(together: Budget) -> str:
    epsilon, delta = f"epsilon {together.epsilon:.12g}", together.delta
    if delta >= 1:
        return f"{epsilon}, delta 1"
    return f"{epsilon} and delta {digits_up(delta, 3)}" if delta else epsilon
