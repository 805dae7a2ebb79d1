"""Randomized response on all pairs of nodes, and what is drawn from its reports."""
