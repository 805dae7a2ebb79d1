"""Benchmark: fits methods on graphs with budgets and seeds, measures them, and reports the results."""
