"""The results of a benchmark in Weights & Biases."""

import math
import os
from typing import Any, Literal

import wandb

from lightning_dpg.apps.bench.result_folder import drawn_by
from lightning_dpg.apps.bench.results import COLUMNS, csv_rows
from lightning_dpg.apps.bench.views import Benchmark
from lightning_dpg.formats.io import read_graph
from lightning_dpg.metrics.figures import degree_figure
from lightning_dpg.outcome import note
from lightning_dpg.pages.pictures import aligned, renderer
from lightning_dpg.run.loggers import why_offline


def track(results: Benchmark) -> None:
    """Log the results as a table and the figures as images to Weights & Biases.

    Offline runs lie in the folder of the results under ``wandb/``.

    Args:
        results: Benchmark of a benchmark.
    """
    folder = results.folder
    reason = None if "WANDB_MODE" in os.environ else why_offline()
    mode: Literal["offline"] | None = "offline" if reason else None
    os.environ.setdefault("WANDB_SILENT", "true")
    with wandb.init(project="lightning_dpg", job_type="compare", dir=folder, mode=mode) as tracked:
        rows = [[_value(row.get(column)) for column in COLUMNS] for row in csv_rows(results.runs)]
        logged: dict[str, Any] = {
            "nonprivate/results": wandb.Table(columns=list(COLUMNS), data=rows)
        }
        for table in results.tables:
            real = results.data[table.graph]
            render = renderer(real)
            for row in table.rows:
                path = drawn_by(folder, row.first_names)
                if path is None:
                    continue
                graph = read_graph(path)
                place = f"nonprivate/{table.graph}/epsilon {table.epsilon:g}/{row.method}"
                logged[f"{place}/adjacency"] = wandb.Image(render(aligned(graph, real)))
                figure = degree_figure({"synthetic": graph, "original": real})
                logged[f"{place}/degrees"] = wandb.Image(figure)
        tracked.log(logged)
    if reason:
        note(f"wandb: {reason}; offline run in {folder / 'wandb'}, see `wandb sync`")


def _value(value: Any) -> Any:
    """Convert a value to the type of its column: Weights & Biases refuses mixed columns."""
    return math.inf if value == "inf" else value
