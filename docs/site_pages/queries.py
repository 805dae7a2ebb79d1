"""The page of queries: what each number of a comparison means."""

from lightning_dpg.metrics.glossary import GROUPS, Query, glossary

_INTRODUCTION = """\
# Queries

The numbers that `evaluate` and `compare` print, and what each of them means. They are errors against the real graph, of which
lower is better, or agreements with it, of which higher is better. All of them read the real graph and are not private.
"""


def page() -> str:
    """The page in Markdown."""
    parts = [_INTRODUCTION]
    for group, title in GROUPS.items():
        rows = [row(query) for query in glossary().values() if query.group == group]
        head = ["| query | meaning | better |", "|---|---|---|"]
        parts.append(f"## {title}\n\n" + "\n".join(head + rows))
    return "\n\n".join(parts)


def row(query: Query) -> str:
    """One line of a table."""
    meaning = query.meaning.replace("|", "\\|")
    return f"| `{query.name}`<br>{query.label} | {meaning} | {query.better} |"
