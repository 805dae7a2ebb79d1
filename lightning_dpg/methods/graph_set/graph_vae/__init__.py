"""Variational autoencoders of graphs (Yang et al. 2021), with and without privacy."""
