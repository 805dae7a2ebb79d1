"""Cards of statements, without a release."""

from lightning_dpg.callbacks.card.facts import Facts
from lightning_dpg.callbacks.card.pages import CARD, pages
from lightning_dpg.callbacks.card.topics import topics

FACTS = Facts(
    method_path="lightning_dpg.methods.Any",
    settings={"share": 0.5},
    is_set=False,
    max_occurrences=1,
    num_graphs=1,
    date="2026-11-22",
    version="0.2.0",
    configuration=None,
)


def card_of(statement, **changes):
    """The card of a statement in Markdown, with other facts."""
    return pages(statement | topics(statement, FACTS._replace(**changes)))[CARD]
