"""Methods that learn from a set of graphs, and draw synthetic sets."""
