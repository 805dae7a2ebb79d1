"""Pictures of the pages: inline SVG in the colors of the page, and images of matrices."""

import io
import re
from collections.abc import Collection
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from markupsafe import Markup

from lightning_dpg.metrics.figures import PALETTE, STYLE, Grid, Picture, Pictures, draw
from lightning_dpg.metrics.pictures import MATRIX_SIZE
from lightning_dpg.pages.page import data_url

if TYPE_CHECKING:  # matplotlib takes a third of a second, and is needed only where figures are
    from matplotlib.figure import Figure

_LINK = "{http://www.w3.org/1999/xlink}href"


def inlined(found: Pictures, kinds: Collection[str] | None = None) -> list[tuple[str, Markup]]:
    """Write the pictures of some kinds for a page, each with its title.

    Args:
        found: The kinds that are there, as :meth:`lightning_dpg.Release.pictures` returns them.
        kinds: Wanted kinds; by default all.
    """
    chosen = [found[kind]() for kind in found if kinds is None or kind in kinds]
    return [(picture.title, inline(picture)) for pictures in chosen for picture in pictures]


def inline(picture: Picture) -> Markup:
    """Write a picture for a page, which says its title and the names of its lines."""
    text = f"{picture.title}: {picture.label}"
    if isinstance(picture, Grid) and not picture.rows:
        from matplotlib.image import imsave

        content = io.BytesIO()
        imsave(content, picture.pixels, format="png")
        return Markup('<img loading="lazy" width="{0}" height="{0}" alt="{1}" src="{2}">').format(
            MATRIX_SIZE, text, data_url(content.getvalue(), "image/png")
        )
    return _inline_svg(draw([picture], is_page=True), text)


def _inline_svg(figure: "Figure", title: str) -> Markup:
    """Write a figure as SVG for a page, always the same for the same figure.

    Text stays text, in the font of the page. The colors of :data:`PALETTE` become variables, which
    the style changes on a dark page.

    Args:
        figure: The figure.
        title: Title for screen readers.
    """
    from matplotlib import style

    file = io.StringIO()
    none = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with style.context(["default", STYLE]):
        figure.savefig(file, format="svg", metadata=none)
    root = ElementTree.fromstring(file.getvalue())
    for element in [*root.iter()]:
        attributes = element.attrib
        name = attributes.pop("id", "")
        if element.tag.endswith("path") and name:  # a marker, to which others link
            attributes["id"] = name
        if attributes.get("transform", "").startswith("rotate(-0 "):
            del attributes["transform"]
        if _LINK in attributes:
            attributes["href"] = attributes.pop(_LINK)
        for key in {"d", "x", "y"} & attributes.keys():
            attributes[key] = " ".join(re.sub(r"(\.\d)\d+", r"\1", attributes[key]).split())
        if "style" in attributes:
            attributes["style"] = _in_variables(attributes["style"])
        if not (element.text or "").strip():
            element.text = None
        element.tail = None
    root[:] = root[1:]  # without a style, which would be that of the page
    root.attrib = {"class": "chart", "viewBox": root.attrib["viewBox"], "role": "img"}
    root.set("aria-label", title)
    ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _in_variables(style: str) -> str:
    """Rewrite a style with variables for colors, and without a font."""
    for name, color in PALETTE.items():
        style = style.replace(color, f"var(--{name})")
    left_out = ("font", "stroke-opacity")  # the color of the page is faint
    return "; ".join(part for part in style.split("; ") if not part.startswith(left_out))
