"""Synthetic graphs beside the real one: queries, networks on nodes, and a page."""
