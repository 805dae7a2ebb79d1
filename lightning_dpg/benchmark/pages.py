"""Common parts of the reports: templates, styles, pictures, explanations and downloads."""

import base64
import io
import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.image import imsave
from numpy.typing import NDArray

from lightning_dpg import __version__
from lightning_dpg.benchmark.figures import FIGURE_SIZE
from lightning_dpg.metrics.glossary import GLOSSARY

FOLDER = Path(__file__).parent
NO_NETWORK = (
    f"Written by lightning_dpg {__version__}. The page needs no network and sends nothing anywhere."
)


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Fill a template with its parts and with the style of all reports.

    Args:
        template: File name of the template.
        parts: Text of each ``{{NAME}}`` in the template. Such marks within a part stay as they are.
    """
    content = (FOLDER / template).read_text(encoding="utf-8")
    style = (FOLDER / "style.html").read_text(encoding="utf-8")
    texts = {**parts, "STYLE": style}
    return re.sub(r"\{\{([A-Z]+)\}\}", lambda mark: texts[mark[1]], content)


def script_json(data: Any) -> str:
    """Write data as JSON that cannot end the element of a script that holds it."""
    return json.dumps(data, allow_nan=False).replace("<", "\\u003c")


def data_url(content: str | bytes, kind: str) -> str:
    """Write content as a data URL.

    Args:
        content: Text or bytes.
        kind: Media type, such as ``text/csv``.
    """
    raw = content.encode() if isinstance(content, str) else content
    return f"data:{kind};base64,{base64.b64encode(raw).decode()}"


def download(content: str, kind: str, file: str, label: str) -> str:
    """Link that saves a text as a file.

    Args:
        content: The text.
        kind: Media type.
        file: Name of the file.
        label: Text of the link.
    """
    href = data_url(content, f"{kind};charset=utf-8")
    return f'<a class="button" download="{escape(file)}" href="{href}">{escape(label)}</a>'


def image(pixels: NDArray[Any], title: str) -> str:
    """Picture of red, green, blue and opacity, shape ``(S, S, 4)``."""
    content = io.BytesIO()
    imsave(content, pixels, format="png")
    return (
        f'<img loading="lazy" width="{FIGURE_SIZE}" height="{FIGURE_SIZE}" '
        f'alt="{escape(title)}" src="{data_url(content.getvalue(), "image/png")}">'
    )


def explained(query: str, mark: str = "") -> str:
    """Name of a query that opens its explanation; works by pointer, touch and keyboard.

    Args:
        query: Name of the query.
        mark: Text behind the name.
    """
    name = escape(query).replace("_", "_<wbr>") + mark
    meaning = GLOSSARY[query].text
    return f"<details><summary>{name}</summary><p>{escape(meaning)}</p></details>"


def plural(count: int, noun: str) -> str:
    """Count with a noun, such as ``"1 edge"`` and ``"2 edges"``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
