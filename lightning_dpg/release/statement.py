"""Privacy statement: the guarantee of a run, in one sentence and for machines."""

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.kind import EDGES
from lightning_dpg.interfaces import Released
from lightning_dpg.privacy.budget import Budget, digits_up, rounded_up
from lightning_dpg.privacy.events import RECORDS, WITH_TRANSFERS
from lightning_dpg.privacy.ledger import PURE, LedgerEntry, PrivacyLedger, Relation
from lightning_dpg.privacy.meaning import epsilon_by_edges, in_words, joint_budget
from lightning_dpg.run_folder import NOT_PRIVATE, RELEASE

RELATIONS = {
    Relation.EDGE: ("edge-level", "add/remove one undirected edge"),
    Relation.TRANSFER: ("transfer-level", "add/remove one transfer with its amount and time"),
    Relation.NODE: ("node-level", "remove all edges of one node"),
    Relation.EDGES_OF_NODE: ("neighbor-level", "add/remove edges of one node"),
    Relation.LOCAL_GRAPH: ("local graph-level", "exchange a client's graph for any other"),
    Relation.ATTRIBUTES: ("attribute-level", "exchange the private columns of one node"),
}
"""Level and neighbors of each relation, in words."""
NO_GUARANTEE = "NOT PRIVATE: these files have no guarantee and must stay with their owner"
"""What is said of a release without protection."""
COUNTED = {Relation.EDGE: "edges", Relation.TRANSFER: "transfers"}
"""Relations whose units add up beside a further one, and what k of them are."""


class Proved(NamedTuple):
    """What is proved for one relation.

    Attributes:
        relation: The neighboring relation.
        epsilon: Rounded up; infinite without a guarantee.
        delta: 0 where epsilon holds at any delta.
        accountant: Name of the accountant.
        record: One unit of protection.
        reads: Number of reads under this relation.
    """

    relation: Relation
    epsilon: float
    delta: float
    accountant: str
    record: str
    reads: int

    @property
    def budget(self) -> Budget:
        """Epsilon and delta."""
        return Budget(self.epsilon, self.delta)

    @property
    def claim(self) -> str:
        """Level and guarantee, as the sentence says them."""
        return f"{RELATIONS[self.relation][0]} ({self.epsilon:.15g}, {self.delta:.15g})-DP"


def privacy_statement(module: Released) -> dict[str, Any]:
    """Return what the ledger of a trained module proves, as plain values.

    ``relation``, ``epsilon`` and ``delta`` are of the relation of the method. ``beside`` has those of
    further relations, if any: totals of different relations are never added for one unit. There is a
    guarantee only if all of them are finite. A release that gives away one part of the data must stay
    with its owner, however well it protects the other one.

    All ranks have to call it together: the noise source may be created here, for all of them.

    Args:
        module: A ``PrivateModule`` whose ledger has a budget, which names the delta.
    """
    ledger = module.ledger
    if ledger.budget is None:
        raise Refusal("a statement needs the delta of a budget: train with PrivacyAccountant")
    reasons = _why_none(ledger, module.noise.is_secret)
    proved = [_of_relation(ledger, relation, bool(reasons)) for relation in ledger.relations]
    if any(math.isinf(each.epsilon) for each in proved):
        proved = [each._replace(epsilon=math.inf) for each in proved]
    main, *others = proved
    claimed = module.claimed_epsilon(ledger.budget.delta)
    is_published = claimed is not None and type(module).__name__.endswith("AsPublished")
    condition = module.condition() if math.isfinite(main.epsilon) else None
    return {
        "method": type(module).__name__,
        "mode": "as_published" if is_published else "plain",
        "relation": main.relation.value,
        "epsilon": _number(main.epsilon),
        "delta": main.delta,
        **({} if claimed is None else {"claimed_epsilon": _number(rounded_up(claimed))}),
        "conditional": condition is not None,
        **({} if condition is None else {"condition": condition}),
        "accountant": main.accountant,
        **({"beside": [_plain(each) for each in others]} if others else {}),
        "steps": ledger.steps,
        "guarantee": _sentence(ledger, proved, reasons, claimed, condition)
        + ("" if module.reading_note is None else f" {module.reading_note}"),
        "assumptions": [*module.assumptions, *_by_refusal(ledger.budget)],
        "entries": [_entry(entry) for entry in ledger.entries],
        "noise_source": "os" if module.noise.is_secret and _is_noised(ledger) else "none",
    }


