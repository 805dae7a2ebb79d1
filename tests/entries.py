"""Entries of a ledger from flat values, as journals hold them."""

import re

from lightning_dpg.privacy.events import LedgerEntry, Relation
from lightning_dpg.privacy.ledger import Budget, PrivacyLedger


def entry(mechanism="gaussian", **values):
    """An entry by hand: what is not given is that of a read of one edge, of sensitivity 1."""
    key = re.sub(r"\W+", "_", values.get("name", mechanism).lower())
    flat = {
        "key": key,
        "name": mechanism,
        "relation": Relation.EDGE,
        "sensitivity": 1.0,
        "proof": "by hand",
    }
    return LedgerEntry.from_dict(flat | {"mechanism": mechanism} | values)


def ledger_of(epsilon, delta, *entries):
    """A ledger of edges within a budget, with what was spent."""
    ledger = PrivacyLedger(Relation.EDGE)
    ledger.budget = Budget(epsilon, delta)
    for each in entries:
        ledger.spend(each)
    return ledger
