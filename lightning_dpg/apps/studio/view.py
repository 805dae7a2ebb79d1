"""Answers to a browser: pages from templates, and pages and files of a run."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask import Response, current_app

from lightning_dpg.apps.studio.answers import DIRECTIONS, FIELDS, LABELS
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
    common |= {"sent": {}, "labels": LABELS}
    values = common | parts
    return Response(
        render(template, values | {"wrong": fields_in(values["problem"])}, _TEMPLATES), code
    )


def book() -> str | None:
    """Return the URL of the book that the command was given."""
    given: str | None = current_app.config["BOOK"]
    return given


_HINT = re.compile(r"[ \n]?\((?:or )?--(?:[^()]|\([^()]*\))*\)")
_SETTING = re.compile(
    r"\b(?:set )?(?:kind to \w+|undirected=True)|--kind undirected --undirected|(?:--|\b(?:data|nodes|columns|privacy)\.)[\w.-]*\w"
)


def message(error: Exception) -> str:
    """Return the lines that the command line prints for an error, with fields in place of options.

    Raises:
        Exception: The error, if it is a fault of the program.
    """
    text = explain(error)
    if text is None:
        raise error
    return of_fields(text)


def of_fields(text: str) -> str:
    """Name the fields of the pages in a message in place of settings and options."""

    def field(found: re.Match[str]) -> str:
        drops = re.fullmatch("(set )?(--kind undirected )?(--)?undirected(=True)?", found[0])
        word = "kind to drop" if drops else found[0].removeprefix("set ")
        name, _, value = word.partition(" to ")
        parts = name.lstrip("-").replace("-", "_").split(".")
        parts = parts[::-1] if name.startswith("--") else parts[-1:]  # nodes.csv is a file
        if (key := next((FIELDS[part] for part in parts if part in FIELDS), None)) is None:
            return found[0]
        return (
            f"choose '{DIRECTIONS.get(value, value)}' in '{LABELS[key]}'"
            if value
            else f"'{LABELS[key]}'"
        )

    return re.sub(r"\n\s*(?=\n|$)", "", _SETTING.sub(field, _HINT.sub("", text)))


def fields_in(problem: str) -> list[str]:
    """Return the fields that a message names, to mark them."""
    return [name for name, label in LABELS.items() if f"'{label}'" in problem]


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
