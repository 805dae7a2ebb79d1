"""One way to write a page: a template with the style of all pages, which needs no network."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lightning_dpg import __version__
from lightning_dpg.metrics.glossary import GLOSSARY, GROUPS

_FOLDER = Path(__file__).parent
_STYLE = (_FOLDER / "style.html.jinja").read_text(encoding="utf-8")
PALETTE = dict(
    re.findall(r"--(s\d|muted|real|faint|card): (#\w{6})", _STYLE.partition("@media")[0])
)
"""Colors that figures have on a light page, by the names of their variables in the style."""


def render(template: str, parts: Mapping[str, Any]) -> str:
    """Fill a template; all texts are escaped.

    Args:
        template: File name of the template, without its suffix.
        parts: Values by the names in the template.
    """
    return _environment().get_template(f"{template}.html.jinja").render(parts)


class NotebookTable(NamedTuple):
    """A table of a notebook.

    Attributes:
        title: Line that opens and closes it.
        head: Names of the columns.
        rows: First cell, its meaning under the pointer, and the other cells, which may be HTML.
        notes: Sentences above it.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[tuple[str, str, Sequence[str]]]
    notes: Sequence[str] = ()


def notebook(warning: str, tables: Sequence[NotebookTable], lead: str = "") -> str:
    """Tables without styles of their own, for a notebook; the first one is open.

    Args:
        warning: What is not private.
        tables: The tables.
        lead: Text behind the warning.
    """
    return render("notebook", {"warning": warning, "lead": lead, "tables": tables})


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "glossary": GLOSSARY,
        "groups": GROUPS,
        "version": __version__,
    }
    environment.filters |= {"plural": plural, "script_json": script_json, "data_url": data_url}
    return environment


def script_json(values: Any) -> Markup:
    """Write values as JSON that cannot end the element of a script that holds it."""
    return Markup(json.dumps(values, allow_nan=False).replace("<", "\\u003c"))


def data_url(content: str | bytes, kind: str) -> str:
    """Write content as a data URL.

    Args:
        content: Text or bytes.
        kind: Media type, such as ``text/csv``.
    """
    raw = content.encode() if isinstance(content, str) else content
    return f"data:{kind};base64,{base64.b64encode(raw).decode()}"


def plural(count: int, noun: str) -> str:
    """Count with a noun, such as ``"1 edge"`` and ``"2 edges"``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
