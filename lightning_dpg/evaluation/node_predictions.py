"""Releases of classes of nodes as rows of a table: their splits, and their predictions."""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.graph.node_splits import Split, split_others
from lightning_dpg.methods.node_classes.base import NodeClassifier
from lightning_dpg.release.release import Release

_SPLITTING = ("split_seed", "train_fraction", "num_nodes")
"""Settings in which releases of one row may differ."""


class NamedPredictions(NamedTuple):
    """An open release of a method that learns classes of nodes, with its name."""

    name: str
    release: Release

    @property
    def method(self) -> NodeClassifier:
        """Its method."""
        method: NodeClassifier = self.release.method
        return method


class Nodes(NamedTuple):
    """Nodes of a table, with public facts."""

    source: str
    """Name of the graph that has them."""
    names: Sequence[str]
    attributes: Tensor
    """Attributes of shape ``(N, F)``."""
    classes: Tensor
    """Class of each node from 0 on, shape ``(N,)``, -1 where there is none."""
    values: Tensor
    """Number of each class in the data, ascending, shape ``(C,)``."""


class Predictions(NamedTuple):
    """One row of a table: releases that differ in their training nodes only, one for each split."""

    name: str
    releases: tuple[NamedPredictions, ...]

    @property
    def guarantee(self) -> str:
        """Guarantee of its first release."""
        return self.releases[0].release.guarantee

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of its method but those of the split."""
        return settings_of(self.releases[0].method)


def settings_of(method: NodeClassifier) -> dict[str, Any]:
    """Return the settings of a method but those of its training nodes."""
    return {
        name: value
        for name, value in method.hparams.items()
        if name[:1] != "_" and name not in _SPLITTING
    }


class Drawn(NamedTuple):
    """A split of the nodes of a table."""

    split: Split
    seed: int
    """Public seed of the split; without one its place among the splits."""


def splits_of(rows: Sequence[Predictions], nodes: Nodes) -> list[Drawn]:
    """Return the splits of releases: each has trained on the nodes whose classes it knows.

    Args:
        rows: Rows of releases; all of them must have learned from the same nodes.
        nodes: Nodes of the table.

    Raises:
        CommandError: If a release has other nodes or classes, or has left no class to predict, or if
            rows have learned from different nodes.
    """
    first = rows[0].releases
    known = [_known(one, nodes) for one in first]
    for row in rows[1:]:
        others = [_known(one, nodes) for one in row.releases]
        if len(others) != len(known) or not all(map(torch.equal, others, known)):
            raise CommandError(
                f"{row.name}: learned from the classes of other nodes than {rows[0].name}\n"
                "rows of one table have the same splits: fit all methods with the same values of "
                "split_seed\nor evaluate each one by itself"
            )
    seeds = [one.method.hparams["split_seed"] for one in first]
    is_named = None not in seeds and len({*seeds}) == len(seeds)
    return [
        Drawn(_around(one, train, nodes), seed if is_named else place)
        for place, (one, train, seed) in enumerate(zip(first, known, seeds, strict=True))
    ]


def rows_of(predictions: Sequence[NamedPredictions]) -> list[Predictions]:
    """Join releases of one method with the same settings and budget, if each has its own split.

    Args:
        predictions: The releases, in the order of the rows. A row is named by its method and epsilon
            if it has several of them.
    """
    groups: dict[Hashable, list[NamedPredictions]] = defaultdict(list)
    for one in predictions:
        budget = [one.release.statement.get(name) for name in ("epsilon", "delta")]
        settings = sorted(settings_of(one.method).items())
        groups[type(one.method), repr((budget, settings))].append(one)
    rows = []
    for members in groups.values():
        ordered = sorted(members, key=lambda one: one.method.hparams["split_seed"] or 0)
        known = {tuple(one.method.known_nodes.tolist()) for one in members}
        if len(members) == 1 or len(known) < len(members):  # repeated fits of one split
            rows += [Predictions(one.name, (one,)) for one in members]
            continue
        epsilon = float(members[0].release.statement.get("epsilon", math.nan))
        name = f"{type(members[0].method).__name__} at {epsilon:g}"
        rows.append(Predictions(name, tuple(ordered)))
    return rows


def log_posteriors(one: NamedPredictions, nodes: Nodes, test: Tensor) -> Tensor:
    """Log of the released probabilities of some nodes, shape ``(T, C)``; no edge is read."""
    places = _places(one, nodes)[test]
    return _on_classes(one, torch.from_numpy(one.release.predict_proba())[places], nodes)


def log_student(one: NamedPredictions, nodes: Nodes, test: Tensor) -> Tensor:
    """Log probabilities of some nodes by their attributes alone, shape ``(T, C)``.

    Raises:
        CommandError: If the attributes are not those of the fit.
    """
    try:
        found = one.release.predict_proba(nodes.attributes[test])
    except Refusal as error:
        raise CommandError(
            f"{one.name}: its attributes are not those of {nodes.source}: {error}"
        ) from error
    return _on_classes(one, torch.from_numpy(found), nodes)


def _on_classes(one: NamedPredictions, probabilities: Tensor, nodes: Nodes) -> Tensor:
    """Log probabilities of the classes of a table; a class that was not learned has none."""
    found = torch.zeros(len(probabilities), len(nodes.values))
    found[:, torch.searchsorted(nodes.values, one.method.classes.cpu())] = probabilities
    return found.log()


def _places(one: NamedPredictions, nodes: Nodes) -> Tensor:
    """Row of each node of the table in a release, shape ``(N,)``."""
    number = {name: place for place, name in enumerate(one.method.node_names or ())}
    missing = [name for name in nodes.names if name not in number]
    if missing or len(number) != len(nodes.names):
        raise CommandError(
            f"{one.name}: has {len(number):,} nodes, and {nodes.source} has {len(nodes.names):,}"
            + (f", such as {missing[0]!r}, which it lacks" if missing else "")
            + "\nnode classification needs the same nodes in all rows"
        )
    return torch.tensor([number[name] for name in nodes.names])


def _known(one: NamedPredictions, nodes: Nodes) -> Tensor:
    """Nodes of the table whose classes a release has learned from, shape ``(K,)``."""
    labels = one.method.known_labels()[_places(one, nodes)]
    known = torch.nonzero(labels >= 0)[:, 0]
    numbers = nodes.classes[known]
    if (numbers < 0).any() or not torch.equal(nodes.values[numbers.clamp(min=0)], labels[known]):
        raise CommandError(
            f"{one.name}: learned other classes than {nodes.source} has\n"
            "evaluate it with the column of classes of its fit: evaluate RUN, or in Python its data"
        )
    return known


def _around(one: NamedPredictions, train: Tensor, nodes: Nodes) -> Split:
    """Split around the training nodes of a release."""
    settings = one.method.hparams
    split = split_others(
        nodes.classes, train, settings["split_seed"] or 0, settings["train_fraction"]
    )
    if not len(split.test):
        raise CommandError(
            f"{one.name}: learned from the classes of all nodes, and none is left to score\n"
            "hold some out in a fit of its own: --model.init_args.split_seed 0, in Python "
            "split_seed=0"
        )
    return split
