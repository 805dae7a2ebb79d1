"""Statistics of graphs, queries that compare graphs, and quality of predictions."""
