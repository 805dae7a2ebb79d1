"""Topics of a release as plain values: the part of ``privacy.json`` beside the statement.

The topics cover the fields that NIST SP 800-226 and the Differential Privacy Deployments Registry
(2025) ask for: privacy unit, trust model, parameters, mechanisms, accounting, exposure, preparation
of the data, evaluation, and who is responsible.
"""

import math
from typing import Any

from lightning_dpg import __version__
from lightning_dpg.callbacks.card.facts import Facts
from lightning_dpg.callbacks.card.reads import read_of
from lightning_dpg.callbacks.card.texts import Card
from lightning_dpg.callbacks.card.units import Unit, kind_of, unit_of
from lightning_dpg.callbacks.statement import entries_of
from lightning_dpg.privacy.budget import digits_up
from lightning_dpg.privacy.composition import APPROXIMATE, PURE
from lightning_dpg.privacy.events import Relation
from lightning_dpg.privacy.meaning import belief_bound, group_budget, true_positive_bound
from lightning_dpg.privacy.second_opinion import OPACUS, second_opinion

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
_NOT_GIVEN = "not stated by the operator"


def statement_of(content: dict[str, Any]) -> dict[str, Any]:
    """The statement in the content of a ``privacy.json``, without the topics."""
    return {name: value for name, value in content.items() if name not in TOPICS}


def topics(statement: dict[str, Any], facts: Facts) -> dict[str, Any]:
    """Build all topics of a release, without texts of the owner.

    Args:
        statement: Its privacy statement.
        facts: Other public facts.
    """
    unit = unit_of(statement, facts)
    return {
        "product": _product(statement, facts),
        "privacy_unit": {
            "unit": unit.name,
            "plural": unit.plural,
            "description": unit.description,
            "max_occurrences": facts.max_occurrences if facts.is_set else 1,
            "protected": unit.protected,
            "not_protected": unit.unprotected,
            "not_in_the_release": unit.absent,
        },
        "trust_model": _trust_model(statement),
        "privacy_parameters": parameters_of(statement) | {"meaning": _meaning(statement, unit)},
        "mechanisms": {"reads": [read_of(entry) for entry in statement["entries"]]},
        "accounting": _accounting(statement) | _second_opinion(statement) | _other_runs(facts),
        "exposure": {
            "published": (
                "All files of this folder, and with the tensors the values that the reads released."
            ),
            "unprotected_quantities": list(statement["assumptions"]),
        },
        "data": {
            "description": _NOT_GIVEN,
            "domain": _domain(statement, facts),
            "settings_chosen_on": _NOT_GIVEN,
        },
        "evaluation": {
            "audit": "No audit was recorded.",
            "attack": "No attack was recorded.",
            "utility": (
                "A comparison of the release with the private data is itself private, and no part "
                "of it."
            ),
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
            **{name: _NOT_GIVEN for name in _ADMINISTRATIVE},
        },
        "limitations": {"known": _limits(statement, facts)},
    }


_ADMINISTRATIVE = ("operator", "purpose", "recipient", "contact", "licence")
_DATA = {"data": "description", "settings_chosen_on": "settings_chosen_on"}


def with_texts(known: dict[str, Any], card: Card, evaluation: dict[str, str]) -> dict[str, Any]:
    """Replace texts of the owner in topics; those that are not given stay.

    Args:
        known: All topics, and possibly other values.
        card: Texts of the owner.
        evaluation: Sentences about audits and attacks.
    """
    texts = card.texts()
    administrative = {name: texts[name] for name in _ADMINISTRATIVE if name in texts}
    data = {field: texts[name] for name, field in _DATA.items() if name in texts}
    return known | {
        "administrative": known["administrative"] | administrative,
        "data": known["data"] | data,
        "evaluation": known["evaluation"] | evaluation,
    }


