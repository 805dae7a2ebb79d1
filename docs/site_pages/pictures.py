"""Pictures of the methods: an original beside what a method makes of it, docs/pictures/METHOD.png.

``python docs/site_pages/pictures.py`` writes all of them, and with names of methods only these. Each
method has its shipped configuration, with its own budget, on a public built-in graph or set. The
noise is secret, so that each run shows another release.
"""

import inspect
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import torch
import yaml
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from PIL import Image
from torch_geometric.data import Data

from lightning_dpg import methods
from lightning_dpg.classes import is_abstract
from lightning_dpg.datamodules import EdgeListDataModule
from lightning_dpg.datamodules.built_in_sets import BUILT_IN_SETS
from lightning_dpg.datamodules.loading import load_graph
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.methods import (
    Attributed,
    GraphFeatureRelease,
    GraphSetSynthesizer,
    NodeClassifier,
    PrivateModule,
)
from lightning_dpg.running.fit import fit_without_release
from lightning_dpg.running.settings import conf_folder

FOLDER = Path(__file__).resolve().parents[1] / "pictures"
SIZE = (860, 400)
"""Width and height in pixels."""

_SEED = 0  # public: of the layouts, the colors and the drawn graphs
_COLORS = 32  # of the palette of a file
_INK = "#263238"
_EDGES = "#c3ced3"
_BY_LABEL = ("#b2560d", "#00695c")
_SHOWN = 4  # graphs of a set
_PULL = 0.03
# Published variants without a configuration on a built-in graph take that of the corrected one.
_CORRECTED = {
    "DPGGANAsPublished": "dpggan",
    "DPGVAEAsPublished": "dpgvae",
    "DPNetGANAsPublished": "dp_netgan",
    "LDPGromovWassersteinAsPublished": "ldp_gw",
    "PrivComAsPublished": "privcom",
    "PrivateGraphKernelAsPublished": "private_kernel",
}


def concrete() -> list[type[PrivateModule]]:
    """All public methods but the base classes."""
    public = [getattr(methods, name) for name in methods.__all__]
    return [one for one in public if not is_abstract(one) and one is not PrivateModule]


def settings_of(method: type[PrivateModule]) -> dict[str, Any]:
    """Sections of the shipped configuration of a method."""
    name = method.__name__
    folders = (conf_folder() / folder for folder in ("methods", "baselines"))
    for path in (path for folder in folders for path in sorted(folder.glob("*.yaml"))):
        settings: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        if settings["model"]["class_path"] == name:
            return settings
        if path.stem == _CORRECTED.get(name):
            return _published(settings, method)
    raise ValueError(f"{name} has no configuration")


def _published(settings: dict[str, Any], method: type[PrivateModule]) -> dict[str, Any]:
    """Replace the method of a configuration, and keep the settings that both have."""
    known = inspect.signature(method).parameters
    given = settings["model"].get("init_args", {})
    model = {
        "class_path": method.__name__,
        "init_args": {name: value for name, value in given.items() if name in known},
    }
    privacy = settings["privacy"] if method.adds_noise else {"epsilon": math.inf, "delta": 1e-5}
    return {**settings, "model": model, "privacy": privacy}


def fitted(settings: dict[str, Any]) -> Any:
    """The method of a configuration after its fit: a synthesizer, or a release of features."""
    return fit_without_release(
        settings, on_data=lambda data: None, on_start=lambda method: None
    ).eval()


def budget_text(settings: dict[str, Any], method: PrivateModule) -> str:
    """The budget in words."""
    epsilon, delta = settings["privacy"]["epsilon"], settings["privacy"].get("delta", 0.0)
    if math.isinf(epsilon):
        return "no privacy"
    return f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta and not method.is_pure else "")


def picture(method: type[PrivateModule]) -> Figure:
    """Fit a method and draw its picture."""
    settings = settings_of(method)
    if issubclass(method, GraphSetSynthesizer):
        return _set_picture(settings)
    if issubclass(method, GraphFeatureRelease):
        return _feature_picture(settings)
    if issubclass(method, NodeClassifier):
        return _class_picture(settings)
    if issubclass(method, Attributed):
        return _row_picture(settings)
    return _graph_picture(settings)


