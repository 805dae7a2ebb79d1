"""Topics of a release as plain values: the part of ``privacy.json`` beside the statement.

The topics cover the fields that NIST SP 800-226 and the Differential Privacy Deployments Registry
(2025) ask for: privacy unit, trust model, parameters, mechanisms, accounting, exposure, preparation
of the data, evaluation, and who is responsible.
"""

import math
from typing import Any, NamedTuple

from lightning_dpg import __version__
from lightning_dpg.graph.kind import EDGES, Kind
from lightning_dpg.graph.node_names import SECRET_NUMBERS
from lightning_dpg.privacy.budget import Budget, digits_up
from lightning_dpg.privacy.events import PROVED_FOR, WITH_TRANSFERS, Relation
from lightning_dpg.privacy.meaning import (
    belief_bound,
    epsilon_by_edges,
    group_budget,
    in_words,
    joint_budget,
    true_positive_bound,
)
from lightning_dpg.privacy.second_opinion import OPACUS, second_opinion
from lightning_dpg.privacy.sensitivity.private_columns import LABEL_REPORTS
from lightning_dpg.release.card.reads import read_of
from lightning_dpg.release.card.sentences import chosen, say, sentences
from lightning_dpg.release.card.texts import OWNER_TEXTS, Card
from lightning_dpg.release.statement import COUNTED, Proved, entries_of, proved_by

ADDED_UP = "added up in a budget book, apart from runs that protect another unit"
NOT_ADDED_UP = "not added up"
LEFT_OUT = "left out of the budget book by the user"


class Facts(NamedTuple):
    """Facts by which the card speaks of a release.

    Attributes:
        method_path: Dotted path of the method.
        settings: Hyperparameters of the method.
        is_set: Whether the private data are a set of graphs.
        max_occurrences: Number of edges of a set that are one private edge at most; None where it
            was not recorded.
        num_graphs: Number of synthetic graphs in the folder; None for features of graphs.
        date: Day of the release, year first; None where it was not recorded.
        version: Version of the program; None where it was not recorded.
        configuration: SHA-256 digest of the configuration file; None without such a file.
        other_runs: Whether other runs on the data are added up: ``ADDED_UP``, ``NOT_ADDED_UP`` or
            ``LEFT_OUT``; None where it was not recorded.
        drawn_with: Versions of the libraries that have drawn the files; None where they were not
            recorded.
    """

    method_path: str
    settings: dict[str, Any]
    is_set: bool
    max_occurrences: int | None
    num_graphs: int | None
    date: str | None
    version: str | None
    configuration: str | None
    other_runs: str | None = None
    drawn_with: dict[str, str] | None = None


def publishes_names(statement: dict[str, Any], facts: Facts) -> bool:
    """Return whether the names of the nodes of one graph are in the release."""
    return not facts.is_set and SECRET_NUMBERS not in statement["assumptions"]


TOPICS = (
    "product",
    "privacy_unit",
    "trust_model",
    "privacy_parameters",
    "mechanisms",
    "accounting",
    "exposure",
    "data",
    "evaluation",
    "administrative",
    "limitations",
)
"""Keys of ``privacy.json`` beside those of the statement, whose copy the tensors hold."""

GROUPS = (1, 5, 10, 50)
"""Numbers of units in the table of groups."""
FALSE_POSITIVES = 0.01
"""Share of false alarms at which the best test is stated."""
_NEAR = 0.999
_SHIPPED = "lightning_dpg.methods."
_UPDATES = "client_updates"


def statement_of(content: dict[str, Any]) -> dict[str, Any]:
    """Return the statement in the content of a ``privacy.json``, without the topics."""
    return {name: value for name, value in content.items() if name not in TOPICS}


def topics(statement: dict[str, Any], facts: Facts, *, has_opinion: bool = True) -> dict[str, Any]:
    """Build all topics of a release, without texts of the owner.

    Args:
        statement: Its privacy statement.
        facts: Other public facts.
        has_opinion: Whether to compute epsilon by opacus, which imports PyTorch.
    """
    opinion = _second_opinion(statement) if has_opinion else {}
    not_stated = say("responsible.not_stated")
    return {
        "product": _product(statement, facts),
        "privacy_unit": unit_of(statement, facts),
        "trust_model": _trust_model(statement),
        "privacy_parameters": parameters_of(statement) | {"meaning": _meaning(statement)},
        "mechanisms": {"reads": _reads(statement)},
        "accounting": _accounting(statement) | opinion | _other_runs(facts),
        "exposure": {
            "published": say("public.files"),
            "unprotected_quantities": list(statement["assumptions"]),
        },
        "data": {
            "description": not_stated,
            "domain": say(f"responsible.{_content(statement, facts)}", kind=kind_of(statement)),
            "settings_chosen_on": not_stated,
        },
        "evaluation": {
            "audit": say("evaluation.no_audit"),
            "attack": say("evaluation.no_attack"),
            "utility": say("evaluation.utility"),
        },
        "administrative": {
            "date": facts.date,
            "lightning_dpg": facts.version,
            "method": facts.method_path,
            "shipped": facts.method_path.startswith(_SHIPPED),
            "settings": facts.settings,
            "configuration_sha256": facts.configuration,
            "card_date": facts.date,
            "card_lightning_dpg": __version__,
            **({} if facts.drawn_with is None else {"drawn_with": facts.drawn_with}),
            **{name: not_stated for name in OF_THE_OWNER},
        },
        "limitations": {"known": _limits(statement, facts)},
    }


