"""Xiao et al., 2014: hierarchical random graphs."""
