"""``studio``: a local page that guides an owner from a table to a release."""

import importlib.util
import os
import signal
from pathlib import Path

from lightning_dpg.errors import CommandError
from lightning_dpg.outcome import Outcome


def studio(
    folder: Path = Path("."),
    *,
    port: int = 0,
    no_browser: bool = False,
    book: str | None = None,
) -> Outcome:
    """Open the studio: pages from data to a release, in a browser on this machine.

    It prints its address, with a token, and answers this machine alone until Ctrl-C. It lists and serves
    files of the folder, and no others. A run is a process of its own, which goes on without the studio.

    Args:
        folder: Folder with the data; runs are written into it.
        port: Number of the port; 0 takes a free one.
        no_browser: Print the address, and open no browser.
        book: URL of the budget book, sqlite:///book.db or postgresql://user@host/database; by default
            ``$LIGHTNING_DPG_BOOK``.

    Example:
        python -m lightning_dpg studio my-data
    """
    if not folder.is_dir():
        raise CommandError(f"{folder}: no such folder\ngive the folder with the data")
    missing = [name for name in ("flask", "waitress") if importlib.util.find_spec(name) is None]
    if missing:
        raise CommandError(
            f"the studio needs {' and '.join(missing)}\npip install 'lightning_dpg[studio]'"
        )
    if importlib.util.find_spec("fcntl") is None:
        raise CommandError("the studio needs Linux or macOS: its runs hold locks of files")
    os.chdir(folder)
    # In the background of a script Ctrl-C is ignored; runs inherit that, and could not be stopped.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Start-up time: the address is printed before PyTorch is imported.
    from lightning_dpg.apps.studio.server import opened, serve

    with opened(port, browser=not no_browser) as door:
        # Start-up time: as above.
        from lightning_dpg.apps.studio.app import application

        try:
            serve(application(door, book), door)
        except KeyboardInterrupt:
            pass
    return Outcome(["the studio has ended; runs that were started go on"], {"port": door.port})
