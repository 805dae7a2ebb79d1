"""The package as its source files say it: classes, functions and their docstrings."""

from functools import cache
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parents[2]


@cache
def package() -> griffe.Module:
    """The package, read from its files without execution."""
    loaded = griffe.load("lightning_dpg", search_paths=[ROOT], resolve_aliases=True)
    assert isinstance(loaded, griffe.Module)
    return loaded


def target(path: str) -> griffe.Object:
    """The definition behind a dotted path inside the package, such as ``methods.BTER``."""
    found = package()[path]
    return found.final_target if isinstance(found, griffe.Alias) else found


@cache
def sections(found: griffe.Object) -> list[griffe.DocstringSection]:
    """The sections of a docstring in Google's style."""
    if found.docstring is None:
        return []
    return found.docstring.parse(griffe.Parser.google, warnings=False)


def text(found: griffe.Object) -> str:
    """The docstring up to its first section."""
    parts = sections(found)
    is_text = bool(parts) and isinstance(parts[0], griffe.DocstringSectionText)
    return str(parts[0].value) if is_text else ""


def titled(found: griffe.Object) -> dict[str, str]:
    """Texts of the sections with titles of our own, such as ``When to use``, by title."""
    return {
        str(part.title): part.value.contents
        for part in sections(found)
        if isinstance(part, griffe.DocstringSectionAdmonition)
    }


def summary(text: str) -> tuple[str, str]:
    """The first paragraph of a text, and the rest."""
    first, _, rest = text.partition("\n\n")
    return " ".join(first.split()), rest.strip("\n")
