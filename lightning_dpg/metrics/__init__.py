"""Statistics of graphs and link prediction."""
