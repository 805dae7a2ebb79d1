"""Graphs of a set from statistics that are pooled over graphs of similar size and density."""
