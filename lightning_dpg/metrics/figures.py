"""Pictures of graphs and tables: lines, bars, grids and networks, drawn by matplotlib.

Pages, runs, notebooks and :func:`draw` share them. Figures have no ground, and colors that are seen on
white and on black; a page puts those of its style in their place.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightning_dpg.errors import CommandError

if TYPE_CHECKING:  # matplotlib takes a third of a second, and is needed only where figures are
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = {
    "real": "#d0761f",
    "muted": "#79818a",
    "faint": "#8f979f",
    "card": "#7f878f",
    "s0": "#3478be",
    "s1": "#c8581a",
    "s2": "#178a7a",
    "s3": "#b1478f",
    "s4": "#7b66d2",
    "s5": "#907410",
    "s6": "#cc3d57",
    "s7": "#3b8a40",
}
"""Colors by the names of their variables in the style of a page."""
COLORS = tuple(f"s{number}" for number in range(8))
INK = PALETTE["s0"]
WIDTH = 360
"""Width of a picture in points."""
MOST_BARS = 16
_ACROSS = 3
_TITLE = 26
_LONGEST = 44
_LONGEST_OF_GRID = 17
STYLE = {
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"),
        PALETTE["muted"],
    ),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "none"),
    "font.size": 12,
    "svg.fonttype": "none",
    "svg.hashsalt": "lightning_dpg",
}
"""Settings of matplotlib for all figures; those of the user have no effect."""
_Margins = tuple[int, int, int, int]
"""Points to the left of the axes, below, to the right and above."""


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
    """What it counts, with its unit."""
    is_log: bool = False
    low: float | None = None
    """Lower end; by default that of the points, or 0 on a linear axis."""
    high: float | None = None
    ticks: Mapping[float, str] | None = None
    """Texts at places; by default numbers."""


@dataclass(frozen=True)
class Chart:
    """Lines; the first one is in front, and of one without points nothing is drawn."""

    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]

    height: ClassVar[int] = 230
    margins: ClassVar[_Margins] = (48, 40, 18, 10)

    @property
    def label(self) -> str:
        """What is shown."""
        return f"{self.y.label} by {self.x.label}"

    def draw(self, axes: "Axes") -> None:
        """Draw on empty axes."""
        from matplotlib.ticker import LogLocator, MaxNLocator

        x, y = self.x, self.y
        axes.set(xscale=_scale(x), yscale=_scale(y))
        axes.set_xlabel(self.label, labelpad=7)
        axes.margins(0)
        for line in reversed(self.series):
            marker = "o" if len(line.points) == 1 else ""
            dashes = (0, (2.5, 1.5)) if line.is_dashed else "-"
            xs, ys = zip(*line.points, strict=True) if line.points else ((), ())
            look: dict[str, Any] = {
                "ls": dashes,
                "color": PALETTE[line.color],
                "lw": 2,
                "clip_on": False,
            }
            axes.plot(xs, ys, marker=marker, label=_short(line.name), **look)
        for each, axis, limit in ((x, axes.xaxis, axes.set_xlim), (y, axes.yaxis, axes.set_ylim)):
            limit(each.low if each.is_log or each.low is not None else 0.0, each.high)
            low, high = sorted(axis.get_view_interval())
            marks = LogLocator(subs=(1, 2, 5) if high <= 50 * low else (1,))
            rounds = MaxNLocator(5, steps=(1, 2, 5, 10))
            axis.set_major_locator(marks if each.is_log else rounds)
            axis.set_major_formatter(lambda value, _: _tick(value))
            if each.ticks:
                shown = {place: text for place, text in each.ticks.items() if low <= place <= high}
                axis.set_ticks(list(shown), list(shown.values()))
        axes.minorticks_off()
        axes.tick_params(length=0, labelsize=13, pad=5)
        axes.grid(color=PALETTE["faint"], lw=1, alpha=0.3, clip_on=False)
        axes.set_axisbelow(True)
        axes.spines[["left", "right", "top"]].set_visible(False)
        axes.spines["bottom"].set(color=PALETTE["muted"], lw=1)
        if len(self.series) > 1:
            axes.legend(reverse=True, frameon=False, fontsize=11)


@dataclass(frozen=True)
class Bars:
    """Shares of values: a bar for each value and graph, below the name of the value."""

    title: str
    label: str
    """What the bars are shares of."""
    values: Sequence[str]
    series: Sequence[Series]
    """Graphs; their points are (place of the value, share)."""

    margins: ClassVar[_Margins] = (16, 40, 24, 4)

    @property
    def _step(self) -> int:
        """Points of one value."""
        return 22 + 7 * len(self.series)

    @property
    def height(self) -> int:
        """Points of the picture."""
        return 44 + self._step * min(len(self.values), MOST_BARS)

    def draw(self, axes: "Axes") -> None:
        """Draw on empty axes."""
        shares = np.array([[point[1] for point in one.points] for one in self.series])
        shown = np.arange(len(self.values))
        if len(shown) > MOST_BARS:  # the most frequent ones, in their order
            shown = np.sort(np.argsort(-shares.max(axis=0), kind="stable")[:MOST_BARS])
        step, most = self._step, float(shares.max(initial=0)) or 1.0
        for place, value in enumerate(shown.tolist()):
            axes.text(0, step * place + 15, _short(self.values[value]), fontsize=12)
            for number, one in enumerate(self.series):
                below = step * place + 21 + 7 * number
                color = PALETTE[one.color]
                axes.barh(below, shares[number, value], 6, color=color, label=_short(one.name))
        left_out = len(self.values) - len(shown)
        more = f", {left_out} rarer values left out" if left_out else ""
        axes.set(xlim=(0, 1.02 * most), ylim=(step * len(shown), 0), yticks=[])
        axes.set_xlabel(f"{self.label}{more}", labelpad=7)
        axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        axes.tick_params(length=0, labelsize=13, pad=5)
        axes.locator_params(axis="x", nbins=4)
        axes.spines[["left", "right", "top"]].set_visible(False)
        if len(self.series) > 1:
            names, labels = axes.get_legend_handles_labels()
            count = len(self.series)
            axes.legend(names[:count], labels[:count], frameon=False, fontsize=11)


@dataclass(frozen=True)
class Grid:
    """Cells of a matrix, darker with more in them."""

    title: str
    label: str
    pixels: NDArray[np.uint8]
    """Red, green, blue and opacity, shape ``(R, C, 4)``."""
    rows: Sequence[str] = ()
    """Names of the rows; none of an adjacency matrix."""
    columns: Sequence[str] = ()

    height: ClassVar[int] = 360

    @property
    def margins(self) -> _Margins:
        """Points around the axes."""
        left, below = (
            7 * max((min(len(name), _LONGEST_OF_GRID) for name in names), default=0)
            for names in (self.rows, self.columns)
        )
        return 12 + left, 40 + below, 12, 8

    def draw(self, axes: "Axes") -> None:
        """Draw on empty axes."""
        axes.imshow(self.pixels, interpolation="none", aspect="auto")
        for names, axis in ((self.columns, axes.xaxis), (self.rows, axes.yaxis)):
            step = 1 + len(names) // MOST_BARS
            places = range(0, len(names), step)
            axis.set_ticks(places, [_short(names[place], _LONGEST_OF_GRID) for place in places])
        axes.tick_params(length=0, labelsize=11)
        axes.tick_params(axis="x", rotation=90)
        axes.spines[:].set(color=PALETTE["faint"], alpha=0.3)
        axes.set_xlabel(self.label, labelpad=7)


@dataclass(frozen=True)
class Network:
    """Nodes and links."""

    title: str
    label: str
    places: NDArray[np.float64]
    """Places of the nodes, shape ``(N, 2)``."""
    links: NDArray[np.int64]
    """Nodes of each link, shape ``(M, 2)``."""

    height: ClassVar[int] = 360
    margins: ClassVar[_Margins] = (12, 40, 12, 8)

    def draw(self, axes: "Axes") -> None:
        """Draw on empty axes."""
        gaps = np.full((len(self.links), 1, 2), np.nan)
        lines = np.concatenate([self.places[self.links], gaps], axis=1).reshape(-1, 2)
        axes.plot(*lines.T, color=INK, lw=0.6, alpha=0.45)
        axes.plot(*self.places.T, "o", color=INK, ms=4)
        axes.set(xticks=[], yticks=[], xlabel=self.label)
        axes.spines[:].set_visible(False)


Picture = Chart | Bars | Grid | Network


def draw(pictures: Sequence[Picture], *, is_page: bool = False) -> "Figure":
    """Draw pictures side by side, whatever the user has set for matplotlib.

    Args:
        pictures: The pictures, at least one.
        is_page: Whether a page says titles and names of lines.

    Returns:
        A figure that a notebook shows, and ``savefig`` writes.
    """
    from matplotlib import style

    title = 0 if is_page else _TITLE
    rows = [pictures[start : start + _ACROSS] for start in range(0, len(pictures), _ACROSS)]
    heights = [title + max(each.height for each in row) for row in rows]
    wide, high = WIDTH * len(rows[0]), sum(heights)
    with style.context(["default", STYLE]):
        figure = _shown(wide / 72, high / 72)
        for number, row in enumerate(rows):
            top = high - sum(heights[:number])
            for column, picture in enumerate(row):
                left, below, right, above = picture.margins
                start, end = top - title - picture.height + below, top - title - above
                place = (WIDTH * column + left, start, WIDTH - left - right, end - start)
                scale = np.array([wide, high, wide, high])
                axes = figure.add_axes(tuple(np.array(place) / scale))
                picture.draw(axes)
                if is_page and (legend := axes.get_legend()):
                    legend.remove()
                elif not is_page:
                    at = (WIDTH * column + 12) / wide, (top - 18) / high
                    figure.text(*at, _short(picture.title), fontsize=13)
    return figure


Draw = Callable[[], Sequence[Picture]]
Pictures = Mapping[str, Draw]
"""Functions that make the pictures of each kind of thing that is there."""


def plot(found: Pictures, kind: str | None, owner: str) -> "Figure":
    """Draw the pictures of a kind.

    Args:
        found: The kinds that are there.
        kind: The wanted one; by default the first two.
        owner: What has them, for an error.

    Raises:
        CommandError: If the kind is not there.
    """
    chosen = list(found)[:2] if kind is None else [kind]
    if not found or chosen[-1] not in found:
        held = f"plot {', '.join(found)}" if found else "it has no pictures"
        raise CommandError(f"{owner} holds no {kind or 'pictures'}: {held}")
    return draw([picture for name in chosen for picture in found[name]()])


def _shown(width: float, height: float) -> "Figure":
    """Return an empty figure that a notebook shows: without pyplot, it does not."""
    from matplotlib.figure import Figure

    class Shown(Figure):
        """A figure that shows itself."""

        def _repr_png_(self) -> bytes:
            content = io.BytesIO()
            self.savefig(content, format="png")
            return content.getvalue()

    return Shown(figsize=(width, height))


def _scale(axis: Axis) -> str:
    return "log" if axis.is_log else "linear"


def _tick(value: float) -> str:
    if 0 < value < 0.001:
        return f"{value:.0e}".replace("e-0", "e-")
    if value >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    return f"{value / 1000:g}k" if value >= 10_000 else f"{value:g}"


def _short(name: str, longest: int = _LONGEST) -> str:
    """Return a name for a picture, without marks of formulas."""
    name = name.replace("$", r"\$")
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
