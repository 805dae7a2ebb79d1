"""Callbacks that the command line adds: a release with the owner's texts, a bar and a summary."""

from collections.abc import Mapping, Sequence
from typing import Any

from jsonargparse import Namespace
from pytorch_lightning.callbacks import Callback, ModelSummary, ProgressBar

from lightning_dpg.callbacks import Card, PrivacyProgressBar, ReleaseWriter
from lightning_dpg.cli.quiet import at_terminal
from lightning_dpg.outcome import is_quiet


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


def add_progress_bar(callbacks: list[Callback], settings: Namespace) -> None:
    """Add a bar with the budget at a terminal, unless there is one, and set whether there is.

    With ``--quiet`` there is none, not even a configured one.

    Args:
        callbacks: Callbacks of the run, among which the bar stands in the end.
        settings: Section ``trainer``.
    """
    if is_quiet():
        callbacks[:] = [each for each in callbacks if not isinstance(each, ProgressBar)]
        settings.enable_progress_bar = False
    has_bar = any(isinstance(callback, ProgressBar) for callback in callbacks)
    if settings.enable_progress_bar is None:
        settings.enable_progress_bar = has_bar or at_terminal()
    if settings.enable_progress_bar and not has_bar:
        callbacks.append(PrivacyProgressBar())


def own_summary(callbacks: Sequence[Callback], settings: Namespace) -> list[Callback]:
    """Replace Lightning's summary of the networks, whose form depends on installed packages.

    Args:
        callbacks: Callbacks of the run.
        settings: Section ``trainer``, whose default summary is switched off.
    """
    if any(isinstance(callback, ModelSummary) for callback in callbacks):
        return []
    is_wanted = settings.enable_model_summary is not False
    settings.enable_model_summary = False
    return [ModelSummary()] * is_wanted
