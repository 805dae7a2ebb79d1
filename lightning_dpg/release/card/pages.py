"""Renders the model card from the content of ``privacy.json``."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lightning_dpg.release.card.document import Section, document

CARD = "MODEL_CARD.md"
PAGE = "MODEL_CARD.html"
_TEMPLATES = {CARD: "card.md.jinja", PAGE: "card.html.jinja"}
# "\" first, which the other replacements insert.
_ESCAPED = {
    "\\": "\\\\",
    "&": "&amp;",
    "<": "&lt;",
    "|": "\\|",
    "*": "\\*",
    "`": "\\`",
    "[": "\\[",
}


def in_markdown(text: str) -> str:
    """Escape a text for Markdown, which then shows it as it is."""
    for character, escaped in _ESCAPED.items():
        text = text.replace(character, escaped)
    return text


def pages(content: dict[str, Any]) -> dict[str, str]:
    """Render all formats of the card, by names of files.

    Args:
        content: Content of a ``privacy.json`` with topics.
    """
    return {name: _rendered(template, content, ()) for name, template in _TEMPLATES.items()}


def nonprivate_page(content: dict[str, Any], private: list[Section]) -> str:
    """Render a page for the operator, with sections that read the private data.

    Args:
        content: Content of a ``privacy.json`` with topics.
        private: Sections that must not leave the operator.
    """
    return _rendered(_TEMPLATES[PAGE], content, tuple(private))


def _rendered(template: str, content: dict[str, Any], private: tuple[Section, ...]) -> str:
    text = _environment().get_template(template).render(card=document(content), private=private)
    return f"{text.strip()}\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=lambda name: name is not None and ".html" in name,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["markdown"] = in_markdown
    environment.filters["tied"] = lambda text: text.replace(" %", "\N{NO-BREAK SPACE}%")
    return environment
