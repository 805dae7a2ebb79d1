"""Entries of a ledger from flat values, as journals hold them."""

from lightning_dpg.privacy.events import LedgerEntry, Relation


def entry(mechanism="gaussian", **values):
    """An entry by hand: what is not given is that of a read of one edge, of sensitivity 1."""
    flat = {"name": mechanism, "relation": Relation.EDGE, "sensitivity": 1.0, "proof": "by hand"}
    return LedgerEntry.from_dict(flat | {"mechanism": mechanism} | values)
