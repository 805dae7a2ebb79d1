"""Releases of classes of nodes as rows of a table: what they have learned from, and their predictions."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.errors import CommandError, Refusal
from lightning_dpg.evaluation.node_controls import ClassifiedNodes, PublicNodes
from lightning_dpg.graph.held_out import Split, split_at_random, split_nodes, split_others
from lightning_dpg.methods.node_classes import NodeClassifier
from lightning_dpg.nn.class_evidence import ClassEvidence
from lightning_dpg.release.release import Release

SEEDS = 5
"""Usual number of public seeds; each has a split, initial weights and graphs for comparison of its own."""

_SPLITTING = ("split_seed", "train_fraction", "num_nodes")
"""Settings that depend on the nodes and on their split."""
_PRIVATE_FRACTION = 0.75
"""Share of the nodes for training where labels are private, which have no use of few nodes."""


class NamedPredictions(NamedTuple):
    """An open release of a method that learns classes of nodes, with its name."""

    name: str
    release: Release

    @property
    def method(self) -> NodeClassifier:
        """Its method."""
        method: NodeClassifier = self.release.method
        return method

    @property
    def row_epsilon(self) -> float | None:
        """Epsilon of its reports of private labels; None where classes are public."""
        return float(self.method.label_epsilon) if self.method.pays_rows else None


class Predicted(NamedTuple):
    """What one fit has learned from and predicts, on the nodes and classes of a table."""

    evidence: ClassEvidence
    logs: dict[str, Tensor]
    """Log probabilities of shape ``(N, C)``: ``posteriors``, which are those of the release, and
    ``student``, from attributes alone."""


def settings_of(method: NodeClassifier) -> dict[str, Any]:
    """Return the settings of a method but those of its nodes and its split."""
    return {
        name: value
        for name, value in method.hparams.items()
        if name[:1] != "_" and name not in _SPLITTING  # "_": the command line's own
    }


def predicted(method: NodeClassifier, attributes: Tensor, values: Tensor) -> Predicted:
    """Return the predictions of a fit, whose nodes are those of the table in their order.

    Args:
        method: The fitted method.
        attributes: Attributes of shape ``(N, F)``.
        values: Number of each class in its data, ascending, shape ``(C,)``; those that it does not
            know have the probability 0.
    """
    columns = torch.searchsorted(values, method.classes.cpu())

    def on_classes(rows: Tensor, absent: float) -> Tensor:
        found = torch.full((len(rows), len(values)), absent, dtype=rows.dtype)
        found[:, columns] = rows.cpu()
        return found

    with torch.no_grad():
        student = method.eval().predict_proba(attributes)
    nodes, log_likelihoods = method.evidence()
    return Predicted(
        ClassEvidence(nodes, on_classes(log_likelihoods, -torch.inf)),
        {
            "posteriors": on_classes(method.node_posteriors(), 0.0).log(),
            "student": on_classes(student, 0.0).log(),
        },
    )


def of_release(one: NamedPredictions, nodes: ClassifiedNodes) -> Predicted:
    """Return the predictions of a release for the nodes of a table; no edge is read.

    Args:
        one: The release.
        nodes: Nodes of the table, which it may have in another order.

    Raises:
        CommandError: If its nodes, attributes or classes are not those of the table.
    """
    places = _places(one, nodes)
    _check_classes(one, nodes, places)
    try:
        found = predicted(one.method, nodes.attributes, nodes.values)
    except Refusal as error:
        raise CommandError(
            f"{one.name}: its attributes are not those of {nodes.source}: {error}"
        ) from error
    known = places.argsort()[found.evidence.nodes]
    order = known.argsort()
    evidence = ClassEvidence(known[order], found.evidence.log_likelihoods[order])
    return Predicted(evidence, found.logs | {"posteriors": found.logs["posteriors"][places]})


def refitted(
    one: NamedPredictions, public: PublicNodes, graph: Data, train: Tensor, *, is_private: bool
) -> Predicted:
    """Fit the method of a release again, with its settings, to a graph of the nodes.

    Labels that are private in the release are so again, and are reported anew.

    Args:
        one: The release.
        public: Nodes of the table.
        graph: The graph.
        train: Nodes whose classes are learned from, shape ``(K,)``.
        is_private: Whether the fit has the budget of the release, or no noise of edges.
    """
    method: NodeClassifier = type(one.method)(**settings_of(one.method))
    epsilon, delta = math.inf, 0.0
    if is_private:
        statement = one.release.statement
        epsilon, delta = float(statement["epsilon"]), float(statement["delta"])
    public.learn(method, graph, train, epsilon, delta, one.row_epsilon)
    return predicted(method, public.attributes, torch.arange(public.num_classes))


class Splits(NamedTuple):
    """The splits of a table.

    Attributes:
        seeds: Public seed of each split.
        splits: The splits.
        has_own: Whether the training nodes of the first one are those of the releases.
    """

    seeds: Sequence[int]
    splits: Sequence[Split]
    has_own: bool


def splits_of(
    nodes: ClassifiedNodes,
    releases: Sequence[NamedPredictions],
    found: Sequence[Predicted],
    num_seeds: int | None,
    first_seed: int,
    train_fraction: float | None,
) -> Splits:
    """Return splits by public seeds, of which the first one is that of the releases if they have one.

    A release that has learned all classes has no split, and leaves none to predict.

    Args:
        nodes: Nodes of the table.
        releases: The releases, if there are any.
        found: What each of them has learned from.
        num_seeds: Number of splits; None is the usual one.
        first_seed: Seed of the first split, unless releases have one.
        train_fraction: Share of the nodes for training, see :func:`split_nodes`, unless releases have
            a split.

    Raises:
        CommandError: If the releases have not learned from the same, or have a split and another one
            is asked for.
    """
    count = SEEDS if num_seeds is None else num_seeds

    def drawn(first: int, number: int, share: float | None) -> list[Split]:
        seeds = range(first, first + number)
        if releases and releases[0].method.pays_rows:
            some = torch.nonzero(nodes.classes >= 0)[:, 0]
            return [split_at_random(some, seed, share or _PRIVATE_FRACTION) for seed in seeds]
        return [split_nodes(nodes.classes, seed, share) for seed in seeds]

    own = _own_split(nodes, releases, found)
    if own is None:
        splits = drawn(first_seed, count, train_fraction)
        return Splits(range(first_seed, first_seed + count), splits, has_own=False)
    name, settings = releases[0].name, releases[0].method.hparams
    if train_fraction is not None:
        raise CommandError(
            f"{name}: has training nodes of its own, and a share for training is given\n"
            "leave it out: --train-fraction, in Python train_fraction"
        )
    seed, share = settings["split_seed"], settings["train_fraction"]
    if seed is not None:
        splits = [own, *drawn(seed + 1, count - 1, share)]
        return Splits(range(seed, seed + count), splits, has_own=True)
    if num_seeds not in (None, 1):
        raise CommandError(
            f"{name}: has learned the classes that its data had, and there are no other splits\n"
            "leave the number of seeds out: --num-seeds, in Python num_seeds"
        )
    return Splits((first_seed,), (own,), has_own=True)


def _own_split(
    nodes: ClassifiedNodes, releases: Sequence[NamedPredictions], found: Sequence[Predicted]
) -> Split | None:
    """Split around the training nodes of releases; None if they leave no class to predict."""
    for one, other in zip(releases, found, strict=True):
        if not _is_same(other.evidence, found[0].evidence):
            has_reports = any(each.method.pays_rows for each in (releases[0], one))
            what = "other reports of labels" if has_reports else "the classes of other nodes"
            raise CommandError(
                f"{one.name}: learned from {what} than {releases[0].name}\n"
                "all rows of a table learn from the same: evaluate each one by itself"
            )
    if not releases:
        return None
    settings = releases[0].method.hparams
    seed, share = settings["split_seed"] or 0, settings["train_fraction"]
    own = split_others(nodes.classes, found[0].evidence.nodes, seed, share)
    return own if len(own.test) else None


def _is_same(first: ClassEvidence, second: ClassEvidence) -> bool:
    return all(map(torch.equal, first, second))


def _places(one: NamedPredictions, nodes: ClassifiedNodes) -> Tensor:
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


def _check_classes(one: NamedPredictions, nodes: ClassifiedNodes, places: Tensor) -> None:
    """Refuse a release whose classes are not those of the table; reports may be wrong by chance."""
    given = nodes.values[nodes.classes.clamp(min=0)].where(nodes.classes >= 0, -1)
    learned = one.method.known_labels()[places]
    if one.method.pays_rows:
        is_same = torch.isin(given[given >= 0], one.method.classes.cpu())
    else:
        is_same = given[learned >= 0] == learned[learned >= 0]
    if not is_same.all():
        raise CommandError(
            f"{one.name}: learned other classes than {nodes.source} has\n"
            "evaluate it with the column of classes of its fit: evaluate RUN, or in Python its data"
        )
