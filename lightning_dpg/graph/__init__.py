"""Algorithms on graphs, without privacy and without learning."""
