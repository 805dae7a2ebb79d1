"""Declared sensitivities, by the kind of quantity that is bounded.

Each docstring is the proof that ledger entries name.
"""
