"""Fits and releases inside this process, without the command line."""
