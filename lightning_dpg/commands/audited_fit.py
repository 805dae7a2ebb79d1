"""A fit on a graph with canaries, and what an attacker makes of it."""

import tempfile
from typing import Any, Literal, NamedTuple

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch_geometric.data import Data

from lightning_dpg.callbacks import ReleaseWriter
from lightning_dpg.callbacks.statement import privacy_statement
from lightning_dpg.cli import PrivateCLI
from lightning_dpg.commands.errors import CommandError
from lightning_dpg.commands.quiet import quiet
from lightning_dpg.graph.graph import make_graph, undirected_edges
from lightning_dpg.graph.pairs import num_pairs
from lightning_dpg.methods.base import Synthesizer
from lightning_dpg.privacy.noise import NoiseSource

View = Literal["released", "transcript"]

MOST_CANARIES = 1000


class Outcome(NamedTuple):
    """What one fit claims, and how its canaries were scored."""

    method: str
    epsilon: float
    delta: float
    scores: Tensor
    inserted: Tensor


def audited_fit(
    args: list[str], canaries: int | None, view: View, world: bool | None = None
) -> Outcome:
    """Fit as ``fit`` does, but with canaries among the training edges, in a folder that is removed.

    Args:
        args: Command line of ``fit``.
        canaries: Number of canaries; by default half the number of nodes, at most 1,000.
        view: Whether the attacker sees the release, or every noisy value.
        world: Whether the canaries are in; by default a secret fair coin decides on each.
    """
    with tempfile.TemporaryDirectory() as folder, quiet():
        fit = _AuditedFit(
            ["fit", *args, "--trainer.default_root_dir", folder], canaries, view, world
        )
        method, statement = fit.model, privacy_statement(fit.model)
    with torch.no_grad():
        scores = fit.evidence
        if view == "released":
            scores = method.eval().audit_score(fit.canaries, fit.known).double().cpu()
    return Outcome(
        statement["method"], float(statement["epsilon"]), statement["delta"], scores, fit.inserted
    )


def spread_non_edges(graph: Data, count: int, generator: torch.Generator) -> Tensor:
    """Draw different non-edges, spread as evenly over the nodes as random matchings are.

    Canaries at the same node hide each other in its degree.

    Args:
        graph: Graph of N nodes.
        count: Number of pairs P.
        generator: Source of the draw.

    Returns:
        Rows ``i < j`` of shape ``(P, 2)`` in random order.
    """
    num_nodes, taken = int(graph.num_nodes), undirected_edges(graph)
    available = num_pairs(num_nodes) - len(taken)
    if not 0 < count <= available // 2:
        raise CommandError(
            f"{count} canaries are more than half of the {available} pairs without an edge\n"
            f"set --canaries to {available // 2} or less, or take a sparser graph"
        )
    found = taken[:0]
    while len(found) < count:
        nodes = torch.randperm(num_nodes, generator=generator)
        pairs = nodes[: num_nodes // 2 * 2].view(-1, 2).sort(dim=1).values
        keys, seen = (rows[:, 0] * num_nodes + rows[:, 1] for rows in (pairs, taken))
        pairs = pairs[~torch.isin(keys, seen)]
        found, taken = torch.cat([found, pairs]), torch.cat([taken, pairs])
    return found[:count]


class _AuditedFit(PrivateCLI):
    """``fit`` that leaves nothing behind.

    Attributes:
        canaries: Pairs of shape ``(P, 2)``.
        inserted: Which of them are training edges, shape ``(P,)``.
        known: Graph of the other training edges.
        evidence: What the noisy values of the run say about each canary together.
    """

    def __init__(
        self, args: list[str], canaries: int | None, view: View, world: bool | None
    ) -> None:
        """Parse a command line and run it."""
        self._num_canaries, self._view, self._world = canaries, view, world
        super().__init__(args)

    def _read_data(self) -> pl.LightningDataModule:
        data: Any = super()._read_data()
        if not hasattr(data, "train_graph"):
            raise CommandError(
                "audit knows single graphs only, and the data of this configuration are a set\n"
                "take the configuration of another method, see: python -m lightning_dpg list"
            )
        self.known = data.train_graph
        count = self._num_canaries
        if count is None:
            count = min(MOST_CANARIES, data.num_nodes // 2)
        # Which pairs are canaries is public; whether they are edges is not.
        self.canaries = spread_non_edges(data.graph, count, torch.Generator().manual_seed(0))
        if self._world is None:
            self.inserted = torch.from_numpy(NoiseSource().integers(2, count) == 1)
        else:
            self.inserted = torch.full((count,), self._world)
        edges = torch.cat([data.edges, self.canaries[self.inserted]])
        data.train_graph = make_graph(edges, data.num_nodes, self.known.node_names)
        data.edges = undirected_edges(data.train_graph)
        self.evidence = torch.zeros(count, dtype=torch.double)
        return data

    def before_instantiate_classes(self) -> None:
        """Drop what only a user's run needs."""
        trainer = self._settings.trainer
        trainer.callbacks, trainer.logger = None, False
        trainer.enable_checkpointing = trainer.enable_progress_bar = False
        trainer.enable_model_summary = False
        super().before_instantiate_classes()

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        """A trainer that writes no release."""
        trainer = super().instantiate_trainer(**kwargs)
        trainer.callbacks = [  # type: ignore[attr-defined]
            callback
            for callback in trainer.callbacks  # type: ignore[attr-defined]
            if not isinstance(callback, ReleaseWriter)
        ]
        return trainer

    def before_fit(self) -> None:
        """Watch the releases."""
        if not isinstance(self.model, Synthesizer):
            raise CommandError("audit asks for a method that publishes graphs")
        if self._view == "transcript":
            self.model.ledger.witness = self._observe

    def _observe(self, name: str, noisy: Tensor) -> None:
        score = self.model.transcript_score(name, noisy, self.canaries, self.known)
        self.evidence += score.detach().double().cpu()