def _product(statement: dict[str, Any], facts: Facts) -> dict[str, Any]:
    method, is_private = statement["method"], statement["epsilon"] != "inf"
    cost = " at no further cost of privacy" if is_private else ""
    if facts.num_graphs is None:
        name = f"Features of graphs by {method}"
        description = (
            "What was released of each graph of a private set, with the public labels: "
            f"features.npz, to be read with numpy.load. Any classifier may learn from it{cost}."
        )
    else:
        name = f"Synthetic graphs by {method}"
        graphs = "graph" if facts.num_graphs == 1 else "graphs"
        place = (
            "after a private set of graphs" if facts.is_set else "on the nodes of a private graph"
        )
        description = (
            f"{facts.num_graphs} synthetic {graphs} {place}, and the generator that drew "
            f"{'it' if facts.num_graphs == 1 else 'them'}. The command generate draws more{cost}."
        )
    if not is_private:
        name = f"NOT PRIVATE: {name[0].lower()}{name[1:]}, without a guarantee"
    return {
        "name": name,
        "description": description,
        "release_type": "one-shot",
        "data_source_type": "static",
        "access_type": "non-interactive",
    }


def _trust_model(statement: dict[str, Any]) -> dict[str, Any]:
    if statement["epsilon"] == "inf":
        return {
            "model": "none",
            "description": (
                "The operator holds the private data, and every recipient of the release has to be "
                "trusted as the operator is."
            ),
        }
    if Relation(statement["relation"]) is not Relation.LOCAL_GRAPH:
        return {
            "model": "central",
            "description": (
                "The operator holds the private data and adds the noise, and has to be trusted. "
                "The recipients of the release need not be trusted, even if they work together."
            ),
        }
    description = (
        "Each client randomizes its own report before it leaves the client, so that nobody else "
        "has to be trusted. If one operator computed the reports of all clients, this operator has "
        "seen their graphs and has to be trusted."
    )
    if any(entry.get("key") == _UPDATES for entry in statement["entries"]):
        description += " A trusted server adds up the updates of the clients and the noise."
    return {"model": "local", "description": description}


