"""Figures of the released discrepancies between graphs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from lightning_dpg.callbacks.graph_statistics import save_figure
from lightning_dpg.interfaces import publishes_discrepancies
from lightning_dpg.preflight.typed_trainer import typed

if TYPE_CHECKING:  # matplotlib takes a third of a second to import, and only figures need it
    from matplotlib.figure import Figure

Matrix = NDArray[np.float64]

_SHOWN = 0.98  # of the pairs; pairs farther apart have the color of the farthest of these
_NEIGHBORS = 30.0


class DiscrepancyFigures(Callback):
    """Save a heat map of the discrepancies and their t-SNE layout at the end of ``test``.

    Both read released discrepancies and public labels only, and so are covered by the guarantee of
    the release. They lie in the run folder under ``figures``, and go to W&B where it is in use.
    Without a guarantee they show private graphs and have the prefix ``nonprivate/``.

    Attributes:
        curve_names: Names of the pictures.
    """

    curve_names = ("discrepancies/heat_map", "discrepancies/tsne")

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Refuse a method that compares no graphs.

        Raises:
            MisconfigurationException: If it has no discrepancies.
        """
        if not publishes_discrepancies(pl_module):
            raise MisconfigurationException(
                f"DiscrepancyFigures shows discrepancies between graphs, and {type(pl_module).__name__} "
                "releases none: take it out of trainer.callbacks"
            )

    def on_test_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Draw, save and log."""
        folder = trainer.log_dir  # asks all ranks
        if not trainer.is_global_zero or folder is None or typed(trainer).fast_dev_run:
            return
        discrepancies = pl_module.discrepancies.cpu().numpy()
        labels = pl_module.labels.cpu().numpy()
        figures = {
            "heat_map": heat_map(discrepancies, labels),
            "tsne": layout_figure(discrepancies, labels),
        }
        prefix = ["nonprivate"] if pl_module.ledger.reasons else []
        for name, figure in figures.items():
            parts = [*prefix, "discrepancies", name]
            path = Path(folder) / "figures" / f"{'-'.join(parts)}.png"
            save_figure(figure, path, trainer.loggers, "/".join(parts))


def heat_map(discrepancies: Matrix, labels: NDArray[np.int64]) -> "Figure":
    """Draw discrepancies of all pairs, ordered by label, with lines between labels.

    Args:
        discrepancies: Shape ``(G, G)``.
        labels: Label of each graph, shape ``(G,)``.
    """
    from matplotlib.figure import Figure

    order = np.argsort(labels, kind="stable")
    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axes = figure.add_subplot()
    shown = discrepancies[np.ix_(order, order)]
    image = axes.imshow(shown, cmap="Blues", vmin=0, vmax=np.quantile(shown, _SHOWN))
    figure.colorbar(image, label="discrepancy", extend="max")
    for end in np.bincount(labels).cumsum()[:-1] - 0.5:
        axes.axhline(end, color="#d9822b", lw=0.8)
        axes.axvline(end, color="#d9822b", lw=0.8)
    axes.set(xlabel=f"{len(order):,} graphs, by label", xticks=[], yticks=[])
    return figure


def layout_figure(discrepancies: Matrix, labels: NDArray[np.int64]) -> "Figure":
    """Draw graphs in the plane by t-SNE (van der Maaten, Hinton, 2008), colored by label.

    Args:
        discrepancies: Shape ``(G, G)``, of at least 4 graphs.
        labels: Label of each graph, shape ``(G,)``.
    """
    from matplotlib.figure import Figure
    from sklearn.manifold import TSNE

    perplexity = min(_NEIGHBORS, (len(labels) - 1) / 3)
    layout = TSNE(metric="precomputed", init="random", perplexity=perplexity, random_state=0)
    places = layout.fit_transform(discrepancies)
    figure = Figure(figsize=(4.8, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for label in np.unique(labels):
        across, along = places[labels == label].T
        axes.scatter(across, along, s=10, alpha=0.8, label=f"label {label}")
    axes.set(xticks=[], yticks=[])
    axes.legend(frameon=False)
    return figure
