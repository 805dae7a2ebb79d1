"""Classes of nodes by methods, beside all controls that read no edge, with paired differences.

``python -m benchmarks node_learning --graph cora_ml --out measured`` appends each score to
``measured/scores.csv`` as it comes; what is there is not measured again. It then writes the table of
each graph and split to ``measured/cells.csv``. Noise comes from the operating system.
"""

import argparse
import csv
import math
import statistics
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg import methods
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.evaluation.node_controls import PublicNodes, rewired
from lightning_dpg.evaluation.paired import paired_difference
from lightning_dpg.graph.node_splits import Split, split_nodes
from lightning_dpg.methods.node_classes.base import NodeClassifier
from lightning_dpg.metrics.node_classification import (
    NETWORKS,
    ensemble,
    node_log_probabilities,
    node_scores,
)
from lightning_dpg.nn.attribute_rows import AttributeRows
from lightning_dpg.running.fit import fit_method

EDGE, NODE = (0.5, 1.0, 2.0, 4.0, 8.0), (2.0, 4.0, 8.0, 16.0)
EPSILONS = {"NeighborVotes": EDGE, "NodeNeighborVotes": NODE}
"""Methods and their budgets."""
MAX_EDGES = {"facebook_pages": 50, "hopkins": 100}
"""Edges of one node that ``NodeNeighborVotes`` hides together; 20 on other graphs."""
SPLITS: dict[str, float | None] = {"20": None, "75": 0.75}
"""Training nodes: 20 of each class, or 75 %."""
FIRST_SEEDS = {"cora_ml": 10}
"""First seed that is reported; 0 on other graphs. Settings were fixed on seeds 0 to 2 of Cora-ML."""
FIELDS = ("graph", "split", "seed", "row", "score", "value", "seconds")
COLUMNS = {"accuracy": "accuracy", "student": "student", "macro_f1": "macro F1"}
"""Scores, and the names of their columns in the table."""
READS_REAL = ("degrees alone", "real graph")
"""Rows without protection, which are no controls."""


class Measured(NamedTuple):
    """A row of one seed, and the function that measures its scores."""

    name: str
    scores: Callable[[], dict[str, float]]


