"""Reports of a few bounded numbers of each client's graph: local differential privacy."""
