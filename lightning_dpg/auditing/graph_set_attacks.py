"""Link prediction on sets of graphs, as a report: the links are unseen by the method."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch_geometric.data import Data

from lightning_dpg.auditing.hidden_links import (
    hide_links,
    identified_by_degrees,
    predict_hidden_links,
)
from lightning_dpg.auditing.link_stealing import CONFIDENCE, Published, with_degrees_alone
from lightning_dpg.datamodules.graph_set import split_graphs
from lightning_dpg.errors import CommandError
from lightning_dpg.graph.graph import undirected_edges
from lightning_dpg.running.complete import on_data
from lightning_dpg.running.fit import fit_settings

NUM_SETS = 10


def attack_set(real: Data, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Run the link prediction of Yang et al., 2021, figure 3, and return plain values.

    Args:
        real: Union of the graphs, with their ``sizes`` and labels ``y``.
        settings: Configuration to fit with, see ``attacks.settings_for_parts``.
    """
    graphs = split_graphs(real, real.sizes.tolist())
    if real.y is not None:
        for graph, label in zip(graphs, torch.split(real.y, 1), strict=True):
            graph.y = label
    hidden = hide_links(graphs)
    if not sum(map(len, hidden.links)):
        raise CommandError("no graph of the set has links to hide and pairs without one")
    with TemporaryDirectory() as folder:
        write_tu_folder(hidden.graphs, Path(folder))
        method = fit_settings(on_data(settings, folder)).method
    with torch.no_grad():
        seeds = [torch.Generator().manual_seed(seed) for seed in range(NUM_SETS)]
        samples = [method.eval().sample_set(seed) for seed in seeds]
    by_chance = list(with_degrees_alone(Published(hidden.graphs)).graphs)
    sets: dict[str, list[list[Data]]] = {
        "real": [hidden.graphs],
        "generated": [identified_by_degrees(each, hidden.graphs) for each in samples],
        "degrees_alone": [by_chance],
    }
    return {
        "graphs": len(graphs),
        "edges": real.num_edges // 2,
        "hidden": sum(map(len, hidden.links)),
        "sets": NUM_SETS,
        "confidence": CONFIDENCE,
        "link_prediction": {
            name: predict_hidden_links(graph_sets, hidden)._asdict()
            for name, graph_sets in sets.items()
        },
    }


def write_tu_folder(graphs: list[Data], folder: Path) -> None:
    """Write graphs and their labels in the text format of TU Dortmund.

    Args:
        graphs: Graphs of one node or more, of which some have a link.
        folder: An empty folder.
    """
    links, owners, labels, start = [], [], [], 1
    for number, graph in enumerate(graphs, start=1):
        for first, second in (undirected_edges(graph) + start).tolist():
            links += [f"{first}, {second}", f"{second}, {first}"]
        owners += [str(number)] * int(graph.num_nodes)
        labels += [] if graph.y is None else [str(int(graph.y))]
        start += int(graph.num_nodes)
    files = {"A": links, "graph_indicator": owners, "graph_labels": labels}
    for name, rows in files.items():
        if rows:
            (folder / f"set_{name}.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
