"""The picture of README: the built-in town beside releases at epsilon 1.

The noise is secret and new in each run, and so is the picture: ``python -m examples.town_picture``.
"""

import sys
from pathlib import Path

import networkx as nx
import numpy as np
from matplotlib.figure import Figure

import lightning_dpg as dpg
from lightning_dpg.datamodules.town import town

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "town.png"
_COLORS = {"private": "#c96a12", "PrivGraph": "#2c8a5b", "BTER": "#3478be"}
_BINS = np.array([1, 10, 15, 20, 25, 30, 36, 43, 52, 62, 80, 1000])  # of degrees


def figure(graphs: dict[str, nx.Graph]) -> Figure:
    """Draw adjacency matrices of two graphs, then degrees and clustering of the first and the last.

    Args:
        graphs: Three graphs of the people of the town, by the names of colors.
    """
    drawn = Figure(figsize=(12, 3.2), dpi=100, layout="constrained", facecolor="white")
    axes = drawn.subplots(1, 4)
    names, people = [*graphs], list(graphs["private"])
    for place, name in zip(axes[:2], names[:2], strict=True):
        matrix = nx.to_numpy_array(graphs[name], people, dtype=bool)
        place.spy(matrix, marker=".", markersize=0.3, color=_COLORS[name])
        place.set(title=f"who knows whom: {name}", xticks=[], yticks=[], xlabel="people by quarter")
    for name in (names[0], names[-1]):
        degrees = np.array([degree for _, degree in graphs[name].degree()])
        shares, of_bin = (
            np.array([*nx.clustering(graphs[name]).values()]),
            np.digitize(degrees, _BINS),
        )
        style = {"color": _COLORS[name], "label": name}
        axes[2].plot(-np.sort(-degrees), np.arange(1, len(degrees) + 1), **style)
        bins = [bin_ for bin_ in range(1, len(_BINS)) if (of_bin == bin_).sum() > 4]
        centers = [degrees[of_bin == bin_].mean() for bin_ in bins]
        axes[3].plot(centers, [shares[of_bin == bin_].mean() for bin_ in bins], **style)
    axes[2].set(title="people of at least this degree", xlabel="degree", yscale="log")
    axes[3].set(title="mean clustering by degree", xlabel="degree", ylim=(0, None))
    for place in axes[2:]:
        place.legend(frameon=False)
    return drawn


def main(file: Path = PICTURE) -> None:
    """Fit both methods, and write the picture."""
    graphs = {"private": town()}
    for name in ("PrivGraph", "BTER"):
        graphs[name] = dpg.fit("town", name.lower(), epsilon=1.0).to_networkx(seed=0)
    figure(graphs).savefig(file)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
