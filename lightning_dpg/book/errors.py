"""The error of a budget book."""

from lightning_dpg.errors import CommandError


class BookError(CommandError):
    """A book that cannot be used; the message names the way out."""
