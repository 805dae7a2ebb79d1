"""Dubhashi et al., 2015: private graph kernels."""
