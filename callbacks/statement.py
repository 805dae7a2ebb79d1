"""The privacy statement: what a run guarantees, in one sentence and for machines."""

import math
from typing import Any

from lightning_dpg.privacy.ledger import PURE, PrivacyLedger, Relation

_RELATIONS = {
    Relation.EDGE: ("edge-level", "add/remove one undirected edge"),
    Relation.EDGE_REPLACE: ("edge-level", "move one undirected edge, their number is public"),
    Relation.NODE: ("node-level", "remove all edges of one node"),
    Relation.GRAPH: ("graph-level", "add/remove one graph"),
    Relation.LOCAL_GRAPH: ("local graph-level", "exchange a client's graph for any other"),
    Relation.LOCAL_NODE: ("local node-level", "exchange what a node holds for anything else"),
}


def privacy_statement(module: Any) -> dict[str, Any]:
    """What the ledger of a trained module proves, as plain values.

    All ranks have to call it together: the noise source may be made here, for all of them.

    Args:
        module: A ``PrivateModule`` whose ledger has a budget, which names the delta.
    """
    ledger: PrivacyLedger = module.ledger
    if ledger.budget is None:
        raise ValueError("a statement needs the delta of a budget: train with PrivacyAccountant")
    delta = ledger.budget.delta
    reasons = _why_none(ledger, module.noise.is_secret)
    epsilon, accountant = (math.inf, "none") if reasons else ledger.headline(delta)
    claimed = module.claimed_epsilon(delta)
    if accountant == PURE:
        delta = 0.0  # epsilon holds at any delta
    return {
        "method": type(module).__name__,
        "mode": str(module.hparams.get("mode", "plain")),
        "relation": ledger.relation.value,
        "epsilon": _number(_rounded_up(epsilon)),
        "delta": delta,
        **({} if claimed is None else {"claimed_epsilon": _number(_rounded_up(claimed))}),
        "accountant": accountant,
        "steps": ledger.steps,
        "guarantee": _sentence(ledger, epsilon, delta, accountant, reasons, claimed),
        "assumptions": list(module.assumptions),
        "entries": [
            {key: _number(value) for key, value in entry.to_dict().items()}
            for entry in ledger.entries
        ],
        "noise_source": "os" if module.noise.is_secret and _is_noised(ledger) else "none",
    }


def full_sentence(statement: dict[str, Any]) -> str:
    """The guarantee and what it takes for public, in one paragraph."""
    return " ".join([statement["guarantee"], "Assumed public:", *statement["assumptions"]])


def _why_none(ledger: PrivacyLedger, is_secret: bool) -> list[str]:
    """Why there is no guarantee; empty if there is one."""
    reasons = list(ledger.reasons)
    if not ledger.entries:
        reasons.append("the method booked no release in its ledger")
    if not is_secret:
        reasons.append("the noise was drawn from a known seed")
    return reasons


def _is_noised(ledger: PrivacyLedger) -> bool:
    return any(
        entry.mechanism in ("pure", "approximate") or entry.noise_multiplier > 0
        for entry in ledger.entries
        if entry.mechanism != "non_private"
    )


def _sentence(
    ledger: PrivacyLedger,
    epsilon: float,
    delta: float,
    accountant: str,
    reasons: list[str],
    claimed: float | None,
) -> str:
    paper = "" if claimed is None else f" The paper's own count would be epsilon {claimed:.4g}."
    if math.isinf(epsilon):
        return f"none: {'; '.join(reasons) or 'epsilon is infinite'}.{paper}"
    level, change = _RELATIONS[ledger.relation]
    reads = ledger.steps or len(ledger.entries)
    what = f"{reads} private steps" if ledger.steps else f"{reads} release{'s' * (reads > 1)}"
    return (
        f"{level} ({_rounded_up(epsilon):g}, {delta:g})-DP ({change}), {accountant} accountant, "
        f"{what}.{paper}"
    )


def _rounded_up(epsilon: float) -> float:
    """Four digits behind the point, never below the proved value."""
    return epsilon if math.isinf(epsilon) else math.ceil(epsilon * 1e4) / 1e4


def _number(value: Any) -> Any:
    """The value, and a word for what strict JSON has no number for."""
    return "inf" if value == math.inf else value
