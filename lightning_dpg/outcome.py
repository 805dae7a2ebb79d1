"""Outcome of a command: lines for people, values for programs, and an exit code; messages beside it.

What the package says while it works goes to the logger ``lightning_dpg``: it writes to stderr, unless the
program that imports the package has set up logging. What asks for another setting is a warning. Only what
a run or a command ends with is printed.
"""

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

FINE = 0
REFUTED = 1
REFUSED = 2
FAULT = 70
"""As ``sysexits.h`` has it."""
INTERRUPTED = 130
"""As shells have it: 128 and the number of the signal."""

EXIT_CODES: Mapping[int, str] = {
    FINE: "done; what was checked has no fault",
    REFUTED: "a claim is refuted (`audit`), or a release or a book was changed (`verify`, `budget verify`)",
    REFUSED: "refused: the message names what to correct; or a fit of `compare` failed",
    FAULT: "a fault of the program, with a traceback",
    INTERRUPTED: "interrupted by Ctrl-C",
}
"""All exit codes with their meanings, in Markdown."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a command, which prints nothing on stdout itself.

    Attributes:
        lines: Text for people, for stdout.
        values: Plain values for programs, by name.
        code: Exit code.
        problem: Text for stderr, after the lines, of a command that did not do all of its work.
    """

    lines: Sequence[str] = ()
    values: Mapping[str, Any] | None = None
    code: int = FINE
    problem: str = ""


def is_quiet() -> bool:
    """Return whether INFO messages are off, as with ``--quiet`` and in a nested fit."""
    return logging.root.manager.disable >= logging.INFO


class ToStderr(logging.StreamHandler[TextIO]):
    """Writes to the stderr of the moment, which a test or a notebook may exchange."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message."""
        self.stream = sys.stderr
        super().emit(record)


LOGGER = logging.getLogger("lightning_dpg")
LOGGER.setLevel(logging.INFO)
if not logging.root.hasHandlers():  # as Lightning does with its own logger
    LOGGER.addHandler(ToStderr())
    LOGGER.propagate = False


def note(text: str) -> None:
    """Say a line for people, at the level INFO.

    Args:
        text: The line.
    """
    LOGGER.info("%s", text)
