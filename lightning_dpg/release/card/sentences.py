"""Sentences of the model card, which stand in ``sentences.yaml`` for people to review."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml


@cache
def sentences() -> dict[str, str]:
    """Return all sentences with their placeholders, by names such as ``limits.machine``."""
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    return {
        f"{section}.{name}": sentence
        for section, content in yaml.safe_load(text).items()
        for name, sentence in content.items()
    }


def say(name: str, /, **values: object) -> str:
    """Fill the placeholders of a sentence with values."""
    return sentences()[name].format(**values)


def cells(name: str, /, **values: object) -> tuple[str, ...]:
    """Return the cells of the head of a table."""
    return tuple(say(name, **values).split(" | "))


def chosen(section: str, holds: Mapping[str, object], /, **values: object) -> list[str]:
    """Return the sentences of a section that hold.

    Args:
        section: Name of the section.
        holds: Whether each sentence holds, by its name, in the order of the card.
        values: In place of the placeholders of all of them.
    """
    return [say(f"{section}.{name}", **values) for name, applies in holds.items() if applies]
