"""Curves and figures of the graphs that a synthesizer draws during training."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.loggers import WandbLogger
from torch_geometric.data import Data

from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.metrics.functional import degrees, edge_overlap, statistics

if TYPE_CHECKING:  # matplotlib takes a third of a second, and is needed only where figures are
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_SHOWN_NODES = 3000
_COLORS = {"synthetic": "#1f5fa8", "original": "#d9822b"}


class GraphStatistics(Callback):
    """Draw a synthetic graph every few steps, log its statistics and save two figures.

    The statistics of the sample are logged as ``stat/NAME``; they read released tensors only. What
    reads the private graph has the prefix ``nonprivate/``: the differences ``NAME_error`` of sample
    and original, the share ``edge_overlap`` of the original's edges that the sample has, and the
    original's part of the figures. The figures, degree distribution and adjacency matrix, lie in
    the run folder under ``figures``. They go to W&B where it is in use, those of the original with
    ``privacy.upload_nonprivate`` only.

    Args:
        every_n_steps: Batches between two samples; there is always one at the end.
        nonprivate: Whether to compare with the private graph; the figures and curves then are not
            covered by the guarantee. ``False`` keeps all that has the prefix, also of methods,
            out of every log of the run.
        seed: Seed of the sample, of the sources of long paths and of the communities (public).
    """

    def __init__(self, every_n_steps: int = 500, nonprivate: bool = True, seed: int = 0) -> None:
        """Refuse an interval below one batch."""
        if every_n_steps < 1:
            raise ValueError(f"every_n_steps must be positive, got {every_n_steps}")
        self.every_n_steps = every_n_steps
        self.nonprivate = nonprivate
        self.seed = seed
        self._batches = 0

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the batch: optimizer steps differ between methods."""
        self._batches += 1
        if self._batches % self.every_n_steps == 0:
            self._report(trainer, pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Report on the final generator."""
        if self._batches % self.every_n_steps:
            self._report(trainer, pl_module)

    def state_dict(self) -> dict[str, int]:
        """Return the number of batches, so that a resumed run keeps its steps."""
        return {"batches": self._batches}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Restore the number of batches."""
        self._batches = state_dict["batches"]

    def _report(self, trainer: Trainer, pl_module: Any) -> None:
        folder = trainer.log_dir  # asks all ranks
        if not trainer.is_global_zero:
            return
        with torch.no_grad():
            sample = pl_module.sample(torch.Generator().manual_seed(self.seed))
        graphs = {"synthetic": sample}
        if self.nonprivate:
            graphs["original"] = trainer.datamodule.train_graph  # type: ignore[attr-defined]
        # Lightning counts from 0 the batch whose metrics it logs.
        step = self._batches - 1
        values = _values(**graphs)
        for logger in trainer.loggers:
            logger.log_metrics(values, step=step)
        if folder is None or trainer.fast_dev_run:  # type: ignore[attr-defined]
            return
        prefix = "nonprivate" if self.nonprivate else "stat"
        figures = {
            "degrees": degree_figure(graphs),
            "adjacency": adjacency_figure(graphs, self.seed),
        }
        for name, figure in figures.items():
            path = Path(folder) / "figures" / f"{prefix}-{name}-{self._batches:06d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=150)
            for logger in trainer.loggers:
                if isinstance(logger, WandbLogger):
                    logger.log_image(f"{prefix}/{name}", [str(path)], step=step)


def _values(synthetic: Data, original: Data | None = None) -> dict[str, float]:
    values = statistics(synthetic)
    logged = {f"stat/{name}": value for name, value in values.items()}
    if original is not None:
        for name, value in statistics(original).items():
            logged[f"nonprivate/{name}_error"] = values[name] - value
        logged["nonprivate/edge_overlap"] = edge_overlap(synthetic, original)
    return logged


def degree_figure(graphs: dict[str, Data]) -> "Figure":
    """Number of nodes of at least each degree, on log axes.

    Args:
        graphs: Graphs by their names, ``synthetic`` and perhaps ``original``.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log")
    for name, graph in graphs.items():
        degree = degrees(graph)
        values, counts = np.unique(degree[degree > 0], return_counts=True)
        at_least = counts[::-1].cumsum()[::-1]
        label = name
        if isolated := int((degree == 0).sum()):
            label += f" (and {isolated:,} of degree 0)"
        axes.plot(values, at_least, ".-", color=_COLORS[name], label=label, lw=1, alpha=0.8)
    axes.set(xlabel="degree", ylabel="nodes of at least this degree")
    axes.grid(which="major", color="0.9")
    axes.legend(frameon=False)
    return figure


def adjacency_figure(graphs: dict[str, Data], seed: int) -> "Figure":
    """Adjacency matrices, nodes ordered by the communities of the synthetic graph.

    The original is shown in the same order. Of large graphs the :data:`MAX_SHOWN_NODES` nodes of
    the synthetic graph's highest degrees are shown.

    Args:
        graphs: Graphs by their names, ``synthetic`` and perhaps ``original``, of equal nodes.
        seed: Seed of the communities.
    """
    from matplotlib.figure import Figure

    order = community_order(graphs["synthetic"], seed)
    figure = Figure(figsize=(4.4 * len(graphs), 4.6), layout="constrained")
    for axes, (name, graph) in zip(
        np.atleast_1d(figure.subplots(1, len(graphs))), graphs.items(), strict=True
    ):
        _draw_matrix(axes, graph, order, _COLORS[name])
        axes.set_title(name)
    shown = f"{len(order):,} nodes"
    if len(order) < graphs["synthetic"].num_nodes:
        shown += " of highest degree"
    figure.supxlabel(f"{shown}, by community of the synthetic graph", fontsize="medium")
    return figure


def community_order(graph: Data, seed: int) -> NDArray[np.int64]:
    """Nodes to show, the largest community first and in each the highest degree first."""
    degree = degrees(graph)
    kept = np.argsort(-degree, kind="stable")[:MAX_SHOWN_NODES]
    edges = undirected_edges(graph).numpy()
    edges = edges[np.isin(edges, kept).all(axis=1)]
    links = nx.Graph()
    links.add_nodes_from(kept.tolist())
    links.add_edges_from(edges.tolist())
    communities = nx.community.louvain_communities(links, seed=seed)
    # Sizes tie, and sets have no order of their own.
    ordered = sorted(communities, key=lambda nodes: (-len(nodes), min(nodes)))
    by_degree = [sorted(nodes, key=lambda node: (-degree[node], node)) for nodes in ordered]
    return np.array([node for nodes in by_degree for node in nodes], dtype=np.int64)


def _draw_matrix(axes: "Axes", graph: Data, order: NDArray[np.int64], color: str) -> None:
    place = np.full(graph.num_nodes, -1)
    place[order] = np.arange(len(order))
    rows, columns = place[graph.edge_index.cpu().numpy()]
    shown = (rows >= 0) & (columns >= 0)
    # A square as large as its cell, yet not so small that it fades.
    points = max(290 / max(len(order), 1), 0.7)
    axes.plot(columns[shown], rows[shown], "s", color=color, markersize=points, markeredgewidth=0)
    limits = (-0.5, len(order) - 0.5)
    axes.set(xlim=limits, ylim=limits[::-1], aspect="equal", xticks=[], yticks=[])
