"""Releases beside the real graph: queries, classes of nodes, and pages."""
