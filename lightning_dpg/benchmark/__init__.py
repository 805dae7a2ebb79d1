"""The benchmark: methods, graphs, budgets and seeds, fitted, measured and reported."""
