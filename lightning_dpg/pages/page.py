"""Pages from templates, with one style; they need no network."""

import base64
import json
import math
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lightning_dpg import __version__
from lightning_dpg.metrics.glossary import GROUPS, glossary
from lightning_dpg.tables import as_text

_FOLDER = Path(__file__).parent


def render(template: str, parts: Mapping[str, Any], folder: Path = _FOLDER) -> str:
    """Fill a template; all texts are escaped.

    Args:
        template: File name of the template, without its suffix.
        parts: Values by the names in the template.
        folder: Folder of the template; those that it includes may lie in this one.
    """
    return _environment(folder).get_template(f"{template}.html.jinja").render(parts)


class Table(NamedTuple):
    """A table of a page, of a notebook and of a terminal.

    Attributes:
        title: Heading above it.
        caption: What it holds, on a page only.
        head: Names of the columns; none if the cells speak for themselves.
        rows: Cells.
        notes: Lines below it.
        left: Columns that a terminal aligns on the left.
    """

    title: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    left: Collection[int] = (0,)

    def lines(self) -> list[str]:
        """Return the table as text."""
        rows = [*([self.head] if self.head else []), *self.rows]
        return [self.title, *as_text(rows if self.rows else [], self.left), *self.notes]


@cache
def _environment(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader([folder, _FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"glossary": glossary(), "groups": GROUPS, "version": __version__}
    for filter in (data_url, number, plural, script_json):
        environment.filters[filter.__name__] = filter
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
    """Return a count with its noun, such as ``"1 edge"`` and ``"2 edges"``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def number(value: float | None, digits: int = 3) -> str:
    """Format a number with few significant digits, and integers in full; ``-`` for nan and None."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"
