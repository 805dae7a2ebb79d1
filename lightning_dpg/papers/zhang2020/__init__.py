"""Zhang et al., 2020: PrivCom, a private Oja loop in manual optimization."""
