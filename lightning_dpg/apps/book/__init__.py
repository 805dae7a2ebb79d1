"""The budget book: what a data set has spent over all its releases."""
