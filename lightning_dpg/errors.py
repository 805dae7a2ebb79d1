"""Error messages for the user: at most five lines, without a traceback."""

import difflib
import errno
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

MAX_LINES = 5
MAX_LENGTH = 600
"""Characters of a line that a message shows."""
REPORT = (
    "This is a fault of lightning_dpg, or of a class of your own. Please report it as an issue of "
    "the repository, with these lines if they quote nothing private."
)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_OTHER_PLACE = {
    errno.EROFS: "write to another folder, whose disk is not read-only",
    errno.EACCES: "give a folder or a file for which you have the right",
    errno.EPERM: "give a folder or a file for which you have the right",
    errno.ENAMETOOLONG: "give a shorter path",
    errno.ENOENT: "give a path whose folder exists, or can be made",
    errno.ENOTDIR: "a part of this path is a file and no folder: give another path",
}


class Refusal(ValueError):
    """An error for users, whose message names the fault and the way out.

    Every other error is a fault of the program, and keeps its traceback.
    """


class CommandError(Refusal):
    """A refused command or call; the Python interface raises no other kind of refusal."""


class BookError(CommandError):
    """A budget book that cannot be used; the message names the way out."""


def explain(error: Exception, folder: Path | None = None) -> str | None:
    """Return a text for the user; None for a fault of the program, which needs a traceback.

    Args:
        error: The error.
        folder: Folder that was written to, for errors of a full disk that name no file.
    """
    if isinstance(error, OSError):
        return shorten(_of_system(error, folder))
    if isinstance(error, Refusal) or _is_misconfiguration(error):
        return shorten(str(error))
    if "No space left on device" in str(error):  # some libraries raise other types
        return shorten(f"{error}\n{_room(folder)}")
    if isinstance(error, RuntimeError) and "loading state_dict" in str(error):
        return shorten(f"the checkpoint does not fit the model\n{_first_mismatch(str(error))}")
    return None


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether Ctrl-C caused the error; Lightning then exits with code 1."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__ if isinstance(error, SystemExit) else None
    return False


def shorten(message: str) -> str:
    """Return the first lines of a message, marked as an error."""
    marked = f"error: {message.strip().removeprefix('error: ')}"
    lines = [line for line in marked.splitlines() if line.strip()][:MAX_LINES]
    return "\n".join(
        line if len(line) <= MAX_LENGTH else f"{line[:MAX_LENGTH]}..." for line in lines
    )


def nearest(name: str, names: Iterable[str]) -> str:
    """Return ``, did you mean ...?``, or an empty string if no name is near."""
    by_folded = {candidate.casefold(): candidate for candidate in names}
    folded = name.casefold()
    # The option of a group may have been one word, such as left_nodes of nodes.left.
    inside = [each for each in by_folded if "." in each and _words(folded) <= _words(each)]
    matches = sorted(inside, key=len) or difflib.get_close_matches(folded, by_folded, n=1)
    return f", did you mean {by_folded[matches[0]]}?" if matches else ""


def _words(option: str) -> set[str]:
    return {word.rstrip("s") for word in re.split(r"[._]", option)}


def _is_misconfiguration(error: Exception) -> bool:
    """Return whether an error refuses a combination of settings; False before Lightning's import."""
    module = sys.modules.get("pytorch_lightning.utilities.exceptions")
    return module is not None and isinstance(error, module.MisconfigurationException)


def _of_system(error: OSError, folder: Path | None) -> str:
    """Name the file, the refusal of the system, and the way out."""
    place = None if error.filename is None else str(error.filename)
    if error.errno is None or error.strerror is None:  # a message of our own, or of a library
        return str(error)
    message = error.strerror if place is None else f"{place[:100]}: {error.strerror}"
    full = folder if place is None else Path(place).absolute().parent
    way = _room(full) if error.errno in _FULL else _OTHER_PLACE.get(error.errno, "")
    return f"{message}\n{way}"


def _room(folder: Path | None) -> str:
    """State the free space on the disk of a folder, or of all folders that are usually written to."""
    folders = [folder] if folder else [Path.cwd(), Path(tempfile.gettempdir())]
    free = [
        f"{shutil.disk_usage(each).free:,} bytes are free in {each}"
        for each in dict.fromkeys(folders)
        if each.is_dir()
    ]
    return "\n".join([*free, "free some space, or write to another disk"])


def _first_mismatch(message: str) -> str:
    """Return the first mismatch in an error of ``load_state_dict``, which follows a title line."""
    return next((line.strip() for line in message.splitlines()[1:] if line.strip()), message)