def _panels() -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100, facecolor="white")
    axes = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.02, right=0.98, bottom=0.03, top=0.86, wspace=0.06)
    return figure, list(axes)


def _title(axes: Axes, *lines: str) -> None:
    axes.set_title("\n".join(lines), fontsize=10, color=_INK, linespacing=1.5)


def _sizes(graph: Data) -> str:
    return f"{graph.num_nodes} nodes, {len(undirected_edges(graph))} edges"


def _graph_picture(settings: dict[str, Any]) -> Figure:
    """An original graph and a drawn one, in the layout and the communities of the original."""
    source = settings["data"]["init_args"]["name"]
    real, method = load_graph(source), fitted(settings)
    drawn = method.sample(torch.Generator().manual_seed(_SEED))
    as_networkx = _networkx(real)
    places, colors = _layout(as_networkx), _communities(as_networkx)
    figure, (left, right) = _panels()
    for axes, graph in ((left, real), (right, drawn)):
        _draw(axes, places, undirected_edges(graph).numpy(), colors)
        axes.set_xlim(-1.12, 1.12)
        axes.set_ylim(-1.12, 1.12)
    _title(left, f"original: {source}", _sizes(real))
    budget = budget_text(settings, method)
    _title(right, f"drawn by {type(method).__name__}, {budget}, seed {_SEED}", _sizes(drawn))
    return figure


def _row_picture(settings: dict[str, Any]) -> Figure:
    """An original graph and a drawn one, each in its layout and in the colors of its private column."""
    arguments = settings["data"]["init_args"]
    data = EdgeListDataModule(**arguments | {"nodes": arguments["nodes"] | {"names": "keep"}})
    data.setup("fit")
    columns, method = data.records.private_columns, fitted(settings)
    assert columns is not None
    drawn = method.sample(torch.Generator().manual_seed(_SEED))
    (name,), palette = columns.domains, colormaps["tab10"]
    figure, (left, right) = _panels()
    for axes, graph, rows in (
        (left, data.graph, columns.values.numpy()),
        (right, drawn, drawn.drawn_rows.values),
    ):
        colors = [to_hex(palette(value)) for value in rows[:, 0].tolist()]
        _draw(axes, _layout(_networkx(graph)), undirected_edges(graph).numpy(), colors)
        axes.set_xlim(-1.12, 1.12)
        axes.set_ylim(-1.12, 1.12)
    _title(left, f"original: {arguments['name']}, private column {name!r}", _sizes(data.graph))
    budget = budget_text(settings, method)
    _title(right, f"drawn by {type(method).__name__}, {budget}, seed {_SEED}", _sizes(drawn))
    return figure


def _class_picture(settings: dict[str, Any]) -> Figure:
    """The graph with the known classes, and the released classes of all nodes, without an edge."""
    source = settings["data"]["init_args"]["name"]
    real, method = load_graph(source), fitted(settings)
    known, found = method.known_labels(), method.node_posteriors().argmax(1)
    places, palette = _layout(_networkx(real)), colormaps["tab10"]
    shown = [to_hex(palette(label)) if label >= 0 else _EDGES for label in known.tolist()]
    figure, (left, right) = _panels()
    _draw(left, places, undirected_edges(real).numpy(), shown)
    predicted = [to_hex(palette(label)) for label in found.tolist()]
    right.scatter(places[:, 0], places[:, 1], s=20, c=predicted, linewidths=0)
    right.axis("off")
    for axes in (left, right):
        axes.set_xlim(-1.12, 1.12)
        axes.set_ylim(-1.12, 1.12)
    _title(left, f"original: {source}", f"{len(method.known_nodes)} nodes with a known class")
    _title(right, f"classes by {type(method).__name__}", budget_text(settings, method))
    return figure


def _networkx(graph: Data) -> Any:
    result = nx.empty_graph(graph.num_nodes)
    result.add_edges_from(undirected_edges(graph).tolist())
    return result


