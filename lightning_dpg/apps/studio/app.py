"""The application: all pages behind the guard, style and script, and pages for refusals."""

import sys
from pathlib import Path

from flask import Flask, Response
from werkzeug.exceptions import HTTPException

from lightning_dpg.apps.studio import results, steps
from lightning_dpg.apps.studio.answers import TEXTS
from lightning_dpg.apps.studio.guard import guard
from lightning_dpg.apps.studio.server import Door
from lightning_dpg.apps.studio.view import message, show
from lightning_dpg.errors import CommandError
from lightning_dpg.run.quiet import mute_known_warnings

_HERE = Path(__file__).parent
_STYLE = (_HERE.parents[1] / "pages" / "style.html.jinja").read_text(encoding="utf-8")


def application(door: Door, book: str | None = None) -> Flask:
    """Build the application, for the current folder.

    Args:
        door: Its address and secrets.
        book: URL of the budget book; by default that of the environment, or the one in the folder.
    """
    mute_known_warnings()
    app = Flask("lightning_dpg.apps.studio", static_folder=None)
    app.config |= {"FORM": door.form, "BOOK": book}
    app.url_map.merge_slashes = False
    guard(app, door)
    app.register_blueprint(steps.pages)
    app.register_blueprint(results.pages)
    app.add_url_rule("/studio.css", view_func=_style)
    app.add_url_rule("/studio.js", view_func=_script)
    app.register_error_handler(Exception, _failed)
    return app


def _style() -> Response:
    """Style of the pages that the commands write, and what only the studio has."""
    shared = _STYLE.strip().removeprefix("<style>").removesuffix("</style>")
    return Response(
        shared + (_HERE / "studio.css").read_text(encoding="utf-8"), mimetype="text/css"
    )


def _script() -> Response:
    text = (_HERE / "studio.js").read_text(encoding="utf-8")
    return Response(text, mimetype="text/javascript")


def _failed(error: Exception) -> Response:
    """Say why a request was refused; of a fault nothing but its place is printed, in the terminal."""
    if isinstance(error, HTTPException):
        code = error.code or 500
        return show("refused", code, text=TEXTS["refusals"].get(code, "The request was refused."))
    try:
        return show("refused", 422 if isinstance(error, CommandError) else 400, text=message(error))
    except Exception:  # noqa: BLE001  a fault, whose message may quote private data
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        file = "" if last is None else last.tb_frame.f_code.co_filename
        place = "" if last is None else f" in {file}:{last.tb_lineno}"
        print(f"studio: {type(error).__name__}{place}", file=sys.stderr)
        text = f"A fault of the program: {type(error).__name__}{place}\nPlease report it."
        return show("refused", 500, text=text)
