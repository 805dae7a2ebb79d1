"""Jin et al., 2022: local DP, a multi-bit encoder and Gromov-Wasserstein features."""