def parameters_of(statement: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a statement and the numbers that follow from them."""
    epsilon, delta = float(statement["epsilon"]), float(statement["delta"])
    is_private = math.isfinite(epsilon)
    variant = "approximate differential privacy" if delta else "pure differential privacy"
    return {
        "variant": variant if is_private else "none",
        "neighboring_relation": statement["relation"],
        "epsilon": statement["epsilon"],
        "delta": statement["delta"],
        "groups": [_group(epsilon, delta, size) for size in GROUPS if is_private],
    }


def _meaning(statement: dict[str, Any], unit: Unit) -> list[str]:
    epsilon, delta = float(statement["epsilon"]), float(statement["delta"])
    if math.isinf(epsilon):
        return ["No epsilon is proved: the release limits no belief and no test."]
    one = _group(epsilon, delta, 1)
    belief, found = percent(one["belief_at_most"]), percent(one["true_positive_rate_at_most"])
    sentences = []
    if statement.get("conditional"):
        sentences.append(f"The guarantee holds only if {statement['condition']}.")
    sentences += [
        (
            f"An attacker who knows everything else and asks {unit.question}, with both answers "
            f"equally likely (50 %), believes in one of them to at most {belief} after reading the "
            f"release{', on average over its noise' if delta else ''}."
        ),
        (
            "A test with false alarms in 1 % of the cases without the fact recognizes at most "
            f"{found} of the cases with it; guessing recognizes 1 %."
        ),
    ]
    if delta:
        sentences.append(
            "Single beliefs can exceed their average. The release shows no more than one that gives "
            f"the answer away with probability {delta:g} and otherwise leaves a belief of at most "
            f"{percent(_up(belief_bound(epsilon)))}."
        )
    return sentences


def _group(epsilon: float, delta: float, size: int) -> dict[str, Any]:
    together = group_budget(epsilon, delta, size)
    found = true_positive_bound(*together, FALSE_POSITIVES)
    return {
        "units": size,
        "epsilon": float(f"{together.epsilon:.12g}"),
        "delta": float(digits_up(together.delta, 3)),
        "belief_at_most": _up(belief_bound(*together)),
        "true_positive_rate_at_most": _up(found),
    }


def percent(share: float) -> str:
    """A share in percent, with one decimal, and with three near the whole."""
    if share == 1:
        return "100 %"
    return f"{100 * share:.1f} %" if share < _NEAR else f"{100 * share:.3f} %"


def _up(share: float) -> float:
    """A share rounded up to a tenth of a percent, and to a thousandth near the whole."""
    steps = 1000 if share < _NEAR else 100_000
    return math.ceil(share * steps * (1 - 1e-12)) / steps


_COMPOSITIONS = {
    PURE: "The epsilons of all reads add up.",
    APPROXIMATE: "The epsilons of all reads add up, and so do their deltas.",
    "PLD": "All reads are composed by their privacy loss distributions (PLD).",
    "PRV": "All reads are composed by their privacy random variables (PRV).",
    "GDP": "All reads are composed as Gaussian differential privacy (GDP).",
    "RDP": "All reads are composed as Renyi differential privacy (RDP).",
}
"""Accountants in words, those of earlier versions among them."""


def _accounting(statement: dict[str, Any]) -> dict[str, Any]:
    is_private = statement["epsilon"] != "inf"
    return {
        "composition": (
            _COMPOSITIONS.get(
                statement["accountant"], f"All reads are composed: {statement['accountant']}."
            )
            if is_private
            else "Nothing is composed, since at least one read is not private."
        ),
        "post_processing": (
            "All files are computed from the noisy values of these reads and from public facts, "
            "which costs nothing more. The same holds for everything that is computed from the "
            "files later."
            if is_private
            else "All files are computed from values without a guarantee and have none."
        ),
        "earlier_releases": (
            "Earlier releases of the same data are not recorded here. Two runs on one graph add "
            "up: the epsilons and deltas of all runs, those that failed after their first read "
            "among them, count together."
        ),
    }


def _second_opinion(statement: dict[str, Any]) -> dict[str, Any]:
    """Epsilon by opacus, where it has a number."""
    if statement["epsilon"] == "inf":
        return {}
    found = second_opinion(entries_of(statement), float(statement["delta"]))
    return {} if found is None else {"second_opinion": {"by": OPACUS, **found._asdict()}}


def _other_runs(facts: Facts) -> dict[str, Any]:
    """One of three facts: it says nothing of a book but that there is one."""
    return {} if facts.other_runs is None else {"other_runs": facts.other_runs}


def _domain(statement: dict[str, Any], facts: Facts) -> str:
    if facts.is_set:
        return "A set of undirected graphs without weights."
    return f"One {kind_of(statement)} graph without weights on a public set of nodes."


def _limits(statement: dict[str, Any], facts: Facts) -> list[str]:
    """Known limits, those of every private release among them."""
    if statement["epsilon"] == "inf":
        return ["The release has no guarantee. It must be treated as the private data themselves."]
    known = [
        (
            "The guarantee is about the files of this folder. Checkpoints, logs and figures of the "
            "run folder read the private graph and must stay where they are."
        ),
        (
            "The noise source is not protected against somebody who watches the machine of the "
            "operator: running time, memory and terminal output are no part of the guarantee."
        ),
    ]
    if facts.num_graphs is not None:
        known.append(
            "A synthetic relation may be a real one; by some methods and at a large epsilon "
            "most of them are. Most statistics of synthetic graphs differ from the private ones."
        )
    if any(entry["mechanism"] == "gaussian" for entry in statement["entries"]):
        known.append(
            "Gaussian noise is drawn as floating-point numbers, whose rounding can leak in "
            "principle; noise of integers is exact."
        )
    if statement.get("claimed_epsilon") is not None:
        known.append(
            f"The paper of the method counts epsilon {statement['claimed_epsilon']}, which is not "
            "what is proved here."
        )
    return known
