"""Texts of the owner for the model card."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from unicodedata import category

from lightning_dpg.errors import Refusal, nearest


@dataclass(frozen=True)
class Card:
    """Facts that only the owner of the data knows. All of them are published with the release.

    Args:
        operator: Person or organization that made the release.
        purpose: Purpose of the release.
        recipient: Person or organization that receives it.
        contact: Address for questions about it.
        licence: Terms of use.
        data: Name and description of the data: what a node and a relation are, and of which time.
        settings_chosen_on: Data on which the method and its settings were chosen. A choice by
            results on the private data is a read that no budget has paid for.
        unit: What the guarantee protects, in the words of the owner: "one payment of a customer".
        epsilon_reason: Why this epsilon, and who decided.
        other_releases: Earlier and planned releases of the same data, the total epsilon of all of them,
            and when it is renewed.
        region: Region that the data describe, and the law that applies.
        sector: Industry or domain. The registry of deployments knows Technology, Healthcare, Education,
            Government, Energy and Finance.
        access: Who may see the private data, and how long checkpoints are kept.
        retraction: How the release would be retracted, and how a recipient hears of it.
        audit: File that ``audit --out`` has written.
        attack: File that ``attack --json`` has written.
    """

    operator: str | None = None
    purpose: str | None = None
    recipient: str | None = None
    contact: str | None = None
    licence: str | None = None
    data: str | None = None
    settings_chosen_on: str | None = None
    unit: str | None = None
    epsilon_reason: str | None = None
    other_releases: str | None = None
    region: str | None = None
    sector: str | None = None
    access: str | None = None
    retraction: str | None = None
    audit: str | None = None
    attack: str | None = None

    def __post_init__(self) -> None:
        """Put each text into one line, and refuse values that are no text."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            if not isinstance(value, str):
                raise TypeError(f"card.{field.name} must be a text, got {value!r}")
            line = " ".join(value.split())
            if any(category(character) in ("Cc", "Cs") for character in line):
                raise Refusal(f"card.{field.name} has a control character: {line!r}")
            object.__setattr__(self, field.name, line or None)

    @classmethod
    def of(cls, texts: "Card | Mapping[str, Any] | None") -> "Card":
        """Build the card from texts by their names.

        Raises:
            Refusal: If a name is unknown.
        """
        if isinstance(texts, Card):
            return texts
        names = [field.name for field in fields(cls)]
        for name in texts or {}:
            if name not in names:
                raise Refusal(f"card has no text {name!r}{nearest(str(name), names)}")
        return cls(**texts or {})

    def texts(self) -> dict[str, str]:
        """Return the texts of the owner by their names, without the names of files."""
        return {
            name: getattr(self, name) for name in OWNER_TEXTS if getattr(self, name) is not None
        }


OWNER_TEXTS = tuple(field.name for field in fields(Card) if field.name not in ("audit", "attack"))
"""Names of the texts of the owner."""
