"""Measured numbers as files: ``python -m results`` writes their tables and figures."""
