"""Topics of a release as plain values: the part of ``privacy.json`` beside the statement.

The topics cover the fields that NIST SP 800-226 and the Differential Privacy Deployments Registry
(2025) ask for: privacy unit, trust model, parameters, mechanisms, accounting, exposure, preparation
of the data, evaluation, and who is responsible.
"""

import math
from typing import Any

from lightning_dpg import __version__
from lightning_dpg.privacy.budget import Budget, digits_up
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.meaning import (
    belief_bound,
    group_budget,
    joint_budget,
    true_positive_bound,
)
from lightning_dpg.privacy.second_opinion import OPACUS, second_opinion
from lightning_dpg.release.card.facts import Facts
from lightning_dpg.release.card.reads import read_of
from lightning_dpg.release.card.sentences import chosen, say, sentences
from lightning_dpg.release.card.texts import Card
from lightning_dpg.release.card.units import has_transfers, kind_of, unit_of
from lightning_dpg.release.statement import COUNTED, Proved, entries_of, proved_by

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


def topics(statement: dict[str, Any], facts: Facts) -> dict[str, Any]:
    """Build all topics of a release, without texts of the owner.

    Args:
        statement: Its privacy statement.
        facts: Other public facts.
    """
    not_stated = say("responsible.not_stated")
    return {
        "product": _product(statement, facts),
        "privacy_unit": unit_of(statement, facts),
        "trust_model": _trust_model(statement),
        "privacy_parameters": parameters_of(statement) | {"meaning": _meaning(statement)},
        "mechanisms": {"reads": _reads(statement)},
        "accounting": _accounting(statement) | _second_opinion(statement) | _other_runs(facts),
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


OF_THE_OWNER = ("operator", "purpose", "recipient", "contact", "licence")
"""Administrative facts that the owner of the data gives."""
_DATA = {"data": "description", "settings_chosen_on": "settings_chosen_on"}


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
                "reads.of_unit",
                read=read["description"],
                unit=say(f"{entry['relation']}.one"),
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
        {
            "condition": condition is not None,
            "belief": True,
            "test": True,
            "single_beliefs": delta,
        },
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