_DATA = {"data": "description", "settings_chosen_on": "settings_chosen_on"}
OF_THE_OWNER = tuple(name for name in OWNER_TEXTS if name not in _DATA)
"""Administrative facts that the owner of the data gives."""


def texts_of(content: dict[str, Any]) -> dict[str, str | None]:
    """Return the texts of the owner by their names; None for one that is not stated."""
    facts, data = content["administrative"], content["data"]
    texts = {
        name: facts.get(name) if name in OF_THE_OWNER else data[_DATA[name]] for name in OWNER_TEXTS
    }
    not_stated = say("responsible.not_stated")
    return {name: None if text == not_stated else text for name, text in texts.items()}


def with_texts(content: dict[str, Any], card: Card, evaluation: dict[str, str]) -> dict[str, Any]:
    """Replace texts of the owner in topics; those that are not given stay.

    Args:
        content: All topics, and possibly other values.
        card: Texts of the owner.
        evaluation: Sentences about audits and attacks.
    """
    texts = card.texts()
    administrative = {name: texts[name] for name in OF_THE_OWNER if name in texts}
    data = {field: texts[name] for name, field in _DATA.items() if name in texts}
    return content | {
        "administrative": content["administrative"] | administrative,
        "data": content["data"] | data,
        "evaluation": content["evaluation"] | evaluation,
    }


def _content(statement: dict[str, Any], facts: Facts) -> str:
    """Return the name of the sentence about the data."""
    if facts.is_set:
        return "set"
    return "transfer_graph" if has_transfers(statement) else "graph"


def _product(statement: dict[str, Any], facts: Facts) -> dict[str, Any]:
    is_private, count = statement["epsilon"] != "inf", facts.num_graphs
    kind = "graphs" if count is not None else "features" if facts.is_set else "classes"
    content = kind if count is None else "one_graph" if count == 1 else "several_graphs"
    name = say(f"product.{kind}_title", method=statement["method"])
    if not is_private:
        name = say("product.not_private_title", title=f"{name[0].lower()}{name[1:]}")
    return {
        "name": name,
        "description": say(
            f"product.{content}",
            count=count,
            place=say("product.of_set" if facts.is_set else "product.of_graph"),
            cost=say("product.cost") if is_private else "",
        ),
        "release_type": "one-shot",
        "data_source_type": "static",
        "access_type": "non-interactive",
    }


def _trust_model(statement: dict[str, Any]) -> dict[str, Any]:
    is_local = Relation(statement["relation"]) is Relation.LOCAL_GRAPH
    model = "local" if is_local else "central"
    if statement["epsilon"] == "inf":
        model = "none"
    has_server = any(entry.get("key") == _UPDATES for entry in statement["entries"])
    lines = chosen("trust", {model: True, "server": model == "local" and has_server})
    return {"model": model, "description": " ".join(lines)}


def _reads(statement: dict[str, Any]) -> list[dict[str, Any]]:
    """Describe every read; of several relations, with the unit that its cost is for."""
    reads = [read_of(entry) for entry in statement["entries"]]
    if "beside" not in statement:
        return reads
    return [
        read
        | {
            "description": say(
                "reads.of_unit", read=read["description"], unit=say(f"{entry['relation']}.one")
            )
        }
        for read, entry in zip(reads, statement["entries"], strict=True)
    ]


