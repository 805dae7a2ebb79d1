"""Accuracy of classes learned from private labels, beside controls that read the same reports and no edge.

``python -m benchmarks private_labels --out measured`` appends the scores of each fit to
``measured/scores.csv`` as they come; what is there is not measured again. It then writes the table to
``measured/cells.csv``. Noise comes from the operating system.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch

from benchmarks.scores_file import ScoresFile, interval_of, mean_of
from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.evaluation.node_classification import NamedGraph, public_nodes
from lightning_dpg.evaluation.node_evaluation import paired_difference
from lightning_dpg.evaluation.public_nodes import PublicNodes
from lightning_dpg.graph.held_out import split_at_random
from lightning_dpg.interfaces import PrivateLabels
from lightning_dpg.methods import NeighborVotes, NodeClassifier, NodeNeighborVotes
from lightning_dpg.nn.class_student import known_student
from lightning_dpg.run.fit import fit_method

Place: TypeAlias = tuple[str, str, int]
"""Budget of labels, row, and seed."""

METHODS: dict[str, type[NodeClassifier]] = {
    "NeighborVotes": NeighborVotes,
    "NodeNeighborVotes": NodeNeighborVotes,
}
DELTA = 1e-5
ROWS = ("attributes", "self-training", "posteriors", "student")
"""Attributes alone and self-training read the reports and no edge."""


class Setting(NamedTuple):
    """What all rows of a fit share.

    Attributes:
        method: Class of the method.
        epsilon: Budget of edges.
        row_epsilon: Budget of the label of one node.
        train_fraction: Share of all nodes with a label whose labels are reported.
    """

    method: type[NodeClassifier]
    epsilon: float
    row_epsilon: float
    train_fraction: float = 0.75


def private_label_scores(
    data: EdgeListDataModule, public: PublicNodes, setting: Setting, seed: int
) -> dict[str, float]:
    """Share of right classes of the test nodes by each row of :data:`ROWS`.

    The controls learn from the reports of the fit, so that they differ from it by the edges alone.

    Args:
        data: Graph with attributes and private labels, set up.
        public: Its nodes.
        setting: Method and budgets.
        seed: Public seed of the split; the noise is secret.
    """
    labels = data.private_labels
    assert isinstance(labels, PrivateLabels)
    method = setting.method(  # type: ignore[call-arg]  # settings of all such methods
        split_seed=seed, train_fraction=setting.train_fraction
    )
    fit_method(method, data, setting.epsilon, DELTA, setting.row_epsilon)
    test = split_at_random(
        torch.nonzero(labels.values >= 0)[:, 0], seed, setting.train_fraction
    ).test
    evidence = method.evidence()
    beliefs = {
        "attributes": known_student(public.rows, evidence)(public.rows),
        "self-training": public.self_trained(evidence),
        "posteriors": method.node_posteriors(),
        "student": method.predict_proba(public.attributes),
    }
    return {
        name: float((found.argmax(1) == labels.values)[test].double().mean())
        for name, found in beliefs.items()
    }


def cells(scores: dict[Place, float], title: str) -> Iterator[list[str]]:
    """Means and deviations, and differences to self-training with half of their 95 % intervals."""
    for budget in dict.fromkeys(place[0] for place in scores):
        seeds = sorted({place[2] for place in scores if place[0] == budget})
        values = {row: [scores[budget, row, seed] for seed in seeds] for row in ROWS}
        ends = [str(len(seeds)), " ".join(map(str, seeds))]
        for row, found in values.items():
            yield [title, row, budget, *mean_of(found), *ends, ""]
        for row in ROWS[2:]:
            found = paired_difference(values[row], values["self-training"])
            name, note = f"{row} to self-training", "±: half of the 95 % interval of pairs"
            yield [title, name, budget, *interval_of(found), *ends, note]


def main(args: list[str]) -> None:
    """Measure what the file lacks, and write the table.

    Args:
        args: Command line.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks private_labels", description=__doc__
    )
    parser.add_argument("--graph", default="cora_ml", help="archive with attributes and classes")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of scores.csv and cells.csv"
    )
    parser.add_argument("--method", choices=METHODS, default="NeighborVotes")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--row-epsilons", type=float, nargs="+", default=[1, 2, 4, math.inf])
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12])
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    given = EdgeListDataModule(options.graph, undirected=True, nodes=Nodes(attributes="from_graph"))
    given.setup("fit")
    nodes = public_nodes(NamedGraph(options.graph, given.graph, ""))
    public = PublicNodes(nodes, given.num_edges)
    data = EdgeListDataModule(
        options.graph,
        undirected=True,
        nodes=Nodes(
            attributes="from_graph", policy={"y": "private_label"}, classes=nodes.values.tolist()
        ),
    )
    data.setup("fit")
    file = ScoresFile(options.out, ("row_epsilon", "row", "seed", "accuracy"))
    for row_epsilon in options.row_epsilons:
        budget = "public" if math.isinf(row_epsilon) else f"{row_epsilon:g}"
        setting = Setting(METHODS[options.method], options.epsilon, row_epsilon)
        for seed in options.seeds:
            if (budget, ROWS[-1], seed) not in places_of(file):
                found = private_label_scores(data, public, setting, seed)
                file.append([budget, row, seed, 100 * each] for row, each in found.items())
    title = f"{options.graph}, {options.method} at {options.epsilon:g}, private labels"
    file.write_cells(cells(places_of(file), title))


def places_of(file: ScoresFile) -> dict[Place, float]:
    """Return the scores of this and of earlier calls."""
    return {
        (line["row_epsilon"], line["row"], int(line["seed"])): float(line["accuracy"])
        for line in file.lines()
    }
