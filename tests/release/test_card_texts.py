"""The owner's texts of a model card."""

import pytest

from lightning_dpg.callbacks import Card, ReleaseWriter


def test_texts_are_lines_by_their_names():
    card = ReleaseWriter(card={"operator": " Bank\n X ", "purpose": "  ", "audit": "a.json"}).card
    assert card.texts() == {"operator": "Bank X"}
    assert Card.of(card) is card
    assert Card.of(None) == Card()


def test_an_unknown_text_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="'purpos', did you mean purpose"):
        ReleaseWriter(card={"purpos": "research"})
    with pytest.raises(TypeError, match=r"card\.contact must be a text, got 5"):
        Card.of({"contact": 5})
    for text in ("\x1b[2J", "\ud800"):
        with pytest.raises(ValueError, match="control character"):
            Card(operator=text)
