"""Commands that measure how much a release says about the private graph."""
