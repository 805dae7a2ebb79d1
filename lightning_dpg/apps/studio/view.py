"""Answers to a browser: pages from templates, and pages and files of a run."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask import Response, current_app, send_file

from lightning_dpg.apps.studio.guard import WRITTEN_PAGE
from lightning_dpg.errors import explain
from lightning_dpg.pages.page import render

_TEMPLATES = Path(__file__).parent


def show(template: str, code: int = 200, **parts: Any) -> Response:
    """Fill a template of the studio.

    Args:
        template: Its name.
        code: Status of the answer.
        **parts: Values by their names in the template.
    """
    common = {"form": current_app.config["FORM"], "folder": Path.cwd().name, "problem": ""}
    return Response(render(template, common | parts, _TEMPLATES), code)


def book() -> str | None:
    """Return the URL of the book that the command was given."""
    given: str | None = current_app.config["BOOK"]
    return given


def message(error: Exception) -> str:
    """Return the lines that the command line prints for an error.

    Raises:
        Exception: The error, if it is a fault of the program.
    """
    text = explain(error)
    if text is None:
        raise error
    return text


def problem_of(action: Callable[[], object]) -> str:
    """Do something, and return the message of a refusal; empty if it is done.

    Raises:
        Exception: A fault of the program.
    """
    try:
        action()
    except Exception as error:  # noqa: BLE001  faults of the program are raised again
        return message(error)
    return ""


def written_page(text: str) -> Response:
    """Show a page that a run has written, which can neither act as the studio nor load anything."""
    answer = Response(text)
    answer.headers["Content-Security-Policy"] = WRITTEN_PAGE
    return answer


def download(content: bytes, name: str) -> Response:
    """Send an archive.

    Args:
        content: The archive.
        name: Its file name.
    """
    kind = "application/zip"
    return send_file(io.BytesIO(content), kind, as_attachment=True, download_name=name)