def full_sentence(statement: dict[str, Any]) -> str:
    """State the guarantee and its assumptions in one paragraph."""
    if not statement["assumptions"]:
        return str(statement["guarantee"])
    assumed = "; ".join(text.rstrip(".") for text in statement["assumptions"])
    return f"{statement['guarantee']} Assumed public: {assumed}."


def entries_of(statement: dict[str, Any], relation: str | None = None) -> list[LedgerEntry]:
    """Return the ledger entries of a statement, which writes infinity as a word.

    Args:
        statement: The statement.
        relation: Relation of the entries, which alone compose; None returns those of all relations.

    Raises:
        Refusal: If an entry is not accounted for.
    """
    return [
        LedgerEntry.from_dict(
            {key: math.inf if value == "inf" else value for key, value in entry.items()}
        )
        for entry in statement["entries"]
        if relation is None or entry["relation"] == relation
    ]


def proved_by(statement: dict[str, Any]) -> list[Proved]:
    """Return what a statement says of each relation, that of its method first."""
    main = Relation(statement["relation"])
    own = entries_of(statement, main)
    first = {**statement, "record": _record(main, own), "reads": len(own)}
    return [
        Proved(
            Relation(each["relation"]),
            float(each["epsilon"]),
            float(each["delta"]),
            str(each.get("accountant")),
            str(each["record"]),
            int(each["reads"]),
        )
        for each in (first, *statement.get("beside", []))
    ]


def folder_name(statement: dict[str, Any]) -> str:
    """Return the folder of a statement: ``release`` only with a guarantee."""
    return NOT_PRIVATE if statement["epsilon"] == "inf" else RELEASE


def _by_refusal(budget: Budget) -> list[str]:
    """State the bound on the number of edges that a release reveals: larger graphs are refused."""
    if not budget.delta or math.isinf(budget.epsilon):
        return []
    most = f"{1 / budget.delta:g} edges (one over delta: a run on as many is refused)"
    return [f"that there are fewer than {most}"]


def _why_none(ledger: PrivacyLedger, is_secret: bool) -> list[str]:
    """Return why there is no guarantee; empty if there is one."""
    reasons = list(ledger.reasons)
    if not ledger.entries:
        reasons.append("the method booked no read in its ledger")
    if not is_secret:
        reasons.append("the noise was drawn from a known seed")
    return reasons


def _is_noised(ledger: PrivacyLedger) -> bool:
    return any(entry.event.protects for entry in ledger.entries)


def _of_relation(ledger: PrivacyLedger, relation: Relation, is_void: bool) -> Proved:
    """Return what a ledger proves for one relation."""
    entries, budget = ledger.of(relation), ledger.budget_of(relation) or Budget(math.inf, 0.0)
    epsilon, accountant = math.inf, "none"
    if not is_void:
        # Nothing was read under a relation without entries.
        epsilon, accountant = ledger.headline(budget.delta, relation) if entries else (0.0, PURE)
    return Proved(
        relation,
        rounded_up(epsilon, budget.epsilon),
        0.0 if accountant == PURE else budget.delta,
        accountant,
        _record(relation, entries),
        len(entries),
    )


def _record(relation: Relation, entries: Sequence[LedgerEntry]) -> str:
    """Name one unit: of edges, by the kind of the graph, and with the transfers that are read."""
    records = [entry.record for entry in entries]
    if relation is Relation.EDGE:
        if whole := next((record for record in records if WITH_TRANSFERS in record), None):
            return whole
        kinds = (EDGES["directed"], EDGES["bipartite"])
        return next((record for record in kinds if record in records), EDGES["undirected"])
    return records[0] if len({*records}) == 1 else RECORDS[relation]


def _plain(proved: Proved) -> dict[str, Any]:
    """Return what is proved for a further relation as plain values."""
    return proved._asdict() | {
        "relation": proved.relation.value,
        "epsilon": _number(proved.epsilon),
    }


