"""Gromov-Wasserstein under local privacy, with federated encoders (Jin, Chen, 2022)."""
