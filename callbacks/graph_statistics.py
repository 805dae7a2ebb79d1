"""Curves and figures of the graphs that a synthesizer draws during training."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pytorch_lightning import Trainer
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.loggers import Logger, WandbLogger
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from pytorch_lightning.utilities.rank_zero import rank_zero_only
from torch_geometric.data import Data

from lightning_dpg.callbacks.progress_bar import announce
from lightning_dpg.errors import Refusal
from lightning_dpg.graph.edge_statistics import HoldsStatistics
from lightning_dpg.graph.expected_degrees import MANY_EDGES
from lightning_dpg.graph.pair_space import without_directions
from lightning_dpg.interfaces import GraphRecords, PublishesGraphs, serves_records
from lightning_dpg.metrics.figures import draw
from lightning_dpg.metrics.functional import STATISTICS, edge_overlap, statistics_and_errors
from lightning_dpg.metrics.pictures import KINDS, OF_GRAPHS, pictures_of
from lightning_dpg.outcome import note
from lightning_dpg.preflight.typed_trainer import typed

if TYPE_CHECKING:  # matplotlib takes a third of a second, and is needed only where figures are
    from matplotlib.figure import Figure

_SPREAD = "_standard_error"


class GraphStatistics(Callback):
    """Draw a synthetic graph every few steps, log its statistics and save figures.

    The statistics of the sample are logged as ``stat/NAME``; they read released tensors only. What
    reads the private graph has the prefix ``nonprivate/``: the differences ``NAME_error`` of sample
    and original, the share ``edge_overlap`` of the original's edges that the sample has, and the
    figures of both graphs. In large graphs triangles and mean distances are sampled: a line
    says so once, and standard errors ``NAME_standard_error`` are logged beside them. The figures,
    those of :meth:`lightning_dpg.Release.plot`, lie in the run folder under ``figures``. They go to
    W&B where it is in use, those of the original with ``privacy.upload_nonprivate`` only. Columns and
    transfers are those of the sample alone.

    Graphs of ``most_edges`` or more take minutes, so they are left to ``evaluate``; a line says so.

    Args:
        every_n_steps: Batches between two samples; there is always one at the end.
        nonprivate: Whether to compare with the private graph; the figures and curves then are not
            covered by the guarantee. The edges of a table that a method only counts are not read
            for it. ``False`` keeps all that has the prefix, also of methods, out of every log of
            the run.
        seed: Seed of the sample, of the sources of long paths and of the communities (public).
        most_edges: Released number of edges from which on nothing is drawn, compared or logged.

    Attributes:
        curve_names: Names of the figures and pictures that read released tensors only.
    """

    curve_names = (
        *(f"stat/{kind}" for kind in KINDS),
        *(f"stat/{name}{end}" for name in STATISTICS for end in ("", _SPREAD)),
    )

    def __init__(
        self,
        every_n_steps: int = 500,
        nonprivate: bool = True,
        seed: int = 0,
        most_edges: int = MANY_EDGES,
    ) -> None:
        """Refuse an interval below one batch."""
        if every_n_steps < 1:
            raise Refusal(f"every_n_steps must be positive, got {every_n_steps}")
        self.every_n_steps = every_n_steps
        self.nonprivate = nonprivate
        self.seed = seed
        self.most_edges = most_edges
        self._batches = 0
        self._said: set[str] = set()

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
            self._report(trainer, pl_module, is_last=True)

    def state_dict(self) -> dict[str, int]:
        """Return the number of batches, from which a resumed run counts on."""
        return {"batches": self._batches}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Restore the number of batches."""
        self._batches = state_dict["batches"]

    def _report(self, trainer: Trainer, method: PublishesGraphs, *, is_last: bool = False) -> None:
        folder = trainer.log_dir  # asks all ranks
        if not trainer.is_global_zero:
            return
        if int(torch.as_tensor(getattr(method, "num_edges", 0)).sum()) >= self.most_edges:
            self._say(
                f"no figures of graphs of {self.most_edges:,} edges or more (most_edges); evaluate "
                "compares the release"
            )
            return
        if is_last:
            announce(trainer, "drawing a synthetic graph, its statistics and figures")
        with torch.no_grad():
            sample = method.sample(torch.Generator().manual_seed(self.seed))
        graphs = {"synthetic": sample}
        original = original_graph(trainer) if self.nonprivate else None
        if original is not None:
            graphs["original"] = original
        # Lightning counts from 0 the batch whose metrics it logs.
        step = self._batches - 1
        values = _values(**{name: without_directions(g) for name, g in graphs.items()})
        self._name_sampled(values)
        for logger in trainer.loggers:
            logger.log_metrics(values, step=step)
        if folder is None or typed(trainer).fast_dev_run:
            return
        for kind, pictures in pictures_of(sample, original).items():
            # Tables are those of the sample alone.
            prefix = "nonprivate" if original is not None and kind in OF_GRAPHS else "stat"
            path = Path(folder) / "figures" / f"{prefix}-{kind}-{self._batches:06d}.png"
            save_figure(draw(pictures()), path, trainer.loggers, f"{prefix}/{kind}", step)

    def _name_sampled(self, values: dict[str, float]) -> None:
        """Name the sampled statistics of the synthetic graph."""
        ends = "stat/", _SPREAD
        names = [name for name in values if name.startswith(ends[0]) and name.endswith(ends[1])]
        if names:
            figures = ", ".join(name.removeprefix(ends[0]).removesuffix(ends[1]) for name in names)
            self._say(f"sampled, standard errors are logged: {figures}")

    def _say(self, line: str) -> None:
        """Say a line, once in a run."""
        if line not in self._said:
            self._said.add(line)
            rank_zero_only(note)(f"GraphStatistics: {line}")


def save_figure(
    figure: "Figure", path: Path, loggers: Iterable[Logger], name: str, step: int | None = None
) -> None:
    """Save a figure, and log it where W&B is in use.

    Args:
        figure: The figure.
        path: File to write; its folder is made.
        loggers: Loggers of the run.
        name: Name in the log.
        step: Step in the log.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            logger.log_image(name, [str(path)], step=step)


def original_graph(trainer: Trainer) -> Data | None:
    """Return the graph of the training edges (private); None while a table keeps them.

    Raises:
        MisconfigurationException: If the data module serves no single graph.
    """
    data = typed(trainer).datamodule
    records = data.records if serves_records(data) else None
    if not isinstance(records, GraphRecords):
        raise MisconfigurationException(
            f"GraphStatistics compares with one graph, and {type(data).__name__} serves none\n"
            "set its nonprivate to false, or take it out of trainer.callbacks"
        )
    if isinstance(records, HoldsStatistics):
        rank_zero_only(note)(
            "GraphStatistics compares nothing: the edges stay in the table, and a comparison would "
            "read them"
        )
        return None
    return records.graph


def _values(synthetic: Data, original: Data | None = None) -> dict[str, float]:
    """Return all figures by their names in the logs, and the standard errors of sampled ones."""
    values, errors = statistics_and_errors(synthetic)
    logged = {f"stat/{name}": value for name, value in values.items()}
    logged |= {f"stat/{name}{_SPREAD}": error for name, error in errors.items()}
    if original is not None:
        exact, spreads = statistics_and_errors(original)
        for name, value in exact.items():
            logged[f"nonprivate/{name}_error"] = values[name] - value
            if name in spreads or name in errors:
                spread = math.hypot(errors.get(name, 0.0), spreads.get(name, 0.0))
                logged[f"nonprivate/{name}_error{_SPREAD}"] = spread
        logged["nonprivate/edge_overlap"] = edge_overlap(synthetic, original)
    return logged
