"""The page of queries: what each number of a comparison means."""


def page() -> str:
    """The page in Markdown."""
    return "# Queries\n\nThe numbers that `evaluate` and `compare` print.\n"
