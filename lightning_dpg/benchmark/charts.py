"""Charts of the reports: inline SVG in the colors of the page, without a script."""

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

WIDTH, HEIGHT = 360, 230
LEFT, RIGHT, TOP, BOTTOM = 46, 18, 10, 40

COLORS = tuple(f"var(--s{number})" for number in range(8))
MUTED = "var(--muted)"
REAL = "var(--real)"
NODE_LINK_LIMIT = 300
"""Largest graph that is drawn as nodes and links."""


class Series(NamedTuple):
    """Points of one graph in a chart."""

    name: str
    points: Sequence[Sequence[float]]
    """Abscissa and ordinate of each point, in the order of the line."""
    color: str = REAL
    is_dashed: bool = False


class Axis(NamedTuple):
    """An axis of a chart."""

    label: str
    is_log: bool = False
    low: float | None = None
    """Lower end; by default that of the points, or 0 on a linear axis."""
    high: float | None = None


def line_chart(series: Sequence[Series], title: str, x: Axis, y: Axis) -> str:
    """Draw lines as SVG, with a text of the same content for screen readers.

    Args:
        series: Lines, the first one in front; of a line without points nothing is drawn.
        title: Title for screen readers.
        x: Horizontal axis.
        y: Vertical axis.
    """
    to_x, x_ticks = _scale([p[0] for s in series for p in s.points], x, LEFT, WIDTH - RIGHT)
    to_y, y_ticks = _scale([p[1] for s in series for p in s.points], y, HEIGHT - BOTTOM, TOP)
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for tick in x_ticks:
        at = f"{to_x(tick):.1f}"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(f'<text x="{at}" y="{bottom + 15}" text-anchor="middle">{_tick(tick)}</text>')
    for tick in y_ticks:
        at = f"{to_y(tick):.1f}"
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{at}" y2="{at}"/>')
        label = f'<text x="{LEFT - 5}" y="{at}" dy="4" text-anchor="end">{_tick(tick)}</text>'
        parts.append(label)
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    middle = (LEFT + right) / 2
    label = f"{escape(y.label)} by {escape(x.label)}"
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{label}</text>')
    parts += [_line(one, to_x, to_y) for one in reversed(series) if one.points]
    said = f"{title}: {', '.join(one.name for one in series)}; {y.label} by {x.label}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(said)}">'
        f"{''.join(parts)}</svg>"
    )


def legend(series: Sequence[Series]) -> str:
    """List the names of the lines beside samples of them."""
    items = [
        '<li><svg viewBox="0 0 34 14" aria-hidden="true"><line x1="0" x2="34" y1="7" y2="7" '
        f'stroke="{one.color}" stroke-width="2.2"{_dash(one)}/></svg>{escape(one.name)}</li>'
        for one in series
    ]
    return f'<ul class="legend">{"".join(items)}</ul>'


def _line(series: Series, to_x: Callable[[float], float], to_y: Callable[[float], float]) -> str:
    places = [(to_x(a), to_y(b)) for a, b in series.points]
    text = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    line = (
        f'<polyline fill="none" stroke="{series.color}" stroke-width="2"{_dash(series)} '
        f'points="{text}"/>'
    )
    if len(places) > 1:
        return line
    return f'{line}<circle cx="{places[0][0]:.1f}" cy="{places[0][1]:.1f}" r="3" fill="{series.color}"/>'


def _dash(series: Series) -> str:
    return ' stroke-dasharray="5 3"' if series.is_dashed else ""


def _scale(
    values: Sequence[float], axis: Axis, start: float, end: float
) -> tuple[Callable[[float], float], list[float]]:
    """Map values to places on an axis, and choose its ticks."""
    high = max([*values, -math.inf]) if axis.high is None else axis.high
    low = (min([*values, math.inf]) if axis.is_log else 0.0) if axis.low is None else axis.low
    if not math.isfinite(low) or not math.isfinite(high) or high <= low:
        low, high = (low, low * 10) if math.isfinite(low) and low > 0 else (0.0, 1.0)
    if axis.is_log:
        low = max(low, 1e-12)
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [10.0**power for power in exponents]
    else:
        ticks = [float(tick) for tick in MaxNLocator(5).tick_values(low, high)]

    def place(value: float) -> float:
        a, b, v = (math.log10(max(x, low)) if axis.is_log else x for x in (low, high, value))
        return start + (v - a) / (b - a) * (end - start)

    return place, [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]


def _tick(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1000:g}k" if value >= 10_000 else f"{value:g}"


def node_link(
    places: NDArray[np.float64],
    edges: NDArray[np.int64],
    groups: NDArray[np.int64],
    names: Sequence[str],
    title: str,
) -> str:
    """Draw a graph as nodes and links.

    Args:
        places: Place of each node in the unit square, shape ``(N, 2)``.
        edges: Edges, shape ``(M, 2)``.
        groups: Community of each node, by which it is colored, shape ``(N,)``.
        names: Name of each node.
        title: Title for screen readers.
    """
    size = 320
    dots = (8 + places * (size - 16)).round(1)
    radius = 4.5 if len(dots) <= 60 else 3.2 if len(dots) <= 150 else 2.4
    path = "".join(f"M{dots[i, 0]} {dots[i, 1]}L{dots[j, 0]} {dots[j, 1]}" for i, j in edges)
    circles = "".join(
        f'<circle cx="{a}" cy="{b}" r="{radius}" fill="{COLORS[group % len(COLORS)]}">'
        f"<title>{escape(name)}</title></circle>"
        for (a, b), group, name in zip(dots.tolist(), groups.tolist(), names, strict=True)
    )
    return (
        f'<svg class="nodes" viewBox="0 0 {size} {size}" role="img" aria-label="{escape(title)}">'
        f'<path class="link" d="{path}"/>{circles}</svg>'
    )


def heat_map(shares: NDArray[np.float64], counts: NDArray[np.int64], title: str) -> str:
    """Draw a matrix as squares, darker with a larger share.

    Args:
        shares: Shares between 0 and 1, shape ``(R, C)``.
        counts: Counts behind the shares, which are shown under the pointer, shape ``(R, C)``.
        title: Title for screen readers.
    """
    rows, columns = shares.shape
    side = 24
    squares = "".join(
        f'<rect x="{column * side}" y="{row * side}" width="{side - 1}" height="{side - 1}" '
        f'fill="var(--s0)" fill-opacity="{shares[row, column]:.2f}">'
        f"<title>{counts[row, column]:,} nodes</title></rect>"
        for row in range(rows)
        for column in range(columns)
        if counts[row, column]
    )
    return (
        f'<svg class="matrix" viewBox="0 0 {columns * side} {rows * side}" role="img" '
        f'aria-label="{escape(title)}"><rect class="frame" width="{columns * side}" '
        f'height="{rows * side}"/>{squares}</svg>'
    )
