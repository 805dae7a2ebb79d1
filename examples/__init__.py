"""Notebooks that show the Python interface; ``python -m examples`` runs them and stores outputs."""