def _layout(graph: Any) -> NDArray[np.float64]:
    """Places of the nodes, shape ``(N, 2)``, from -1 to 1."""
    # A weak pull between all nodes keeps components together.
    pulled = nx.complete_graph(len(graph))
    nx.set_edge_attributes(pulled, _PULL, "weight")
    pulled.add_edges_from(graph.edges, weight=1.0)
    places = nx.spring_layout(pulled, iterations=300, seed=_SEED)
    found = np.array([places[node] for node in graph])
    found -= (found.min(axis=0) + found.max(axis=0)) / 2
    scaled: NDArray[np.float64] = found / np.abs(found).max(axis=0).clip(min=1e-9)
    return scaled


def _communities(graph: Any) -> list[str]:
    """Color of each node by its community in the original."""
    palette, colors = colormaps["tab10"], [_INK] * len(graph)
    for number, nodes in enumerate(nx.community.louvain_communities(graph, seed=_SEED)):
        for node in nodes:
            colors[node] = to_hex(palette(number % 10))
    return colors


def _draw(
    axes: Axes, places: NDArray[np.float64], edges: NDArray[np.int64], colors: Sequence[str]
) -> None:
    """Draw edges as lines, pale in the color of both ends, and nodes that grow with the degree."""
    degrees = np.bincount(edges.ravel(), minlength=len(places))
    tints = [_pale(colors[i]) if colors[i] == colors[j] else _EDGES for i, j in edges]
    order = sorted(range(len(edges)), key=lambda k: tints[k] != _EDGES)  # gray lines below
    # Lines without smoothing take half the space in a file.
    axes.add_collection(
        LineCollection(
            [places[edges[k]] for k in order],
            colors=[tints[k] for k in order],
            linewidths=0.3,
            antialiaseds=False,
        )
    )
    axes.scatter(places[:, 0], places[:, 1], s=7 + 2.5 * degrees, c=colors, zorder=2, linewidths=0)
    axes.axis("off")


def _pale(color: str) -> str:
    """Mix a color with white."""
    red, green, blue = (0.45 * part + 0.55 for part in to_rgb(color))
    return to_hex((red, green, blue))


def _set_picture(settings: dict[str, Any]) -> Figure:
    """Some originals of a set, and the graph that is drawn in place of each."""
    source = settings["data"]["init_args"]["name"]
    real, method = BUILT_IN_SETS[source](), fitted(settings)
    drawn = method.sample_set(torch.Generator().manual_seed(_SEED))
    shown = _shown(real)
    figure, (left, right) = _panels()
    _tiles(left, [real[k] for k in shown])
    _tiles(right, [drawn[k] for k in shown])
    counts = [sum(len(undirected_edges(graph)) for graph in graphs) for graphs in (real, drawn)]
    _title(
        left, f"original: {_SHOWN} of {len(real)} graphs of {source}", f"{counts[0]} edges in all"
    )
    budget = budget_text(settings, method)
    title = f"drawn in their place by {type(method).__name__}"
    _title(right, title, f"{budget}, seed {_SEED}, {counts[1]} edges in all")
    return figure


