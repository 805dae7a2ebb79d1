"""Attributed: a structure of another method, with rows of private columns on its nodes."""