class Run:
    """All rows of one split of one graph."""

    def __init__(
        self, data: EdgeListDataModule, public: PublicNodes, seed: int, fraction: float | None
    ) -> None:
        self.data, self.public, self.seed, self.fraction = data, public, seed, fraction
        self.real: Data = data.graph
        self.classes = public.classes
        self.split: Split = split_nodes(self.classes, seed, fraction)
        self.logs: dict[tuple[str, str], Tensor] = {}

    def rows(self, graph: str, names: Sequence[str], delta: float) -> Iterator[Measured]:
        """Yield all rows, with what they cost still to be spent."""
        for network in NETWORKS:
            for place in ("no graph", "similarity graph"):
                yield Measured(f"{place}, {network}", self.of_network(place, network))
            yield Measured(f"ensemble of both, {network}", self.of_ensemble(network))
        yield Measured("self-training", self.of_self_training)
        for network in NETWORKS:
            for place in READS_REAL:
                yield Measured(f"{place}, {network}", self.of_network(place, network))
        for name in names:
            public = {"max_edges": MAX_EDGES.get(graph, 20)} if name.startswith("Node") else {}
            row = f"{name} on the similarity graph"
            yield Measured(row, self.of_similarity(name, public))
            for epsilon in EPSILONS[name]:
                yield Measured(
                    f"{name} at {epsilon:g}", self.of_method(name, public, epsilon, delta)
                )

    def of_network(self, place: str, network: str) -> Callable[[], dict[str, float]]:
        """Scores of a network that is trained on the graph of a place."""
        return lambda: self.compared(self.log_probabilities(place, network))

    def of_ensemble(self, network: str) -> Callable[[], dict[str, float]]:
        """Scores of the geometric mean of the networks without a graph and on similar nodes."""
        places = ("no graph", "similarity graph")
        return lambda: self.compared(
            ensemble([self.log_probabilities(place, network) for place in places])
        )

    def of_self_training(self) -> dict[str, float]:
        """Scores of the public beliefs, without an edge."""
        return self.compared(self.public.self_trained(self.split))

    def of_similarity(self, name: str, settings: dict[str, Any]) -> Callable[[], dict[str, float]]:
        """Scores of a method without noise on the similarity graph: no private edge is read."""

        def measure() -> dict[str, float]:
            method: NodeClassifier = getattr(methods, name)(**settings)
            self.public.learn(method, self.split.train)
            return self.predicted(method)

        return measure

    def of_method(
        self, name: str, settings: dict[str, Any], epsilon: float, delta: float
    ) -> Callable[[], dict[str, float]]:
        """Scores of a method within a budget."""

        def measure() -> dict[str, float]:
            own = {"split_seed": self.seed, "train_fraction": self.fraction}
            method: NodeClassifier = getattr(methods, name)(**settings, **own)
            fit_method(method, self.data, epsilon, delta)
            assert torch.equal(method.known_nodes, self.split.train.sort().values)
            return self.predicted(method)

        return measure

    def log_probabilities(self, place: str, network: str) -> Tensor:
        """Predictions of a network, which is trained once."""
        if (place, network) not in self.logs:
            graph = {
                "no graph": lambda: self.public.no_graph,
                "similarity graph": lambda: self.public.similarity_graph,
                "degrees alone": lambda: rewired(self.real, self.seed),
                "real graph": lambda: self.real,
            }[place]()
            (self.logs[place, network],) = node_log_probabilities(
                network, [graph], self.public.scaled, self.classes, self.split, self.seed
            )
        return self.logs[place, network]

    def predicted(self, method: NodeClassifier) -> dict[str, float]:
        """Scores of the released posteriors, and of the student from attributes alone."""
        test = self.split.test
        with torch.no_grad():
            student = method.eval().predict_proba(self.public.attributes[test])
        found = self.compared(method.node_posteriors()[test].log())
        return found | {"student": self.compared(student.log())["accuracy"]}

    def compared(self, log_probabilities: Tensor) -> dict[str, float]:
        """Scores of predictions of the test nodes, in percent."""
        scores = node_scores(log_probabilities, self.classes[self.split.test])
        return {
            "accuracy": 100 * scores.node_accuracy,
            "macro_f1": 100 * scores.node_macro_f1,
        }


def share_components() -> None:
    """Find the principal components of attributes once: they are public, and equal in all fits."""
    fit, found = AttributeRows.fit, dict[tuple[int, int], dict[str, Tensor]]()

    def fit_once(rows: AttributeRows, attributes: Tensor) -> None:
        key = rows.rank, zlib.crc32(attributes.contiguous().numpy())
        if key not in found:
            fit(rows, attributes)
            found[key] = {name: value.clone() for name, value in rows.state_dict().items()}
        rows.load_state_dict(found[key])

    AttributeRows.fit = fit_once  # type: ignore[method-assign]


def read(file: Path) -> list[dict[str, str]]:
    """Read the scores of earlier calls; a line that was cut off is left out."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        return [line for line in csv.DictReader(lines) if line["seconds"]]


def main(args: list[str]) -> None:
    """Measure what the file lacks, and write the tables.

    Args:
        args: Command line.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks node_learning", description=__doc__)
    parser.add_argument("--graph", nargs="+", default=["cora_ml"], help="archives with classes")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of scores.csv and cells.csv"
    )
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds (10)")
    parser.add_argument("--first-seed", type=int, help="10 on cora_ml, 0 on other graphs")
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=[*SPLITS])
    parser.add_argument("--methods", nargs="*", choices=EPSILONS, default=[*EPSILONS])
    parser.add_argument(
        "--delta", type=float, help="1e-5; 1e-6 on graphs of 100,000 edges and more"
    )
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    share_components()
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "scores.csv"
    for graph in options.graph:
        measure(graph, options, file)
    with (options.out / "cells.csv").open("w", newline="", encoding="utf-8") as stream:
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerow(["table", "row", "column", "value", "deviation", "runs", "seeds", "note"])
        lines.writerows(cells(read(file)))
    print((options.out / "cells.csv").read_text())


