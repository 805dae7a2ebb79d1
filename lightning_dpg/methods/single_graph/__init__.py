"""Methods that learn from one graph, and draw synthetic ones."""
