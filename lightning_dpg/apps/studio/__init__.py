"""The studio: a local page that guides an owner from a table to a signed release.

Nothing here decides anything about privacy. Forms become the options of ``fit``, which runs as a process
of its own; what a page shows comes from the functions that the command line and Python call.
"""
