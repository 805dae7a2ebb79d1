"""Figures of the pages: drawn by matplotlib, as inline SVG in the colors of the page."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from lightning_dpg.pages.page import PALETTE, data_url

if TYPE_CHECKING:  # matplotlib takes a third of a second, and is needed only where figures are
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = tuple(f"s{number}" for number in range(8))
IMAGE_SIZE = 320
"""Width in pixels of an adjacency matrix; a smaller graph has one pixel per node."""

_LINK = "{http://www.w3.org/1999/xlink}href"


class Series(NamedTuple):
    """Points of one graph in a chart."""

    name: str
    points: Sequence[Sequence[float]]
    """Abscissa and ordinate of each point, in the order of the line."""
    color: str = "real"
    """A name in :data:`PALETTE`."""
    is_dashed: bool = False


class Axis(NamedTuple):
    """An axis of a chart."""

    label: str
    is_log: bool = False
    low: float | None = None
    """Lower end; by default that of the points, or 0 on a linear axis."""
    high: float | None = None


def line_chart(series: Sequence[Series], title: str, x: Axis, y: Axis) -> Markup:
    """Draw lines.

    Args:
        series: Lines, the first one in front; of a line without points nothing is drawn.
        title: Title for screen readers.
        x: Horizontal axis.
        y: Vertical axis.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator

    with _figure() as (figure, axes):
        axes.set(xscale=_scale(x), yscale=_scale(y))
        axes.set_xlabel(f"{y.label} by {x.label}", labelpad=7)
        axes.margins(0)
        for line in reversed(series):
            marker = "o" if len(line.points) == 1 else ""
            dashes = (0, (2.5, 1.5)) if line.is_dashed else "-"
            xs, ys = zip(*line.points, strict=True) if line.points else ((), ())
            look = {"ls": dashes, "color": PALETTE[line.color], "lw": 2, "clip_on": False}
            axes.plot(xs, ys, marker=marker, **look)
        for each, axis, limit in ((x, axes.xaxis, axes.set_xlim), (y, axes.yaxis, axes.set_ylim)):
            limit(each.low if each.is_log or each.low is not None else 0.0, each.high)
            axis.set_major_locator(LogLocator() if each.is_log else MaxNLocator(5))
            axis.set_major_formatter(lambda value, _: _tick(value))
        axes.patch.set_visible(False)
        axes.minorticks_off()
        axes.tick_params(length=0, labelsize=13, pad=5)
        axes.grid(color=PALETTE["faint"], lw=1, clip_on=False)
        axes.set_axisbelow(True)
        axes.spines[["left", "right", "top"]].set_visible(False)
        axes.spines["bottom"].set(color=PALETTE["muted"], lw=1)
        summary = f"{title}: {', '.join(one.name for one in series)}; {y.label} by {x.label}"
        return _inline_svg(figure, summary)


def _scale(axis: Axis) -> str:
    return "log" if axis.is_log else "linear"


def _tick(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1000:g}k" if value >= 10_000 else f"{value:g}"


def image(pixels: NDArray[np.uint8], title: str) -> Markup:
    """Draw a picture of red, green, blue and opacity, shape ``(S, S, 4)``."""
    from matplotlib.image import imsave

    content = io.BytesIO()
    imsave(content, pixels, format="png")
    return Markup('<img loading="lazy" width="{0}" height="{0}" alt="{1}" src="{2}">').format(
        IMAGE_SIZE, title, data_url(content.getvalue(), "image/png")
    )


@contextmanager
def _figure() -> Iterator[tuple["Figure", "Axes"]]:
    """Yield an empty figure of 360 by 230 pixels with axes; the user's style has no effect."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", {"svg.fonttype": "none", "svg.hashsalt": "lightning_dpg"}]):
        figure = Figure(figsize=(360 / 72, 230 / 72), frameon=False)
        yield figure, figure.add_axes((0.13, 0.175, 0.82, 0.78))


def _inline_svg(figure: "Figure", title: str) -> Markup:
    """Write a figure as SVG for a page, always the same for the same figure.

    Text stays text, in the font of the page. The colors of :data:`PALETTE` become variables, which
    the style changes on a dark page.

    Args:
        figure: The figure.
        title: Title for screen readers.
    """
    file = io.StringIO()
    none = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(file, format="svg", metadata=none)
    root = ElementTree.fromstring(file.getvalue())
    for element in [*root.iter()]:
        attributes = element.attrib
        name = attributes.pop("id", "")
        if element.tag.endswith("path") and name:  # a marker, to which others link
            attributes["id"] = name
        attributes.pop("transform", None)  # rotations by 0
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
    return "; ".join(part for part in style.split("; ") if not part.startswith("font"))
