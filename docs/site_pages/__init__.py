"""Pages of the documentation site that are generated from code, configurations and results."""
