"""Zheng et al., 2021: an edge-list WGAN-GP on random walks, NetGAN and CELL."""
