"""Attackers: empirical audits of a guarantee, and attacks on a release."""