def _shown(graphs: Sequence[Data]) -> list[int]:
    """Numbers of the largest graphs of each label, of equally large ones the first."""
    labels = [int(graph.y) for graph in graphs]
    by_size = sorted(range(len(graphs)), key=lambda k: -graphs[k].num_nodes)
    return [
        k for label in (0, 1) for k in [k for k in by_size if labels[k] == label][: _SHOWN // 2]
    ]


def _tiles(axes: Axes, graphs: Sequence[Data]) -> None:
    """Draw graphs in two columns, each in a layout of its own."""
    for number, graph in enumerate(graphs):
        places = 0.85 * _layout(_networkx(graph))
        color = _BY_LABEL[number // 2]  # the upper two have label 0
        shift = 2.1 * np.array([number % 2, -(number // 2)])
        _draw(axes, places + shift, undirected_edges(graph).numpy(), [color] * len(places))
    axes.set_xlim(-1.1, 3.2)
    axes.set_ylim(-3.2, 1.1)


def _feature_picture(settings: dict[str, Any]) -> Figure:
    """What is released of the graphs of a set, by their public labels."""
    method = fitted(settings)
    for name in ("discrepancies", "similarities"):
        if hasattr(method, name):
            return _matrix_picture(settings, method, name)
    return _value_picture(settings, method)


def _matrix_picture(settings: dict[str, Any], method: Any, name: str) -> Figure:
    """Two graphs of each label, and the released values of all pairs of graphs."""
    source = settings["data"]["init_args"]["name"]
    real = BUILT_IN_SETS[source]()
    labels = [int(graph.y) for graph in real]
    order = np.lexsort(([graph.num_nodes for graph in real], labels))
    values = _coarse(getattr(method, name).cpu().numpy()[np.ix_(order, order)])
    figure, (left, right) = _panels()
    _tiles(left, [real[k] for k in _shown(real)])
    _title(
        left,
        f"original: {_SHOWN} of {len(real)} graphs of {source}",
        "above label 0, below label 1",
    )
    low, high = np.percentile(values, (2, 90))  # disconnected graphs lie far from all
    right.imshow(values, cmap=colormaps["viridis"].resampled(16), vmin=low, vmax=high)
    border = labels.count(0) * len(values) / len(labels) - 0.5
    right.axhline(border, color="white", linewidth=1.2)
    right.axvline(border, color="white", linewidth=1.2)
    right.set_xticks([])
    right.set_yticks([])
    _title(
        right,
        f"{type(method).__name__}, {budget_text(settings, method)}",
        f"{name} by label and size of graphs; bright is large",
    )
    return figure


def _coarse(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of blocks of a square matrix, at most 100 in a row."""
    step = -(-len(values) // 100)
    size = len(values) // step
    cut = values[: size * step, : size * step]
    means: NDArray[np.float64] = cut.reshape(size, step, size, step).mean(axis=(1, 3))
    return means


def _value_picture(settings: dict[str, Any], method: Any) -> Figure:
    """Exact and released values of each graph by label; a single one by the number of nodes."""
    exact = fitted({**settings, "privacy": {"epsilon": math.inf, "delta": 1e-5}})
    labels = method.labels.numpy()
    columns = ["nodes", *method.released_arrays()["columns"]]
    pair = (int(len(columns) > 2), len(columns) - 1)
    are_counts = bool((exact.features == exact.features.round()).all())
    figure, panels = _panels()
    figure.subplots_adjust(left=0.08, right=0.98, bottom=0.13, top=0.86, wspace=0.2)
    for axes, one in zip(panels, (exact, method), strict=True):
        values = np.column_stack([one.sizes, one.features])[:, pair]
        for label, color in enumerate(_BY_LABEL):
            first, second = values[labels == label].T
            axes.scatter(first, second, s=16, color=color, alpha=0.75, label=f"label {label}")
        axes.set_xlabel(columns[pair[0]], fontsize=9)
        axes.set_ylabel(columns[pair[1]], fontsize=9)
        axes.tick_params(labelsize=8)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(5, integer=are_counts))
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[0].legend(fontsize=9, frameon=False)
    source = settings["data"]["init_args"]["name"]
    _title(panels[0], f"exact values of {len(labels)} graphs of {source}", "not released")
    budget = budget_text(settings, method)
    _title(panels[1], f"values released by {type(method).__name__}", budget)
    return figure


def write(figure: Figure, path: Path) -> None:
    """Write a figure as a small file with a palette of its most frequent colors."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    found = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    colors, place, counts = found[0].astype(np.int64), found[1].ravel(), found[2]
    palette = colors[np.argsort(-counts, kind="stable")[:_COLORS]]
    distances = np.square(colors[:, None] - palette).sum(axis=2)
    numbers = distances.argmin(axis=1)[place].reshape(pixels.shape[:2])
    image = Image.fromarray(numbers.astype(np.uint8)).convert("P")
    image.putpalette(palette.ravel().tolist())
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, optimize=True)


def main(names: Sequence[str], report: Callable[[str], None] = print) -> None:
    """Write the pictures of some methods, or of all.

    Args:
        names: Names of methods; empty for all.
        report: Receives one line for each file.
    """
    for method in concrete():
        if not names or method.__name__ in names:
            path = FOLDER / f"{method.__name__}.png"
            write(picture(method), path)
            report(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
