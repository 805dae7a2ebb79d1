"""Attackers: empirical audits of a guarantee, and attacks on what is released."""