def _sentence(
    ledger: PrivacyLedger,
    proved: Sequence[Proved],
    reasons: list[str],
    claimed: float | None,
    condition: str | None,
) -> str:
    paper = "" if claimed is None else f" The paper's own count would be epsilon {claimed:.4g}."
    if math.isinf(proved[0].epsilon):
        return f"none: {'; '.join(reasons) or 'epsilon is infinite'}.{paper}"
    assumption = "" if condition is None else f" if {condition}"
    parts = [
        f"{each.claim}{assumption} ({_change(ledger, each)}), {each.accountant} accountant, "
        f"{_reads(ledger, each)}"
        for each in proved
    ]
    both = [f" {together(proved[0], other)}" for other in proved[1:]]
    return f"{'; '.join(parts)}.{''.join(both)}{paper}"


def claims_of(statement: dict[str, Any]) -> list[str]:
    """Return what the sentence of a statement with several relations has to say, in its words."""
    main, *others = proved_by(statement)
    is_counted = main.relation in COUNTED
    return [
        *(each.claim for each in (main, *others)),
        *(epsilon_with_edges(main, other) for other in others if is_counted),
    ]


def together(main: Proved, other: Proved) -> str:
    """Say the guarantee of both units, and of both together, in one sentence for people.

    The sum is that of :func:`lightning_dpg.privacy.meaning.joint_budget`, of k edges by
    :func:`~lightning_dpg.privacy.meaning.group_budget`.
    """
    if main.relation not in COUNTED:
        joint = joint_budget(main.budget, other.budget)
        return (
            f"Protected are {main.record} {_amounts(main.budget)}, the {other.record} "
            f"{_amounts(other.budget)}, and both together {_amounts(joint)}."
        )
    counted = COUNTED[main.relation]
    delta = f" and the delta of k {counted}" if main.delta else ""
    return (
        f"Any one {main.record} is protected {_amounts(main.budget)}, the {other.record} "
        f"{_amounts(other.budget)}, and together with k {counted} of that node "
        f"at {epsilon_with_edges(main, other)}{delta}."
    )


def epsilon_with_edges(main: Proved, other: Proved) -> str:
    """Return the epsilon of a further unit together with k edges or transfers, as a formula."""
    edges = "k" if main.epsilon == 1 else f"{main.epsilon:.15g} k"
    return f"epsilon {other.epsilon:.15g} + {edges}"


def _amounts(budget: Budget) -> str:
    delta = f" and delta {digits_up(budget.delta, 3)}" if budget.delta else ""
    return f"at epsilon {budget.epsilon:.15g}{delta}"


def _reads(ledger: PrivacyLedger, proved: Proved) -> str:
    steps = ledger.steps if proved.relation is ledger.relation else 0
    return f"{steps} private steps" if steps else f"{proved.reads} read{'s' * (proved.reads != 1)}"


def _change(ledger: PrivacyLedger, proved: Proved) -> str:
    """Say how two neighbors differ."""
    relation, change = proved.relation, RELATIONS[proved.relation][1]
    if relation is Relation.EDGE:
        return change.replace("undirected edge", proved.record)
    if relation is Relation.NODE:
        twice = _twice(proved.epsilon, proved.delta)
        return f"{change}; one changed link is two such changes: {twice}-DP"
    if relation is Relation.EDGES_OF_NODE:
        found = epsilon_by_edges(ledger.of(relation), proved.delta)
        each = f"; epsilon by the edges of a node together: {in_words(found)}" if found else ""
        return f"add/remove {ledger.of(relation)[0].record}{each}"
    if relation is Relation.ATTRIBUTES:
        return f"exchange the {proved.record}"
    return change


def _twice(epsilon: float, delta: float) -> str:
    r"""Return the cost of two changes: :math:`(2 \epsilon, (1 + e^\epsilon) \delta)`."""
    both = min(1.0, delta * (1 + math.exp(min(epsilon, 700.0))))
    return f"({2 * epsilon:.15g}, {digits_up(both, 3)})"


def _entry(entry: LedgerEntry) -> dict[str, Any]:
    """Return the applicable amounts of an entry, with epsilon cleaned of rounding errors."""
    amounts = {amount.name for amount in fields(entry.event)}
    others = {"noise_multiplier", "epsilon", "delta"} - amounts
    values = entry.to_dict()
    values["epsilon"] = float(f"{values['epsilon']:.12g}")
    return {key: _number(value) for key, value in values.items() if key not in others}


def _number(value: Any) -> Any:
    """Return the value, or a word where strict JSON has no number."""
    return "inf" if value == math.inf else value
