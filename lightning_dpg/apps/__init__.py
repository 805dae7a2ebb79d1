"""Applications on the core; each has its commands."""
