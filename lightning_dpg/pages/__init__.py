"""Pages that need no network: a template, charts and pictures of graphs."""
