"""PrivCom (Zhang et al. 2020): community structure by a private spectral method."""
