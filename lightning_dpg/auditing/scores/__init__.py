"""Canary scores: how much a release speaks for each canary being an edge.

Methods know nothing of audits. A score is a function of what a method published and of what the
attacker knows; it is found by the key of the ledger entry that paid for the value. Any score gives a
valid audit, and the better it is, the more an audit finds.
"""
