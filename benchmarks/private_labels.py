"""Accuracy of classes learned from private labels, beside controls that read the same reports and no edge."""

import argparse
import statistics
from collections import defaultdict
from typing import NamedTuple

import torch
from torch import Tensor

from lightning_dpg.datamodules import EdgeListDataModule, Nodes
from lightning_dpg.graph.node_splits import split_at_random
from lightning_dpg.interfaces import PrivateLabels
from lightning_dpg.methods import NeighborVotes, NodeClassifier, NodeNeighborVotes
from lightning_dpg.methods.node_classes.vote_moment import VoteMoment
from lightning_dpg.nn.class_student import known_student
from lightning_dpg.running.fit import fit_method

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


def private_label_scores(data: EdgeListDataModule, setting: Setting, seed: int) -> dict[str, float]:
    """Share of right classes of the test nodes by each row of :data:`ROWS`.

    The controls learn from the reports of the fit, so that they differ from it by the edges alone.

    Args:
        data: Graph with attributes and private labels, set up.
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
    attributes: Tensor = data.records.graph.x
    control = VoteMoment(64)
    control.features.fit(attributes)
    rows, evidence = control.rows(attributes), method.evidence()
    beliefs = {
        "attributes": known_student(rows, evidence)(rows),
        "self-training": control.public_beliefs(rows, evidence),
        "posteriors": method.node_posteriors(),
        "student": method.predict_proba(attributes),
    }
    return {
        name: float((found.argmax(1) == labels.values)[test].double().mean())
        for name, found in beliefs.items()
    }


def main(args: list[str]) -> None:
    """Print the scores of each seed as they come, and then means and standard deviations."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks private_labels")
    parser.add_argument("--graph", default="cora_ml", help="archive with attributes and classes")
    parser.add_argument("--method", choices=METHODS, default="NeighborVotes")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--row-epsilons", type=float, nargs="+", default=[1, 2, 4, torch.inf])
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12])
    options = parser.parse_args(args)
    torch.set_num_threads(1)
    public = EdgeListDataModule(
        options.graph, undirected=True, nodes=Nodes(attributes="from_graph")
    )
    public.setup("fit")
    classes = [str(number) for number in public.graph.y.unique().tolist() if number >= 0]
    data = EdgeListDataModule(
        options.graph,
        undirected=True,
        nodes=Nodes(attributes="from_graph", policy={"y": "private_label"}, classes=classes),
    )
    data.setup("fit")
    print("row epsilon,row,mean,deviation,seeds")
    for row_epsilon in options.row_epsilons:
        setting = Setting(METHODS[options.method], options.epsilon, row_epsilon)
        values: dict[str, list[float]] = defaultdict(list)
        for seed in options.seeds:
            for name, score in private_label_scores(data, setting, seed).items():
                values[name].append(100 * score)
        for name, found in values.items():
            deviation = statistics.stdev(found) if len(found) > 1 else 0.0
            shown = " ".join(f"{each:.1f}" for each in found)
            print(
                f"{row_epsilon:g},{name},{statistics.mean(found):.1f},{deviation:.1f},{shown}",
                flush=True,
            )
