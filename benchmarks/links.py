"""Link prediction of methods on held-out edges, within budgets, beside attributes alone.

``python -m benchmarks links attributes --out FOLDER --webkb FOLDER`` measures the study of that
name. Each run is a few lines of ``FOLDER/results.csv``, from which ``python -m results`` takes its
numbers; runs that are there are not repeated. Texas, Wisconsin and Actor are read from the files of
Geom-GCN, a folder for each graph.
"""

import argparse
import csv
import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
import yaml
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.methods import (
    AttributeEncoder,
    AttributeMoments,
    ChungLu,
    PrivGraph,
    RandomizedResponse,
)
from lightning_dpg.methods.synthesizer import Synthesizer
from lightning_dpg.run.configurations import find_config
from lightning_dpg.run.fit import fit_method

DELTA = 1e-5
COLUMNS = ("method", "graph", "epsilon", "run", "query", "error", "private", "conditional")
METHODS: dict[str, Callable[[int], Synthesizer]] = {
    "AttributeEncoder": AttributeEncoder,
    "AttributeMoments": AttributeMoments,
    "ChungLu": ChungLu,
    "PrivGraph": PrivGraph,
    "spectral": lambda num_nodes: RandomizedResponse(num_nodes, denoise="spectral"),
}
WITHOUT_ATTRIBUTES = ("ChungLu", "PrivGraph", "spectral")
QUERIES = {"auc": "AUC", "ap": "AP", "matched_auc": "matched AUC"}
"""Values of a test, and the names of their tables."""


class Plan(NamedTuple):
    """Runs on a graph."""

    graph: str
    methods: Sequence[str]
    epsilons: Sequence[float]
    seeds: Sequence[int] = range(3)


ALL_BUDGETS = (0.5, 1.0, 2.9, 5.0, math.inf)
STUDIES = {
    "attributes": [
        Plan("Cora-ML", [*METHODS], ALL_BUDGETS),
        Plan("Citeseer", [*METHODS], ALL_BUDGETS),
        Plan("Texas", [*METHODS], ALL_BUDGETS),
        Plan("Wisconsin", [*METHODS], ALL_BUDGETS),
        Plan("Actor", [*METHODS][:4], (0.5, 1.0, 2.9, math.inf)),
    ],
    "links": [
        Plan("Facebook", WITHOUT_ATTRIBUTES[:2], (0.5, 1.0, 2.9, 5.0), [0]),
        Plan("Facebook", ["spectral"], (1.0, 2.9, 5.0), [0]),
        Plan("ego-Twitter", WITHOUT_ATTRIBUTES[:2], (0.5, 1.0, 2.9, 5.0), [0]),
        Plan("PubMed", WITHOUT_ATTRIBUTES[:2], ALL_BUDGETS),
    ],
}


def read_geom_gcn(folder: Path) -> Data:
    """Read a graph in the format of Geom-GCN; Actor lists the numbers of the words of a node."""
    nodes = pd.read_csv(folder / "out1_node_feature_label.txt", sep="\t").set_index("node_id")
    cells = [np.array(str(cell).split(","), int) for cell in nodes.sort_index().iloc[:, 0]]
    if "feature_amount" in nodes.columns[0]:
        x = torch.zeros(len(cells), 1 + max(int(words.max()) for words in cells))
        for node, words in enumerate(cells):
            x[node, words] = 1
    else:
        x = torch.from_numpy(np.stack(cells)).float()
    pairs = np.loadtxt(folder / "out1_graph_edges.txt", int, skiprows=1)
    return Data(x=x, edge_index=to_undirected(torch.from_numpy(pairs.T.copy())))


def read_data(graph: str, seed: int, webkb: Path | None) -> EdgeListDataModule:
    """Build the data of a graph whose seed holds out edges, except where a split is published."""
    overlays = {"Cora-ML": "data/cora_ml_attributes", "Citeseer": "data/citeseer_attributes"}
    if graph in overlays:
        settings = yaml.safe_load(find_config(overlays[graph]).read_text())
        return EdgeListDataModule(**settings["data"]["init_args"], seed=seed)
    folders = {"Texas": "texas", "Wisconsin": "wisconsin", "Actor": "film"}
    if graph in folders:
        assert webkb is not None, f"{graph}: name the folder with --webkb"
        data = read_geom_gcn(webkb / folders[graph])
        return EdgeListDataModule(
            data, test_fraction=0.15, seed=seed, nodes=Nodes(attributes="from_graph")
        )
    return EdgeListDataModule(graph, test_fraction=0.15, seed=seed)


def measured(
    name: str, data: EdgeListDataModule, epsilon: float, delta: float = DELTA
) -> dict[str, float]:
    """Fit a method, and compare its scores of the held-out edges with baselines."""
    method = METHODS[name](data.num_nodes)
    fit_method(method, data, epsilon, 0.0 if method.capabilities.is_pure else delta)
    assert data.test_links is not None
    with torch.no_grad():
        return method.eval().link_values(data.test_links)


def lines_of(
    name: str, graph: str, epsilon: float, run: int, values: dict[str, float]
) -> Iterator[list[Any]]:
    """Lines of a run in percent, with those of its controls."""
    for value, query in QUERIES.items():
        guarantee = math.isfinite(epsilon), False
        yield [name, graph, epsilon, run, query, 100 * values[value], *guarantee]


def controls(graph: str, run: int, values: dict[str, float]) -> Iterator[list[Any]]:
    """Lines of the attributes alone, and of the product of exact degrees."""
    for label, epsilon in (("attributes_alone", 0.0), ("degree_product", math.inf)):
        if f"auc_{label}" in values:
            found = {value: values[f"{value}_{label}"] for value in QUERIES}
            yield from lines_of(label.replace("_", " "), graph, epsilon, run, found)


def main(args: list[str]) -> None:
    """Measure a study.

    Args:
        args: Command line.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks links", description=__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--out", type=Path, required=True, help="folder of results.csv")
    parser.add_argument("--webkb", type=Path, help="folder of texas, wisconsin and film")
    parser.add_argument("--graphs", nargs="*", help="those to measure; all by default")
    parser.add_argument("--methods", nargs="*", choices=METHODS, help="the same for methods")
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "results.csv"
    known = set() if not file.exists() else {tuple(row[:4]) for row in csv.reader(file.open())}
    with file.open("a", newline="") as stream:
        lines = csv.writer(stream)
        if not known:
            lines.writerow(COLUMNS)
        for plan in STUDIES[options.study]:
            if options.graphs and plan.graph not in options.graphs:
                continue
            for seed in plan.seeds:
                data = read_data(plan.graph, seed, options.webkb)
                for epsilon, name in product(plan.epsilons, plan.methods):
                    if (name, plan.graph, str(epsilon), str(seed)) in known:
                        continue
                    if options.methods and name not in options.methods:
                        continue
                    started = time.perf_counter()
                    try:
                        values = measured(name, data, epsilon)
                    except MisconfigurationException as error:  # too large, say
                        print(f"{plan.graph} {name} {epsilon:g}: {error}", flush=True)
                        continue
                    lines.writerows(lines_of(name, plan.graph, epsilon, seed, values))
                    if not any(row[1] == plan.graph and row[3] == str(seed) for row in known):
                        known.add(("controls", plan.graph, "", str(seed)))
                        lines.writerows(controls(plan.graph, seed, values))
                    stream.flush()
                    print(
                        f"{plan.graph} {seed} {name} {epsilon:g}: "
                        + ", ".join(f"{q} {100 * values[v]:.1f}" for v, q in QUERIES.items())
                        + f", {time.perf_counter() - started:.1f} s",
                        flush=True,
                    )