def parameters_of(statement: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a statement and the numbers that follow from them."""
    main, *others = proved_by(statement)
    is_private = math.isfinite(main.epsilon)
    return {
        **_parameters(statement, main),
        "groups": [_group(main.budget, size) for size in GROUPS if is_private],
        **({"beside": [_of_other(main, each) for each in others]} if others else {}),
    }


def _parameters(stated: dict[str, Any], proved: Proved) -> dict[str, Any]:
    """Return the parameters of one relation, as they are stated."""
    variant = "approximate" if proved.delta else "pure"
    is_private = math.isfinite(proved.epsilon)
    return {
        "variant": f"{variant} differential privacy" if is_private else "none",
        "neighboring_relation": stated["relation"],
        "epsilon": stated["epsilon"],
        "delta": stated["delta"],
    }


def _of_other(main: Proved, other: Proved) -> dict[str, Any]:
    """Return the parameters of a further relation, alone and together with units of the first one."""
    stated = {"relation": other.relation.value, "epsilon": other.epsilon, "delta": other.delta}
    if math.isinf(other.epsilon):
        return {**_parameters(stated | {"epsilon": "inf"}, other), "together": []}
    sizes = (0, *GROUPS) if main.relation in COUNTED else (0, 1)
    return {
        **_parameters(stated, other),
        "together": [
            _numbers(size, joint_budget(group_budget(*main.budget, size), other.budget))
            for size in sizes
        ],
    }


def _meaning(statement: dict[str, Any]) -> list[str]:
    main, *others = proved_by(statement)
    if math.isinf(main.epsilon):
        return [say("meaning.no_guarantee")]
    condition = statement.get("condition") if statement.get("conditional") else None
    return [
        *_meaning_of(main, condition),
        *(line for each in others for line in _meaning_of(each, None)),
    ]


def _meaning_of(proved: Proved, condition: str | None) -> list[str]:
    """Say what the guarantee of one relation means."""
    epsilon, delta = proved.budget
    one = _group(proved.budget, 1)
    return chosen(
        "meaning",
        {"condition": condition is not None, "belief": True, "test": True, "single_beliefs": delta},
        condition=condition,
        question=say(f"{proved.relation}.question"),
        belief=percent(one["belief_at_most"]),
        average=say("meaning.average") if delta else "",
        found=percent(one["true_positive_rate_at_most"]),
        delta=f"{delta:g}",
        usual_belief=percent(_up(belief_bound(epsilon))),
    )


def _group(budget: Budget, size: int) -> dict[str, Any]:
    return _numbers(size, group_budget(*budget, size))


def _numbers(size: int, together: Budget) -> dict[str, Any]:
    bound = true_positive_bound(*together, FALSE_POSITIVES)
    return {
        "units": size,
        "epsilon": float(f"{together.epsilon:.12g}"),
        "delta": float(digits_up(together.delta, 3)),
        "belief_at_most": _up(belief_bound(*together)),
        "true_positive_rate_at_most": _up(bound),
    }


def percent(share: float) -> str:
    """Format a share in percent, with one decimal, and with three near the whole."""
    if share == 1:
        return "100 %"
    return f"{100 * share:.1f} %" if share < _NEAR else f"{100 * share:.3f} %"


def _up(share: float) -> float:
    """Round a share up to a tenth of a percent, and to a thousandth near the whole."""
    steps = 1000 if share < _NEAR else 100_000
    return math.ceil(share * steps * (1 - 1e-12)) / steps


def _accounting(statement: dict[str, Any]) -> dict[str, Any]:
    is_private, accountant = statement["epsilon"] != "inf", statement["accountant"]
    relations = [each.relation for each in proved_by(statement)]
    composition = f"composition.{accountant if is_private else 'no_guarantee'}"
    if composition not in sentences():
        composition = "composition.other"
    return {
        "composition": say(composition, accountant=accountant),
        **({"relations": _apart(relations)} if is_private and len(relations) > 1 else {}),
        "post_processing": say(f"accounting.{'post_processing' if is_private else 'no_guarantee'}"),
        "earlier_releases": say("accounting.earlier_releases"),
    }


def _apart(relations: list[Relation]) -> str:
    """Say that costs of different units are not added."""
    first, other = (say(f"{relation}.one") for relation in relations)
    return say("accounting.relations", first=first, other=other)


def _second_opinion(statement: dict[str, Any]) -> dict[str, Any]:
    """Return epsilon by opacus, where it has a number."""
    if statement["epsilon"] == "inf":
        return {}
    reads = entries_of(statement, statement["relation"])
    opinion = second_opinion(reads, float(statement["delta"]))
    return {} if opinion is None else {"second_opinion": {"by": OPACUS, **opinion._asdict()}}


def _other_runs(facts: Facts) -> dict[str, Any]:
    """Say whether other runs are added up; of a book, only that there is one."""
    return {} if facts.other_runs is None else {"other_runs": facts.other_runs}


def _limits(statement: dict[str, Any], facts: Facts) -> list[str]:
    """Return the known limits, including those of every private release."""
    if statement["epsilon"] == "inf":
        return [say("limits.no_guarantee")]
    claimed = statement.get("claimed_epsilon")
    return chosen(
        "limits",
        {
            "run_folder": True,
            "machine": True,
            "synthetic": facts.num_graphs is not None,
            "rounding": any(entry["mechanism"] == "gaussian" for entry in statement["entries"]),
            "paper": claimed is not None,
        },
        claimed=claimed,
    )


_PUBLIC_ATTRIBUTES = ("the node attributes,", "Node attributes are public")
"""How the assumption begins, here and in earlier versions."""
_KINDS = {record: kind for kind, record in EDGES.items()}


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


def kind_of(statement: dict[str, Any]) -> Kind:
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
