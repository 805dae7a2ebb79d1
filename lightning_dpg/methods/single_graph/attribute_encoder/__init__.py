"""Encoders of public node attributes, learned from private edges."""
