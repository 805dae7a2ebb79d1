"""The section ``card`` of a configuration: the owner's texts of the model card."""

from collections.abc import Mapping
from typing import Any

from pytorch_lightning.callbacks import Callback

from lightning_dpg.callbacks import Card, ReleaseWriter


def with_release_writer(callbacks: list[Callback], texts: Mapping[str, Any]) -> list[Callback]:
    """Add a writer of the release if there is none, and give the owner's texts to the writers.

    Args:
        callbacks: Configured callbacks.
        texts: Section ``card``; without a text the writers keep their own.
    """
    card = Card.of(texts)
    if not any(isinstance(callback, ReleaseWriter) for callback in callbacks):
        callbacks = [*callbacks, ReleaseWriter()]
    for callback in callbacks:
        if isinstance(callback, ReleaseWriter) and card != Card():
            callback.card = card
    return callbacks
