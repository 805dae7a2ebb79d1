"""Canary scores: estimates, from a release, of whether each canary is an edge.

Methods are independent of audits. A score is a function of the release and of the attacker's
knowledge; the key of the ledger entry that paid for a value selects the score. Any score gives a
valid audit, and a better score gives a larger bound.
"""
