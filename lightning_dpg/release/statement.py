"""Privacy statement: the guarantee of a run, in one sentence and for machines."""

import math
from dataclasses import fields
from typing import Any

from lightning_dpg.errors import Refusal
from lightning_dpg.graph.pair_space import BipartitePairs, DirectedPairs, UndirectedPairs
from lightning_dpg.interfaces import Released
from lightning_dpg.privacy.budget import Budget, digits_up, rounded_up
from lightning_dpg.privacy.ledger import PURE, LedgerEntry, PrivacyLedger, Relation
from lightning_dpg.privacy.meaning import epsilon_by_edges, in_words
from lightning_dpg.run_folder import NOT_PRIVATE, RELEASE

RELATIONS = {
    Relation.EDGE: ("edge-level", "add/remove one undirected edge"),
    Relation.NODE: ("node-level", "remove all edges of one node"),
    Relation.EDGES_OF_NODE: ("neighbor-level", "add/remove edges of one node"),
    Relation.LOCAL_GRAPH: ("local graph-level", "exchange a client's graph for any other"),
}
"""Level and neighbors of each relation, in words."""


def privacy_statement(module: Released) -> dict[str, Any]:
    """Return what the ledger of a trained module proves, as plain values.

    All ranks have to call it together: the noise source may be created here, for all of them.

    Args:
        module: A ``PrivateModule`` whose ledger has a budget, which names the delta.
    """
    ledger = module.ledger
    if ledger.budget is None:
        raise Refusal("a statement needs the delta of a budget: train with PrivacyAccountant")
    delta = ledger.budget.delta
    reasons = _why_none(ledger, module.noise.is_secret)
    epsilon, accountant = (math.inf, "none") if reasons else ledger.headline(delta)
    epsilon_up = rounded_up(epsilon, ledger.budget.epsilon)
    claimed = module.claimed_epsilon(delta)
    is_published = claimed is not None and type(module).__name__.endswith("AsPublished")
    condition = module.condition() if math.isfinite(epsilon) else None
    if accountant == PURE:
        delta = 0.0  # epsilon holds at any delta
    return {
        "method": type(module).__name__,
        "mode": "as_published" if is_published else "plain",
        "relation": ledger.relation.value,
        "epsilon": _number(epsilon_up),
        "delta": delta,
        **({} if claimed is None else {"claimed_epsilon": _number(rounded_up(claimed))}),
        "conditional": condition is not None,
        **({} if condition is None else {"condition": condition}),
        "accountant": accountant,
        "steps": ledger.steps,
        "guarantee": _sentence(ledger, epsilon_up, delta, accountant, reasons, claimed, condition),
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


def entries_of(statement: dict[str, Any]) -> list[LedgerEntry]:
    """Return the ledger entries of a statement, which writes infinity as a word.

    Raises:
        Refusal: If an entry is not accounted for.
    """
    return [
        LedgerEntry.from_dict(
            {key: math.inf if value == "inf" else value for key, value in entry.items()}
        )
        for entry in statement["entries"]
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


def _sentence(
    ledger: PrivacyLedger,
    epsilon: float,
    delta: float,
    accountant: str,
    reasons: list[str],
    claimed: float | None,
    condition: str | None,
) -> str:
    paper = "" if claimed is None else f" The paper's own count would be epsilon {claimed:.4g}."
    if math.isinf(epsilon):
        return f"none: {'; '.join(reasons) or 'epsilon is infinite'}.{paper}"
    level, change = RELATIONS[ledger.relation]
    if ledger.relation is Relation.EDGE:
        change = change.replace("undirected edge", _unit(ledger))
    if ledger.relation is Relation.NODE:
        change += f"; one changed link is two such changes: {_twice(epsilon, delta)}-DP"
    if ledger.relation is Relation.EDGES_OF_NODE:
        change = f"add/remove {ledger.entries[0].record}{_by_edges(ledger, delta)}"
    assumption = "" if condition is None else f" if {condition}"
    reads = ledger.steps or len(ledger.entries)
    what = f"{reads} private steps" if ledger.steps else f"{reads} read{'s' * (reads > 1)}"
    return (
        f"{level} ({epsilon:.15g}, {delta:.15g})-DP{assumption} ({change}), {accountant} "
        f"accountant, {what}.{paper}"
    )


def _by_edges(ledger: PrivacyLedger, delta: float) -> str:
    """Say the epsilon of nodes with several numbers of edges."""
    found = epsilon_by_edges(ledger.entries, delta)
    return f"; epsilon by the edges of a node together: {in_words(found)}" if found else ""


def _unit(ledger: PrivacyLedger) -> str:
    """Name the edge that the guarantee hides, by the kind of the graph."""
    records = {entry.record for entry in ledger.entries}
    kinds = (DirectedPairs.record, BipartitePairs.record)
    return next((record for record in kinds if record in records), UndirectedPairs.record)


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
