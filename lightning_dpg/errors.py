"""Error messages for the user: at most five lines, without a traceback."""

import difflib
import sys
from collections.abc import Iterable

MAX_LINES = 5
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 and the number of the signal."""


class Refusal(ValueError):
    """What the program says to its users: the message names the fault and the way out.

    Every other error is a fault of the program, and keeps its traceback.
    """


class CommandError(Refusal):
    """A refused command or call; the Python interface raises no other kind of refusal."""


def explain(error: Exception) -> str | None:
    """Text for the user, or None for a fault of the program, for which a traceback helps more."""
    if isinstance(error, (CommandError, OSError)) or _is_misconfiguration(error):
        return shorten(str(error))
    if "No space left on device" in str(error):  # some libraries raise other types
        return shorten(str(error))
    if isinstance(error, RuntimeError) and "loading state_dict" in str(error):
        return shorten(f"the checkpoint does not fit the model\n{_first_mismatch(str(error))}")
    if isinstance(error, (ValueError, RuntimeError)) and _raised_by_us(error):
        return shorten(str(error))
    return None


def is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused the error; Lightning then exits with code 1."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__ if isinstance(error, SystemExit) else None
    return False


def shorten(message: str) -> str:
    """The first lines of a message, marked as an error."""
    marked = f"error: {message.strip().removeprefix('error: ')}"
    lines = [line for line in marked.splitlines() if line.strip()]
    return "\n".join(lines[:MAX_LINES])


def nearest(name: str, known: Iterable[str]) -> str:
    """``, did you mean ...?``, or an empty string if no known name is near."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return f", did you mean {by_folded[matches[0]]}?" if matches else ""


def _is_misconfiguration(error: Exception) -> bool:
    """Whether Lightning or the package refuses a combination; False before Lightning's import."""
    module = sys.modules.get("pytorch_lightning.utilities.exceptions")
    return module is not None and isinstance(error, module.MisconfigurationException)


def _raised_by_us(error: Exception) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals["__name__"]).startswith(
        "lightning_dpg."
    )


def _first_mismatch(message: str) -> str:
    """First mismatch in an error of ``load_state_dict``, whose first line only names the class."""
    return next((line.strip() for line in message.splitlines()[1:] if line.strip()), message)
