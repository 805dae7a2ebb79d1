"""Methods that learn classes of nodes."""