def measure(graph: str, options: argparse.Namespace, file: Path) -> None:
    """Append the scores of a graph that the file lacks."""
    nodes = Nodes(attributes="from_graph")
    data = EdgeListDataModule(graph, undirected=True, nodes=nodes)
    data.setup("fit")
    real = data.graph
    delta = options.delta or (1e-5 if data.num_edges < 100_000 else 1e-6)
    classes = torch.full_like(real.y, -1)
    classes[real.y >= 0] = real.y[real.y >= 0].unique(return_inverse=True)[1]
    public = PublicNodes(real.x, classes, data.num_edges)
    first = FIRST_SEEDS.get(graph, 0) if options.first_seed is None else options.first_seed
    for seed in range(first, first + options.seeds):
        for split in options.splits:
            run = Run(data, public, seed, SPLITS[split])
            known = {(row["graph"], row["split"], row["seed"], row["row"]) for row in read(file)}
            for row in run.rows(graph, options.methods, delta):
                place = (graph, split, str(seed), row.name)
                if place in known:
                    continue
                start = time.process_time()
                scores = row.scores()
                seconds = f"{time.process_time() - start:.2f}"
                append(file, [[*place, name, f"{scores[name]:.4f}", seconds] for name in scores])
                print(
                    *place,
                    *(f"{name} {value:.1f}" for name, value in scores.items()),
                    seconds,
                    flush=True,
                )


def append(file: Path, rows: Sequence[Sequence[Any]]) -> None:
    """Append lines at once, so that a call that is cut off leaves whole rows."""
    is_new = not file.exists()
    with file.open("a", newline="") as stream:
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerows([FIELDS, *rows] if is_new else rows)


def cells(scores: Sequence[dict[str, str]]) -> Iterator[list[Any]]:
    """Means and deviations by row, and paired differences from the best control.

    The best control is the one with the best mean accuracy of all rows that read no private edge,
    students among them. The deviation of a difference is half of its 95 % interval.
    """
    tables: dict[str, dict[str, dict[str, dict[str, float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(dict))
    )
    for line in scores:
        table = f"{line['graph']}, {line['split']} " + (
            "per class" if line["split"] == "20" else "%"
        )
        tables[table][line["row"]][line["score"]][line["seed"]] = float(line["value"])
    for table, rows in tables.items():
        controls = {
            (row, score): values[score]
            for row, values in rows.items()
            if is_control(row)
            for score in ("accuracy", "student")
            if score in values
        }
        best = max(controls, key=lambda place: statistics.fmean(controls[place].values()))
        name = best[0] + (", student" if best[1] == "student" else "")
        for row, values in rows.items():
            for score, column in COLUMNS.items():
                if score in values:
                    yield [
                        table,
                        row,
                        column,
                        *summary([*values[score].values()]),
                        *origin(values[score]),
                    ]
            for score, column in (("accuracy", "to control"), ("student", "student to control")):
                if score in values and not is_control(row) and row.split(",")[0] not in READS_REAL:
                    common = [seed for seed in values[score] if seed in controls[best]]
                    ours, theirs = (
                        [own[seed] for seed in common] for own in (values[score], controls[best])
                    )
                    found = paired_difference(ours, theirs)
                    width = "" if math.isnan(found.half_interval) else f"{found.half_interval:.1f}"
                    yield [
                        table,
                        row,
                        column,
                        f"{found.mean:+.1f}",
                        width,
                        *origin(dict.fromkeys(common)),
                        f"difference from {name}",
                    ]


def is_control(row: str) -> bool:
    """Return whether a row reads no private edge."""
    return " at " not in row and row.split(",")[0] not in READS_REAL


def summary(values: Sequence[float]) -> tuple[str, str]:
    """Mean and standard deviation."""
    deviation = f"{statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}", deviation


def origin(seeds: dict[str, Any]) -> tuple[int, str]:
    """Number of runs, and their seeds."""
    return len(seeds), " ".join(sorted(seeds, key=int))
