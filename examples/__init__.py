"""Notebooks of the Python interface, which ``python -m examples`` runs; federated averaging."""
