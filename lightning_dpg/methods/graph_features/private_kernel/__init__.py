"""Private graph kernels (Dubhashi et al., 2015)."""
