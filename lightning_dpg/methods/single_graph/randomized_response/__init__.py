"""Randomized response on all pairs of nodes, and graphs drawn from the reports."""
